#include "frontend/onnx/op_table.h"
#include "frontend/onnx/windows.h"
#include "ops/nn/conv.h"
#include "ops/nn/pad.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/join.h"
#include "ops/tensor/shape.h"
#include "ops/tensor/slice.h"

namespace headrace::onnx {

namespace {

// The sizes of the kernel: the weight's, which kernel_shape may repeat.
Shape kernel_of(NodeContext& context, size_t spatial) {
  const Expr weight = context.input(1);
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

// One spatial axis as the second of two.
void add_axis(Windows& windows) {
  windows.kernel.insert(windows.kernel.begin(), 1);
  windows.strides.insert(windows.strides.begin(), 1);
  windows.dilations.insert(windows.dilations.begin(), 1);
  windows.pad_begin.insert(windows.pad_begin.begin(), 0);
  windows.pad_end.insert(windows.pad_end.begin(), 0);
}

ops::Conv2DAttrs conv2d_attrs(const Windows& windows, int64_t groups, std::optional<int64_t> channels) {
  ops::Conv2DAttrs attrs;
  attrs.strides = windows.strides;
  attrs.padding = windows.padding();
  attrs.dilation = windows.dilations;
  attrs.groups = groups;
  attrs.channels = channels;
  attrs.kernel_size = windows.kernel;
  return attrs;
}

constexpr int64_t kMostDepthTaps = 64;

// x[N,C,D,H,W] by w[M,C/g,K,R,S] as one 2-D convolution: the K depth taps of each output depth are laid side by side as
// K times as many channels, the output depths as batches.
Expr convolve_3d(NodeContext& context, Expr data, const Expr& weight, Windows windows, int64_t groups) {
  const Span& span = context.span();
  data = ops::pad(data, {{0, 0}, {0, 0}, {windows.pad_begin[0], windows.pad_end[0]}, {0, 0}, {0, 0}},
                  context.scalar(0, context.dtype(data)), "constant", span);
  const Shape x = context.known_shape(data), w = context.known_shape(weight);
  const int64_t stride = windows.strides[0], dilation = windows.dilations[0], taps = windows.kernel[0];
  const int64_t depth = (x[2] - (taps - 1) * dilation - 1) / stride + 1;
  if (x[2] < (taps - 1) * dilation + 1) context.invalid("the kernel is larger than the padded input");
  if (taps > kMostDepthTaps) context.refuse(HR_REASON_SHAPE_UNSUPPORTED, "a kernel of depth {} is not supported", taps);
  Array<Expr> slices;
  for (int64_t k = 0; k < taps; ++k) {
    const int64_t begin = k * dilation;
    slices.push_back(ops::strided_slice(data, Shape{begin}, Shape{begin + (depth - 1) * stride + 1}, Shape{stride},
                                        Shape{2}, "end", span));
  }
  const Expr stacked = ops::stack(slices, 2, span);  // [N, C, K, depth, H, W]
  const Expr frames =
      context.reshape(ops::transpose(stacked, {0, 3, 1, 2, 4, 5}, span), Shape{x[0] * depth, x[1] * taps, x[3], x[4]});
  const Expr flat_weight = context.reshape(weight, Shape{w[0], w[1] * taps, w[3], w[4]});
  for (Shape* sizes : {&windows.kernel, &windows.strides, &windows.dilations, &windows.pad_begin, &windows.pad_end})
    sizes->erase(sizes->begin());
  const Expr planes = ops::conv2d(frames, flat_weight, conv2d_attrs(windows, groups, w[0]), span);
  const Shape out = context.known_shape(planes);
  return ops::transpose(context.reshape(planes, Shape{x[0], depth, w[0], out[2], out[3]}), {0, 2, 1, 3, 4}, span);
}

Expr with_bias(NodeContext& context, const Expr& result) {
  return context.has(2) ? ops::bias_add(result, context.input(2), 1, context.span()) : result;
}

// ONNX Conv (1, 11): x[N,C,spatial], w[M,C/group,kernel], optional b[M].
Exprs convert_conv(NodeContext& context) {
  const size_t spatial = spatial_rank(context, 3);
  context.check_dtype(context.input(0), "data", is_number, "numbers");
  Windows windows = read_windows(context, kernel_of(context, spatial));
  const int64_t groups = context.int_attr("group", 1);
  Expr data = context.input(0), weight = context.input(1);
  const Span& span = context.span();
  if (spatial == 3) return {with_bias(context, convolve_3d(context, data, weight, windows, groups))};
  if (spatial == 1) {
    add_axis(windows);
    data = ops::expand_dims(data, 2, 1, span);
    weight = ops::expand_dims(weight, 2, 1, span);
  }
  const auto channels = as_int(context.dims(weight)[0]);
  Expr result = ops::conv2d(data, weight, conv2d_attrs(windows, groups, channels), span);
  if (spatial == 1) result = ops::squeeze(result, {2}, span);
  return {with_bias(context, result)};
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

Shape same_sizes(NodeContext& context, const Windows& windows) {
  Shape sizes;
  for (size_t i = 0; i < windows.strides.size(); ++i)
    sizes.push_back(context.known_dim(context.input(0), 2 + i) * windows.strides[i]);
  return sizes;
}

// ONNX ConvTranspose (1, 11): x[N,C,spatial], w[C,M/group,kernel], optional b[M].
Exprs convert_conv_transpose(NodeContext& context) {
  const size_t spatial = spatial_rank(context, 3);
  context.check_dtype(context.input(0), "data", is_number, "numbers");
  Windows windows = read_windows(context, kernel_of(context, spatial));
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
  Expr data = context.input(0), weight = context.input(1);
  const Span& span = context.span();
  if (spatial == 1) {
    add_axis(windows);
    output_padding.insert(output_padding.begin(), 0);
    data = ops::expand_dims(data, 2, 1, span);
    weight = ops::expand_dims(weight, 2, 1, span);
  }
  const auto attrs_of = [&]<typename A>(A attrs) {
    attrs.kernel_size = windows.kernel;
    attrs.strides = windows.strides;
    attrs.output_padding = output_padding;
    attrs.padding = windows.padding();
    attrs.dilation = windows.dilations;
    attrs.groups = context.int_attr("group", 1);
    return make_object<A>(std::move(attrs));
  };
  if (spatial == 3) {
    const auto attrs = attrs_of(ops::Conv3DTransposeAttrs());
    return {with_bias(context, relay::make_call("nn.conv3d_transpose", {data, weight}, attrs, span))};
  }
  Expr result = ops::conv2d_transpose(data, weight, *attrs_of(ops::Conv2DTransposeAttrs()), span);
  if (spatial == 1) result = ops::squeeze(result, {2}, span);
  return {with_bias(context, result)};
}

}  // namespace

std::span<const OpRow> conv_rows() {
  static constexpr OpRow kRows[] = {
      {"Conv", convert_conv, 2, 3},
      {"ConvTranspose", convert_conv_transpose, 2, 3},
  };
  return kRows;
}

}  // namespace headrace::onnx
