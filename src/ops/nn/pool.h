// Pooling over sliding windows and over whole planes.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

// Of pools over 1, 2 and 3 spatial axes: their lists have as many items (1 is taken for all axes).
struct MaxPoolAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.MaxPoolAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<MaxPoolAttrs>& f);
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
  static void fields(FieldList<AvgPoolAttrs>& f);
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
  static void fields(FieldList<GlobalPool2DAttrs>& f);
  std::string layout = "NCHW";
  std::string out_layout;
};

// `spatial_axes` is 1, 2 or 3: nn.max_pool1d, 2d, 3d.
Expr max_pool(Expr data, int spatial_axes, MaxPoolAttrs attrs, Span span = {});
Expr avg_pool(Expr data, int spatial_axes, AvgPoolAttrs attrs, Span span = {});
Expr global_max_pool2d(Expr data, std::string layout = "NCHW", Span span = {});
Expr global_avg_pool2d(Expr data, std::string layout = "NCHW", Span span = {});

}  // namespace headrace::ops
