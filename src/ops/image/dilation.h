// Grayscale dilation: image.dilation2d.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct Dilation2DAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.Dilation2DAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<Dilation2DAttrs>& f);
  Shape strides{1, 1};
  Shape padding{0, 0};
  Shape dilations{1, 1};
  std::string data_layout = "NCHW";
  std::string kernel_layout = "IHW";
  std::optional<DataType> out_dtype;
};

// The letters of the data's and of the kernel's axes.
inline constexpr std::string_view kDilationData = "NCHW", kDilationKernel = "IHW";

}  // namespace headrace::ops
