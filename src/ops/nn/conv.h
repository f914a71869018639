// Convolutions.
#pragma once

#include "ops/loops/window.h"
#include "ops/register.h"

namespace headrace::ops {

struct Conv2DAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.Conv2DAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<Conv2DAttrs>& f);
  Shape strides{1, 1};
  Shape padding{0, 0};
  Shape dilation{1, 1};
  int64_t groups = 1;
  std::optional<int64_t> channels;
  std::optional<Shape> kernel_size;
  std::string data_layout = "NCHW";
  std::string kernel_layout = "OIHW";
  std::string out_layout;
  std::optional<DataType> out_dtype;
};

struct Conv2DTransposeAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.Conv2DTransposeAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<Conv2DTransposeAttrs>& f);
  std::optional<int64_t> channels;
  std::optional<Shape> kernel_size;
  Shape strides{1, 1};
  Shape output_padding{0, 0};
  Shape padding{0, 0};
  Shape dilation{1, 1};
  int64_t groups = 1;
  std::string data_layout = "NCHW";
  std::string kernel_layout = "IOHW";
  std::string out_layout;
  std::optional<DataType> out_dtype;
};

// Of conv1d and conv3d, and of their transposes. Empty layouts are NCW and OIW (IOW), or NCDHW and OIDHW (IODHW); one
// value of strides, dilation or output_padding stands for all spatial axes.
struct ConvNDAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.ConvNDAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<ConvNDAttrs>& f);
  Shape strides{1};
  Shape padding{0};
  Shape dilation{1};
  int64_t groups = 1;
  std::optional<int64_t> channels;
  std::optional<Shape> kernel_size;
  Shape output_padding{0};
  std::string data_layout, kernel_layout, out_layout;
  std::optional<DataType> out_dtype;
};

// What a convolution's attributes say, of whatever type they are: layouts and sizes written out.
struct ConvForm {
  std::string letters, kernel_letters;  // N C H W; O I H W, or I O H W of a transpose
  std::string data_layout, kernel_layout, out_layout;
  Shape strides, padding, dilation, output_padding;
  int64_t groups = 1;
  size_t spatial() const { return letters.size() - 2; }
  // The axes of data and kernel that may lie in parts; none of a transpose.
  std::string_view in_parts() const { return kernel_letters[0] == 'O' ? kPackedAxes : std::string_view(); }
};
ConvForm conv_form(const Conv2DAttrs& attrs, size_t spatial = 2, bool transposed = false);
ConvForm conv_form(const Conv2DTransposeAttrs& attrs, size_t spatial = 2, bool transposed = true);
ConvForm conv_form(const ConvNDAttrs& attrs, size_t spatial, bool transposed);

Expr conv2d(Expr data, Expr weight, Conv2DAttrs attrs, Span span = {});
Expr conv2d_transpose(Expr data, Expr weight, Conv2DTransposeAttrs attrs, Span span = {});

}  // namespace headrace::ops
