// A convolution whose taps are displaced by data: nn.deformable_conv2d.
#pragma once

#include "ops/loops/window.h"

namespace headrace::ops {

struct DeformableConv2DAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.DeformableConv2DAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<DeformableConv2DAttrs>& f);
  Shape strides{1, 1};
  Shape padding{0, 0};
  Shape dilation{1, 1};
  int64_t deformable_groups = 1;
  int64_t groups = 1;
  std::optional<int64_t> channels;
  std::optional<Shape> kernel_size;
  std::string data_layout = "NCHW";
  std::string kernel_layout = "OIHW";
  std::string out_layout;
  std::optional<DataType> out_dtype;
};

// The letters of the axes of data, offsets and result, and of the kernel.
inline constexpr std::string_view kDeformableData = "NCHW", kDeformableKernel = "OIHW";

inline Window deformable_window(const DeformableConv2DAttrs& attrs) {
  return window_of(2, spread(attrs.strides, 2), attrs.padding, spread(attrs.dilation, 2));
}

}  // namespace headrace::ops
