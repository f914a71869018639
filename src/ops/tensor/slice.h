// Ops that pick elements: strided_slice, take, gather, gather_nd.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct StridedSliceAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.StridedSliceAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<StridedSliceAttrs>& f);
  Shape begin, end, strides;
  std::string slice_mode = "end";
  Shape axes;
};

struct TakeAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.TakeAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<TakeAttrs>& f);
  int64_t batch_dims = 0;
  std::optional<int64_t> axis;
  std::string mode = "clip";
};

struct GatherAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.GatherAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<GatherAttrs>& f);
  int64_t axis = 0;
};

struct GatherNDAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.GatherNDAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<GatherNDAttrs>& f);
  int64_t batch_dims = 0;
  std::optional<int64_t> index_rank;
};

Expr strided_slice(Expr data, Shape begin, Shape end, Shape strides = {}, Shape axes = {},
                   std::string slice_mode = "end", Span span = {});
// Makes a call with begin, end and strides as int tensors of one dimension.
Expr strided_slice(Expr data, Expr begin, Expr end, Expr strides, Shape axes = {}, std::string slice_mode = "end",
                   Span span = {});
Expr take(Expr data, Expr indices, std::optional<int64_t> axis, std::string mode = "clip", int64_t batch_dims = 0,
          Span span = {});
Expr gather(Expr data, int64_t axis, Expr indices, Span span = {});
Expr gather_nd(Expr data, Expr indices, int64_t batch_dims = 0, Span span = {});

// The indices begin, begin + step, ... (count of them) that Python's slice gives on an axis of n; step is not 0.
struct SliceRange {
  int64_t begin, step, count;
};
SliceRange slice_range(int64_t n, int64_t begin, int64_t end, int64_t step);

}  // namespace headrace::ops
