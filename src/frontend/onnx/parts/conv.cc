#include "frontend/onnx/parts/conv.h"

#include <array>

#include "frontend/onnx/parts/windows.h"
#include "ops/nn/conv.h"
#include "ops/tensor/broadcast.h"

namespace headrace::onnx {

namespace {

// The sizes of the kernel: the weight's, which kernel_shape may repeat.
Shape kernel_of(NodeContext& context, const Expr& weight, size_t spatial) {
  if (context.rank(weight) != spatial + 2) {
    context.invalid("its weight has {} dimensions, expected {}", context.rank(weight), spatial + 2);
  }
  Shape kernel;
  for (size_t i = 0; i < spatial; ++i) kernel.push_back(context.known_dim(weight, 2 + i));
  const auto declared = context.ints_attr("kernel_shape");
  if (declared && *declared != kernel) {
    context.invalid("attribute 'kernel_shape' is [{}], but the weight's kernel is [{}]", fmt::join(*declared, ", "),
                    fmt::join(kernel, ", "));
  }
  return kernel;
}

// The ops of a convolution over 1, 2 or 3 axes, and of its transpose.
constexpr std::array<std::string_view, 3> kConvOps = {"nn.conv1d", "nn.conv2d", "nn.conv3d"};
constexpr std::array<std::string_view, 3> kTransposeOps = {"nn.conv1d_transpose", "nn.conv2d_transpose",
                                                           "nn.conv3d_transpose"};

// Makes the call of a convolution's op, whose attributes `fill` sets, for the type of that op.
template <bool is_transpose, typename Fill>
Expr convolve(std::string_view op, const Array<Expr>& args, size_t spatial, const Span& span, Fill&& fill) {
  const auto call = [&]<size_t rank>(std::integral_constant<size_t, rank>) {
    using Attrs = ops::ConvAttrsOf<rank, is_transpose>;
    return ops::call_with<Attrs>(op, args, span, [&](Attrs& attrs) { fill(attrs); });
  };
  if (spatial == 1) return call(std::integral_constant<size_t, 1>());
  if (spatial == 2) return call(std::integral_constant<size_t, 2>());
  return call(std::integral_constant<size_t, 3>());
}

void set_windows(ops::ConvAttrs& attrs, const Windows& windows) {
  attrs.kernel_size = windows.kernel;
  attrs.strides = windows.strides;
  attrs.padding = windows.padding();
  attrs.dilation = windows.dilations;
}

// ONNX ConvTranspose-11: where output_shape is given, or auto_pad is SAME_*, the pads follow from the size wanted.
void fit_output(NodeContext& context, Windows& windows, Shape& output_padding, const Shape& wanted, bool upper) {
  for (size_t i = 0; i < windows.kernel.size(); ++i) {
    const int64_t size = context.known_dim(context.input(0), 2 + i);
    const int64_t total = (size - 1) * windows.strides[i] + output_padding[i] +
                          (windows.kernel[i] - 1) * windows.dilations[i] + 1 - wanted[i];
    if (total < 0) output_padding[i] -= total;
    const int64_t cut = std::max<int64_t>(total, 0);
    windows.pad_begin[i] = upper ? cut / 2 : cut - cut / 2;
    windows.pad_end[i] = cut - windows.pad_begin[i];
  }
}

// ONNX ConvTranspose: each value of output_padding must be below the stride or the dilation. The op takes any.
void check_output_padding(NodeContext& context, const Windows& windows, const Shape& output_padding) {
  for (size_t i = 0; i < output_padding.size(); ++i) {
    if (output_padding[i] >= std::max(windows.strides[i], windows.dilations[i]))
      context.invalid("output_padding ({}) must be below the stride or the dilation", fmt::join(output_padding, ", "));
  }
}

Shape same_sizes(NodeContext& context, const Windows& windows) {
  Shape sizes;
  for (size_t i = 0; i < windows.strides.size(); ++i)
    sizes.push_back(context.known_dim(context.input(0), 2 + i) * windows.strides[i]);
  return sizes;
}

}  // namespace

namespace {

// Makes the call of an op of ONNX Conv, whose attributes it reads; argument 1 is the weight.
Expr call_conv(NodeContext& context, std::string_view op, const Array<Expr>& args, std::optional<DataType> out_dtype) {
  const size_t spatial = spatial_rank(context, 3);
  const Windows windows = read_windows(context, kernel_of(context, args[1], spatial));
  return convolve<false>(op, args, spatial, context.span(), [&](ops::ConvAttrs& attrs) {
    set_windows(attrs, windows);
    attrs.groups = context.int_attr("group", 1);
    attrs.channels = as_int(context.dims(args[1])[0]);
    attrs.out_dtype = out_dtype;
  });
}

}  // namespace

Expr convolution(NodeContext& context, const Expr& data, const Expr& weight) {
  return call_conv(context, kConvOps[spatial_rank(context, 3) - 1], {data, weight}, {});
}

Expr quantized_convolution(NodeContext& context, const Array<Expr>& args) {
  return call_conv(context, "qnn.conv2d", args, DataType::int_(32));
}

Expr transposed_convolution(NodeContext& context) {
  const size_t spatial = spatial_rank(context, 3);
  Windows windows = read_windows(context, kernel_of(context, context.input(1), spatial));
  const std::string auto_pad = context.string_attr("auto_pad", "NOTSET");
  Shape output_padding = read_sizes(context, "output_padding", spatial, 0);
  auto wanted = context.ints_attr("output_shape");
  if (wanted && wanted->size() == spatial + 2) wanted->erase(wanted->begin(), wanted->begin() + 2);
  if (wanted && wanted->size() != spatial) context.invalid("attribute 'output_shape' has the wrong number of values");
  for (const int64_t size : wanted.value_or(Shape())) {
    if (size < 0 || size > INT32_MAX) context.invalid("attribute 'output_shape' has {}", size);
  }
  if (!wanted && auto_pad.starts_with("SAME")) wanted = same_sizes(context, windows);
  if (wanted) fit_output(context, windows, output_padding, *wanted, auto_pad == "SAME_UPPER");
  check_output_padding(context, windows, output_padding);
  const Array<Expr> args{context.input(0), context.input(1)};
  return convolve<true>(kTransposeOps[spatial - 1], args, spatial, context.span(), [&](ops::ConvAttrs& attrs) {
    set_windows(attrs, windows);
    attrs.output_padding = output_padding;
    attrs.groups = context.int_attr("group", 1);
  });
}

Expr with_bias(NodeContext& context, const Expr& result) {
  return context.has(2) ? ops::bias_add(result, context.input(2), 1, context.span()) : result;
}

}  // namespace headrace::onnx
