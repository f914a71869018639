// Convolutions.
#pragma once

#include "ops/loops/window.h"
#include "ops/register.h"

namespace headrace::ops {

// Attributes of convolutions over 1, 2 or 3 spatial axes and of their transposes. Each op has a type of its own, such
// as Conv2DAttrs, with the defaults of its rank. One value of strides, dilation or output_padding stands for all axes.
struct ConvAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.AnyConvAttrs";
  static constexpr int32_t child_slots = 7;
  // Makes the attributes with the defaults of that rank.
  ConvAttrs(size_t spatial, bool transposed);
  size_t spatial;   // no field: the type says it
  bool transposed;  // nor this
  std::optional<int64_t> channels;
  std::optional<Shape> kernel_size;
  Shape strides, padding, dilation;
  Shape output_padding;  // used by transposes
  int64_t groups = 1;
  std::string data_layout, kernel_layout, out_layout;
  std::optional<DataType> out_dtype;
};

template <size_t rank, bool is_transpose>
struct ConvAttrsOf : ConvAttrs {
  using Parent = ConvAttrs;
  static constexpr std::string_view keys[6] = {"relay.attrs.Conv1DAttrs",          "relay.attrs.Conv2DAttrs",
                                               "relay.attrs.Conv3DAttrs",          "relay.attrs.Conv1DTransposeAttrs",
                                               "relay.attrs.Conv2DTransposeAttrs", "relay.attrs.Conv3DTransposeAttrs"};
  static constexpr std::string_view type_key = keys[rank - 1 + (is_transpose ? 3 : 0)];
  static constexpr bool is_final = true;
  static void fields(FieldList<ConvAttrsOf>& f);
  ConvAttrsOf() : ConvAttrs(rank, is_transpose) {}
};
using Conv1DAttrs = ConvAttrsOf<1, false>;
using Conv2DAttrs = ConvAttrsOf<2, false>;
using Conv3DAttrs = ConvAttrsOf<3, false>;
using Conv1DTransposeAttrs = ConvAttrsOf<1, true>;
using Conv2DTransposeAttrs = ConvAttrsOf<2, true>;
using Conv3DTransposeAttrs = ConvAttrsOf<3, true>;

// Attributes of nn.conv2d_backward_weight: those of the convolution whose weight gradient it computes. `out_layout` is
// the layout of the incoming gradient (the attribute grad_layout), which has the form of the convolution's result.
struct Conv2DBackwardWeightAttrs : ConvAttrs {
  using Parent = ConvAttrs;
  static constexpr std::string_view type_key = "relay.attrs.Conv2DBackwardWeightAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<Conv2DBackwardWeightAttrs>& f);
  Conv2DBackwardWeightAttrs() : ConvAttrs(2, false) { out_layout = data_layout; }
};

// The attributes with layouts and sizes written out.
struct ConvForm {
  std::string letters, kernel_letters;  // N C H W; O I H W, or I O H W of a transpose
  std::string data_layout, kernel_layout, out_layout;
  Shape strides, padding, dilation, output_padding;
  int64_t groups = 1;
  size_t spatial() const { return letters.size() - 2; }
  // Returns the axes of data and kernel that may be in parts; none for a transpose.
  std::string_view in_parts() const { return kernel_letters[0] == 'O' ? kPackedAxes : std::string_view(); }
};
ConvForm conv_form(const ConvAttrs& attrs);

Expr conv2d(Expr data, Expr weight, Conv2DAttrs attrs, Span span = {});
Expr conv2d_backward_weight(Expr grad, Expr data, Conv2DBackwardWeightAttrs attrs, Span span = {});
Expr conv2d_transpose(Expr data, Expr weight, Conv2DTransposeAttrs attrs, Span span = {});

}  // namespace headrace::ops
