// Gradients of convolutions. A convolution is linear in its data and in its weight, and the three maps (to the result,
// back to the data, back to the weight) are each other's gradients:
//
//   y = conv(x, w):          by x conv_transpose(g, w), by w backward_weight(g, x)
//   y = conv_transpose(x, w): the convolution takes y's gradient for its data, and x for its result's gradient
//   w' = backward_weight(y, x): by y conv(x, g), by x conv_transpose(y, g)
#include <algorithm>

#include "ops/loops/window.h"
#include "ops/nn/conv.h"
#include "ops/nn/pad.h"
#include "ops/op_handles.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/shape.h"
#include "ops/tensor/slice.h"
#include "passes/gradient/rule_tools.h"

namespace headrace::passes::gradient_rules {

namespace {

// A convolution, for whose three maps the op at hand is one; sizes of the spatial axes.
struct Convolution {
  ops::ConvForm form;  // letters N C ..., kernel letters O I ...
  ops::Window window;
  std::vector<int64_t> data, kernel, out;

  size_t spatial() const { return form.spatial(); }
  Shape padding() const {
    Shape values = window.pad_begin;
    values.insert(values.end(), window.pad_end.begin(), window.pad_end.end());
    return values;
  }
  // Returns the kernel's layout with inputs and outputs exchanged.
  std::string turned_kernel() const {
    std::string layout = form.kernel_layout;
    std::swap(layout[layout.find('O')], layout[layout.find('I')]);
    return layout;
  }
};

// Returns the sizes of a typed tensor in `layout`, in the order of the letters after the first two.
std::vector<int64_t> spatial_sizes(const GradientSite& s, const Expr& tensor, const std::string& layout,
                                   const std::string& letters) {
  if (layout.size() != letters.size())
    refuse(s, fmt::format("there is no gradient in layout {}, which has axes in parts; see ConvertLayout", layout));
  std::vector<int64_t> sizes;
  for (const char letter : letters.substr(2)) sizes.push_back(static_dim_of(tensor, layout.find(letter)));
  return sizes;
}

// Returns `form` as a convolution with its letters, and with expressions for its data, weight and result.
Convolution convolution_of(const GradientSite& s, ops::ConvForm form, const Expr& data, const Expr& weight,
                           const Expr& result) {
  form.kernel_letters = "OI" + form.letters.substr(2);
  Convolution c{form, ops::window_of(form.spatial(), form.strides, form.padding, form.dilation), {}, {}, {}};
  c.data = spatial_sizes(s, data, form.data_layout, form.letters);
  c.kernel = spatial_sizes(s, weight, form.kernel_layout, form.kernel_letters);
  c.out = spatial_sizes(s, result, form.out_layout, form.letters);
  return c;
}

template <typename Attrs>
Expr convolution_call(std::string_view op, const Convolution& c, const Expr& first, const Expr& second,
                      const auto& fill) {
  return ops::call_with<Attrs>(op, {first, second}, {}, [&](ops::ConvAttrs& attrs) {
    attrs.strides = c.window.strides;
    attrs.dilation = c.window.dilation;
    attrs.padding = c.padding();
    attrs.groups = c.form.groups;
    fill(attrs);
  });
}
// Makes nn.conv1d, 2d or 3d, or its transpose.
template <bool is_transpose>
Expr convolution_of_rank(const Convolution& c, const Expr& data, const Expr& weight, const auto& fill) {
  const std::string op = fmt::format("nn.conv{}d{}", c.spatial(), is_transpose ? "_transpose" : "");
  if (c.spatial() == 1) return convolution_call<ops::ConvAttrsOf<1, is_transpose>>(op, c, data, weight, fill);
  if (c.spatial() == 2) return convolution_call<ops::ConvAttrsOf<2, is_transpose>>(op, c, data, weight, fill);
  return convolution_call<ops::ConvAttrsOf<3, is_transpose>>(op, c, data, weight, fill);
}

Expr result_of(const Convolution& c, const Expr& data, const Expr& weight) {
  return convolution_of_rank<false>(c, data, weight, [&](ops::ConvAttrs& attrs) {
    attrs.data_layout = c.form.data_layout;
    attrs.kernel_layout = c.form.kernel_layout;
    attrs.out_layout = c.form.out_layout;
  });
}

// Makes the transposed convolution, whose inputs are the output channels of the weight.
Expr back_to_data(const Convolution& c, const Expr& gradient, const Expr& weight) {
  return convolution_of_rank<true>(c, gradient, weight, [&](ops::ConvAttrs& attrs) {
    attrs.output_padding = Shape(c.spatial(), 0);
    for (size_t i = 0; i < c.spatial(); ++i) {
      const int64_t reach = (c.kernel[i] - 1) * c.window.dilation[i] + 1;
      const int64_t least = (c.out[i] - 1) * c.window.strides[i] - c.window.pad_begin[i] - c.window.pad_end[i] + reach;
      attrs.output_padding[i] = c.data[i] - least;
    }
    attrs.data_layout = c.form.out_layout;
    attrs.kernel_layout = c.turned_kernel();
    attrs.out_layout = c.form.data_layout;
  });
}

// Returns the axes of `layout` in the order of `letters`.
Shape order_of(std::string_view layout, std::string_view letters) {
  Shape axes;
  for (const size_t axis : ops::axes_of(layout, letters)) axes.push_back(static_cast<int64_t>(axis));
  return axes;
}

// Makes the gradient of the kernel as a convolution over the data: channels become the batch, and the batch is summed
// as channels are, each group by itself. Strides and dilation change places. The result may be longer than the kernel
// where windows left a remainder.
Expr back_to_weight_by_conv(const Convolution& c, const Expr& gradient, const Expr& data, int64_t batch,
                            int64_t channels) {
  const size_t rank = c.spatial() + 2;
  const Shape swapped = moved_axis(rank, 1, 0);
  const int64_t groups = c.form.groups;
  Expr x = ordered(data, order_of(c.form.data_layout, c.form.letters));
  if (groups == 1) {
    x = ops::transpose(x, swapped);
  } else {
    Shape cut{batch, groups, channels / groups}, joined{channels / groups, groups * batch};
    cut.insert(cut.end(), c.data.begin(), c.data.end());
    joined.insert(joined.end(), c.data.begin(), c.data.end());
    Shape axes = moved_axis(rank + 1, 2, 0);
    std::swap(axes[1], axes[2]);
    x = ops::reshape(ops::transpose(ops::reshape(x, cut), axes), joined);
  }
  const Expr g = ops::transpose(ordered(gradient, order_of(c.form.out_layout, c.form.letters)), swapped);
  const Expr whole = convolution_of_rank<false>(c, x, g, [&](ops::ConvAttrs& attrs) {
    attrs.strides = c.window.dilation;
    attrs.dilation = c.window.strides;
  });
  Shape axes;
  for (size_t i = 2; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  const Expr weight = ops::strided_slice(whole, Shape(c.spatial(), 0), Shape(c.kernel.begin(), c.kernel.end()),
                                         Shape(c.spatial(), 1), axes);
  return ordered(ops::transpose(weight, swapped), order_of(c.form.kernel_letters, c.form.kernel_layout));
}

// Returns the gradient by the kernel; `data` is typed, or has the type of `like`, which is.
Expr back_to_weight(const Convolution& c, const Expr& gradient, const Expr& data, const Expr& like) {
  if (c.spatial() != 2)
    return back_to_weight_by_conv(c, gradient, data, static_dim_of(like, c.form.data_layout.find('N')),
                                  static_dim_of(like, c.form.data_layout.find('C')));
  return convolution_call<ops::Conv2DBackwardWeightAttrs>(op::kConv2DBackwardWeight, c, gradient, data,
                                                          [&](ops::ConvAttrs& attrs) {
                                                            attrs.kernel_size = Shape(c.kernel.begin(), c.kernel.end());
                                                            attrs.out_layout = c.form.out_layout;
                                                            attrs.data_layout = c.form.data_layout;
                                                            attrs.kernel_layout = c.form.kernel_layout;
                                                          });
}

template <typename Attrs>
Gradients grad_conv(const GradientSite& s) {
  const Convolution c = convolution_of(s, ops::conv_form(s.call.attrs_as<Attrs>()), s.arg(0), s.arg(1), s.result);
  const Expr g = operand_gradient(s);
  return {back_to_data(c, g, s.arg(1)), back_to_weight(c, g, s.arg(0), s.arg(0))};
}
// The numbers of windows along the spatial axes of a convolution's data, less those that its result has. Transposes
// whose output_padding reaches the stride give data for more windows, which only read zeros.
Shape extra_windows(const Convolution& c) {
  Shape extra;
  for (size_t i = 0; i < c.spatial(); ++i) {
    const int64_t reach = (c.kernel[i] - 1) * c.window.dilation[i] + 1;
    const int64_t room = c.data[i] + c.window.pad_begin[i] + c.window.pad_end[i] - reach;
    extra.push_back(room / c.window.strides[i] + 1 - c.out[i]);
  }
  return extra;
}

// Cuts the last `extra` elements off the spatial axes of a convolution's result.
Expr without_windows(const Convolution& c, const Expr& result, const Shape& extra) {
  Shape axes;
  for (const char letter : c.form.letters.substr(2))
    axes.push_back(static_cast<int64_t>(c.form.out_layout.find(letter)));
  return ops::strided_slice(result, Shape(extra.size(), 0), Shape(c.out.begin(), c.out.end()), Shape(extra.size(), 1),
                            axes);
}

// Adds `extra` zeros to the spatial axes of a convolution's result.
Expr with_windows(const Convolution& c, const GradientSite& s, const Expr& result, const Shape& extra) {
  Array<Shape> widths;
  for (const char letter : c.form.out_layout) {
    const size_t at = c.form.letters.find(letter);
    widths.push_back({0, at < 2 ? 0 : extra[at - 2]});
  }
  return ops::pad(result, widths, scalar(0, s));
}

template <typename Attrs>
Gradients grad_conv_transpose(const GradientSite& s) {
  ops::ConvForm form = ops::conv_form(s.call.attrs_as<Attrs>());
  std::swap(form.data_layout, form.out_layout);
  std::swap(form.kernel_layout[form.kernel_layout.find('O')], form.kernel_layout[form.kernel_layout.find('I')]);
  const Convolution c = convolution_of(s, form, s.result, s.arg(1), s.arg(0));
  const Expr g = operand_gradient(s), by_data = result_of(c, g, s.arg(1));
  const Shape extra = extra_windows(c);
  if (std::all_of(extra.begin(), extra.end(), [](int64_t count) { return count == 0; }))
    return {by_data, back_to_weight(c, s.arg(0), g, s.result)};
  return {without_windows(c, by_data, extra), back_to_weight(c, with_windows(c, s, s.arg(0), extra), g, s.result)};
}
Gradients grad_backward_weight(const GradientSite& s) {
  const ops::ConvForm form = ops::conv_form(s.call.attrs_as<ops::Conv2DBackwardWeightAttrs>());
  const Convolution c = convolution_of(s, form, s.arg(1), s.result, s.arg(0));
  const Expr g = operand_gradient(s);
  return {result_of(c, s.arg(1), g), back_to_data(c, s.arg(0), g)};
}

constexpr GradientRow kConvRows[] = {
    {op::kConv1D, grad_conv<ops::Conv1DAttrs>},
    {op::kConv1DTranspose, grad_conv_transpose<ops::Conv1DTransposeAttrs>},
    {op::kConv2D, grad_conv<ops::Conv2DAttrs>},
    {op::kConv2DBackwardWeight, grad_backward_weight},
    {op::kConv2DTranspose, grad_conv_transpose<ops::Conv2DTransposeAttrs>},
    {op::kConv3D, grad_conv<ops::Conv3DAttrs>},
    {op::kConv3DTranspose, grad_conv_transpose<ops::Conv3DTransposeAttrs>},
};

}  // namespace

std::span<const GradientRow> conv_gradients() { return kConvRows; }

}  // namespace headrace::passes::gradient_rules
