// Ops that pick elements: strided_slice, take, gather, gather_nd.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct StridedSliceAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.StridedSliceAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<StridedSliceAttrs>& f) {
    f.field<&StridedSliceAttrs::begin>("begin", {.default_value = Shape(),
                                                 .has_default = true,
                                                 .doc = "first index a sliced axis; negative counts from the end"})
        .field<&StridedSliceAttrs::end>(
            "end", {.default_value = Shape(),
                    .has_default = true,
                    .doc = "one past the last, or with slice_mode size the number of indices (-1: all)"})
        .field<&StridedSliceAttrs::strides>(
            "strides", {.default_value = Shape(), .has_default = true, .doc = "steps, not 0; empty: 1"})
        .field<&StridedSliceAttrs::slice_mode>("slice_mode",
                                               {.default_value = "end", .has_default = true, .doc = "end or size"})
        .field<&StridedSliceAttrs::axes>(
            "axes", {.default_value = Shape(), .has_default = true, .doc = "the sliced axes; empty: the first ones"});
  }
  Shape begin, end, strides;
  std::string slice_mode = "end";
  Shape axes;
};

struct TakeAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.TakeAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<TakeAttrs>& f) {
    f.field<&TakeAttrs::batch_dims>(
         "batch_dims", {.default_value = 0, .has_default = true, .doc = "leading axes that data and indices share"})
        .field<&TakeAttrs::axis>("axis", {.optional = true,
                                          .default_value = nullptr,
                                          .has_default = true,
                                          .doc = "the axis picked along; None: of the flattened data"})
        .field<&TakeAttrs::mode>("mode", {.default_value = "clip",
                                          .has_default = true,
                                          .doc = "clip, wrap, or fast (an index out of range is an error)"});
  }
  int64_t batch_dims = 0;
  std::optional<int64_t> axis;
  std::string mode = "clip";
};

struct GatherAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.GatherAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<GatherAttrs>& f) {
    f.field<&GatherAttrs::axis>("axis", {.doc = "the axis picked along"});
  }
  int64_t axis = 0;
};

struct GatherNDAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.GatherNDAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<GatherNDAttrs>& f) {
    f.field<&GatherNDAttrs::batch_dims>(
        "batch_dims", {.default_value = 0, .has_default = true, .doc = "leading axes that data and indices share"});
  }
  int64_t batch_dims = 0;
};

Expr strided_slice(Expr data, Shape begin, Shape end, Shape strides = {}, Shape axes = {},
                   std::string slice_mode = "end", Span span = {});
// begin, end and strides as int tensors of one dimension.
Expr strided_slice(Expr data, Expr begin, Expr end, Expr strides, Shape axes = {}, std::string slice_mode = "end",
                   Span span = {});
Expr take(Expr data, Expr indices, std::optional<int64_t> axis, std::string mode = "clip", int64_t batch_dims = 0,
          Span span = {});
Expr gather(Expr data, int64_t axis, Expr indices, Span span = {});
Expr gather_nd(Expr data, Expr indices, int64_t batch_dims = 0, Span span = {});

}  // namespace headrace::ops
