// Discrete Fourier transforms. ONNX has real and imaginary parts beside each other on the last axis.
#include "frontend/onnx/single/rows.h"
#include "ops/algorithm/fourier.h"
#include "ops/nn/pad.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/join.h"
#include "ops/tensor/shape.h"
#include "ops/tensor/slice.h"

namespace headrace::onnx {

namespace {

// Returns part k of the last axis, without that axis.
Expr part_of(const Expr& x, int64_t k, size_t rank, const Span& span) {
  const auto last = static_cast<int64_t>(rank) - 1;
  return ops::squeeze(ops::strided_slice(x, Shape{k}, Shape{k + 1}, {}, Shape{last}, "end", span), Shape{last}, span);
}

// Returns x with `size` elements along an axis, the first ones and zeros behind them.
Expr resized(NodeContext& context, const Expr& x, size_t axis, int64_t size) {
  const int64_t n = context.known_dim(x, axis);
  if (size < n)
    return ops::strided_slice(x, Shape{0}, Shape{size}, {}, Shape{static_cast<int64_t>(axis)}, "end", context.span());
  if (size == n) return x;
  std::vector<Shape> widths(context.rank(x), Shape{0, 0});
  widths[axis] = {0, size - n};
  return ops::pad(x, Array<Shape>(widths.begin(), widths.end()), context.scalar(0, context.dtype(x)), "constant",
                  context.span());
}

Shape exchanged(size_t rank, size_t a, size_t b) {
  Shape axes;
  for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  std::swap(axes[a], axes[b]);
  return axes;
}

int64_t dft_axis(NodeContext& context) {
  if (context.opset() < 20) return context.int_attr("axis", 1);
  return context.has(2) ? static_cast<int64_t>(context.number(2, "axis")) : -2;
}

// ONNX DFT (17, 20).
Exprs convert_dft(NodeContext& context) {
  const Expr x = context.input(0);
  const Span& span = context.span();
  context.check_dtype(x, "its input", is_float, "floating point");
  const size_t rank = context.rank(x);
  const int64_t parts = rank < 2 ? 0 : context.known_dim(x, rank - 1);
  if (parts != 1 && parts != 2) context.invalid("the last axis of its input must have 1 or 2 elements");
  const size_t axis = context.axis_of(dft_axis(context), rank);
  if (axis == rank - 1) context.invalid("its axis is that of the real and imaginary parts");
  const bool inverse = context.flag_attr("inverse", false), onesided = context.flag_attr("onesided", false);
  if (inverse && onesided)
    context.refuse(HR_REASON_ATTRIBUTE_UNSUPPORTED, "an inverse transform of one side is not supported");
  const int64_t n = context.has(1) ? static_cast<int64_t>(context.number(1, "dft_length")) : context.known_dim(x, axis);
  if (n < 1) context.invalid("its dft_length is {}", n);
  const Shape order = exchanged(rank - 1, axis, rank - 2);
  const auto line = [&](const Expr& data) { return ops::transpose(resized(context, data, axis, n), order, span); };
  const Expr re = line(part_of(x, 0, rank, span));
  const Expr im = parts == 2 ? line(part_of(x, 1, rank, span)) : ops::unary("zeros_like", re, span);
  const Expr result = ops::dft(re, im, inverse, span);
  const auto back = [&](int32_t k) {
    const Expr all = ops::transpose(relay::make_tuple_get_item(result, k, span), order, span);
    return onesided ? resized(context, all, axis, n / 2 + 1) : all;
  };
  return {ops::stack({back(0), back(1)}, static_cast<int64_t>(rank) - 1, span)};
}

// ONNX STFT (17).
Exprs convert_stft(NodeContext& context) {
  const Expr x = context.input(0);
  const Span& span = context.span();
  context.check_dtype(x, "its signal", is_float, "floating point");
  const size_t rank = context.rank(x);
  if (rank != 2 && rank != 3) context.invalid("its signal must have 2 or 3 dimensions");
  if (rank == 3 && context.known_dim(x, 2) != 1)
    context.refuse(HR_REASON_SHAPE_UNSUPPORTED, "a signal of complex numbers is not supported");
  const Expr signal = rank == 3 ? ops::squeeze(x, Shape{2}, span) : x;
  ops::StftAttrs attrs;
  attrs.hop_length = static_cast<int64_t>(context.number(1, "frame_step"));
  if (!context.has(2) && !context.has(3)) context.invalid("it has neither a window nor a frame_length");
  attrs.n_fft =
      context.has(3) ? static_cast<int64_t>(context.number(3, "frame_length")) : context.known_dim(context.input(2), 0);
  attrs.win_length = attrs.n_fft;
  attrs.onesided = context.flag_attr("onesided", true);
  if (attrs.n_fft < 1 || attrs.hop_length < 1)
    context.invalid("its frames have {} elements and lie {} apart", attrs.n_fft, attrs.hop_length);
  context.check_table_size(attrs.n_fft);
  const Expr window =
      context.has(2) ? context.input(2)
                     : context.int_constant({attrs.n_fft}, std::vector<int64_t>(static_cast<size_t>(attrs.n_fft), 1));
  return {ops::transpose(ops::stft(signal, window, attrs, span), Shape{0, 2, 1, 3}, span)};
}

}  // namespace

std::span<const OpRow> fourier_rows() {
  static constexpr OpRow kRows[] = {{"DFT", convert_dft, 1, 3, 17}, {"STFT", convert_stft, 2, 4, 17}};
  return kRows;
}

}  // namespace headrace::onnx
