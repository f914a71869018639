// Pooling over sliding windows and over whole planes.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

// Of pools over 1, 2 and 3 spatial axes: their lists have as many items (1 is taken for all axes).
struct MaxPoolAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.MaxPoolAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<MaxPoolAttrs>& f) {
    f.field<&MaxPoolAttrs::pool_size>("pool_size", {.doc = "taps per spatial axis"})
        .field<&MaxPoolAttrs::strides>("strides", {.default_value = Shape{1}, .has_default = true, .doc = "steps"})
        .field<&MaxPoolAttrs::dilation>("dilation",
                                        {.default_value = Shape{1}, .has_default = true, .doc = "distance of taps"})
        .field<&MaxPoolAttrs::padding>(
            "padding", {.default_value = Shape{0}, .has_default = true, .doc = "all; per axis; or begins, then ends"})
        .field<&MaxPoolAttrs::layout>("layout",
                                      {.default_value = "", .has_default = true, .doc = "empty: NCW, NCHW or NCDHW"})
        .field<&MaxPoolAttrs::out_layout>("out_layout",
                                          {.default_value = "", .has_default = true, .doc = "empty: as layout"})
        .field<&MaxPoolAttrs::ceil_mode>(
            "ceil_mode", {.default_value = false, .has_default = true, .doc = "also windows that reach past the end"});
  }
  Shape pool_size;
  Shape strides{1};
  Shape dilation{1};
  Shape padding{0};
  std::string layout;
  std::string out_layout;
  bool ceil_mode = false;
};

struct AvgPoolAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.AvgPoolAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<AvgPoolAttrs>& f) {
    f.field<&AvgPoolAttrs::pool_size>("pool_size", {.doc = "taps per spatial axis"})
        .field<&AvgPoolAttrs::strides>("strides", {.default_value = Shape{1}, .has_default = true, .doc = "steps"})
        .field<&AvgPoolAttrs::dilation>("dilation",
                                        {.default_value = Shape{1}, .has_default = true, .doc = "distance of taps"})
        .field<&AvgPoolAttrs::padding>(
            "padding", {.default_value = Shape{0}, .has_default = true, .doc = "all; per axis; or begins, then ends"})
        .field<&AvgPoolAttrs::layout>("layout",
                                      {.default_value = "", .has_default = true, .doc = "empty: NCW, NCHW or NCDHW"})
        .field<&AvgPoolAttrs::out_layout>("out_layout",
                                          {.default_value = "", .has_default = true, .doc = "empty: as layout"})
        .field<&AvgPoolAttrs::ceil_mode>(
            "ceil_mode", {.default_value = false, .has_default = true, .doc = "also windows that reach past the end"})
        .field<&AvgPoolAttrs::count_include_pad>(
            "count_include_pad", {.default_value = false, .has_default = true, .doc = "padding counts as zeros"});
  }
  Shape pool_size;
  Shape strides{1};
  Shape dilation{1};
  Shape padding{0};
  std::string layout;
  std::string out_layout;
  bool ceil_mode = false;
  bool count_include_pad = false;
};

struct GlobalPool2DAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.GlobalPool2DAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<GlobalPool2DAttrs>& f) {
    f.field<&GlobalPool2DAttrs::layout>("layout",
                                        {.default_value = "NCHW", .has_default = true, .doc = "an order of N C H W"})
        .field<&GlobalPool2DAttrs::out_layout>("out_layout",
                                               {.default_value = "", .has_default = true, .doc = "empty: as layout"});
  }
  std::string layout = "NCHW";
  std::string out_layout;
};

// `spatial_axes` is 1, 2 or 3: nn.max_pool1d, 2d, 3d.
Expr max_pool(Expr data, int spatial_axes, MaxPoolAttrs attrs, Span span = {});
Expr avg_pool(Expr data, int spatial_axes, AvgPoolAttrs attrs, Span span = {});
Expr global_max_pool2d(Expr data, std::string layout = "NCHW", Span span = {});
Expr global_avg_pool2d(Expr data, std::string layout = "NCHW", Span span = {});

}  // namespace headrace::ops
