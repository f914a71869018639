#include "ops/algorithm/fourier.h"

#include <cmath>
#include <numbers>

#include "arith/canonical.h"
#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "ops/loops/index.h"
#include "ops/loops/move.h"
#include "ops/loops/window.h"
#include "relay/expr.h"

namespace headrace::ops {

void DFTAttrs::fields(FieldList<DFTAttrs>& f) {
  f.field<&DFTAttrs::inverse>("inverse", {.default_value = false,
                                          .has_default = true,
                                          .doc = "the inverse transform, whose results are divided by the length"});
}

void StftAttrs::fields(FieldList<StftAttrs>& f) {
  f.field<&StftAttrs::n_fft>("n_fft", {.doc = "elements of a transform"})
      .field<&StftAttrs::hop_length>("hop_length", {.doc = "elements from one transform to the next"})
      .field<&StftAttrs::win_length>("win_length", {.doc = "the length of the window, as Relay's programs say it"})
      .field<&StftAttrs::normalized>(
          "normalized", {.default_value = false, .has_default = true, .doc = "results are divided by sqrt(n_fft)"})
      .field<&StftAttrs::onesided>(
          "onesided", {.default_value = true,
                       .has_default = true,
                       .doc = "only the first n_fft / 2 + 1 frequencies, which say the others for real data"});
}

namespace {

Type relate_dft(const RelationInput& input) {
  const TensorType re = input.tensor(0), im = input.tensor(1);
  if (!re || !im) return {};
  if (!re->dtype.is_float() || re->shape.empty())
    input.fail(fmt::format("re_data must be floats of one axis or more, got {}", show(re)));
  check_same_dtype(input, re, im, "im_data");
  bool is_alike = re->shape.size() == im->shape.size();
  for (size_t i = 0; is_alike && i < re->shape.size(); ++i) is_alike = !arith::is_unequal(re->shape[i], im->shape[i]);
  if (!is_alike) input.fail(fmt::format("im_data must have the shape of re_data, {}, got {}", show(re), show(im)));
  return make_tuple_type({Type(re), Type(re)});
}

// The cosines and sines of the angles 2 pi k / n.
struct Circle {
  std::vector<double> cosines, sines;
  explicit Circle(int64_t n) {
    for (int64_t k = 0; k < n; ++k) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
      cosines.push_back(std::cos(angle));
      sines.push_back(std::sin(angle));
    }
  }
};

std::vector<NDArray> eval_dft(const EvalInput& input) {
  const NDArray re_out = input.make_output(0), im_out = input.make_output(1);
  const int64_t n = re_out.shape().back(), lines = n == 0 ? 0 : re_out.num_elements() / n;
  const bool inverse = input.attrs<DFTAttrs>().inverse;
  const Circle circle(n);
  const double sign = inverse ? -1 : 1, scale = inverse ? 1 / static_cast<double>(n) : 1;
  dispatch_float(re_out.dtype(), [&]<typename T>() {
    const Elements<T> re(input.args[0]), im(input.args[1]), re_result(re_out), im_result(im_out);
    for (int64_t at = 0; at < lines * n; ++at) {
      input.spend(n);
      const int64_t begin = at / n * n, k = at % n;
      double re_sum = 0, im_sum = 0;
      for (int64_t j = 0; j < n; ++j) {
        const auto angle = static_cast<size_t>(j * k % n);
        const double c = circle.cosines[angle], s = sign * circle.sines[angle];
        const auto a = static_cast<double>(re[begin + j]), b = static_cast<double>(im[begin + j]);
        re_sum += a * c + b * s;
        im_sum += b * c - a * s;
      }
      re_result.set(at, static_cast<Compute<T>>(re_sum * scale));
      im_result.set(at, static_cast<Compute<T>>(im_sum * scale));
    }
  });
  return {re_out, im_out};
}

Type relate_stft(const RelationInput& input) {
  const auto& attrs = input.call.attrs_as<StftAttrs>();
  check_sizes(input, "n_fft", {attrs.n_fft}, 1, 1);
  check_sizes(input, "hop_length", {attrs.hop_length}, 1, 1);
  const TensorType data = input.tensor(0), window = input.tensor(1);
  if (!data || !window) return {};
  if (!data->dtype.is_float() || data->shape.size() != 2)
    input.fail(fmt::format("data must be floats [batch, length], got {}", show(data)));
  if (window->dtype.is_bool() || window->shape.size() != 1)
    input.fail(fmt::format("window must be numbers of one dimension, got {}", show(window)));
  const auto width = as_int(window->shape[0]), length = as_int(data->shape[1]);
  if (width && *width > attrs.n_fft)
    input.fail(fmt::format("window has {} elements, and n_fft is {}", *width, attrs.n_fft));
  if (length && *length < attrs.n_fft)
    input.fail(fmt::format("data has lines of {} elements, and n_fft is {}", *length, attrs.n_fft));
  const int64_t rows = attrs.onesided ? attrs.n_fft / 2 + 1 : attrs.n_fft;
  const PrimExpr columns = floor_div(add_const(data->shape[1], -attrs.n_fft), make_int(attrs.hop_length)) + 1;
  return make_tensor_type(Array<PrimExpr>{data->shape[0], make_int(rows), result_dim(input, columns), make_int(2)},
                          data->dtype);
}

std::vector<NDArray> eval_stft(const EvalInput& input) {
  const auto& attrs = input.attrs<StftAttrs>();
  const NDArray out = input.make_output();
  const Circle circle(attrs.n_fft);
  const int64_t width = input.args[1].num_elements(), left = (attrs.n_fft - width) / 2;
  const int64_t length = input.args[0].shape()[1];
  if (width > attrs.n_fft || length < attrs.n_fft)
    throw_at(input.call.span, "stft",
             fmt::format("n_fft is {}, the window has {} elements and lines have {}", attrs.n_fft, width, length));
  const double scale = attrs.normalized ? 1 / std::sqrt(static_cast<double>(attrs.n_fft)) : 1;
  const auto read_window = reader_as<double>(input.args[1].dtype());
  dispatch_float(out.dtype(), [&]<typename T>() {
    const Elements<T> data(input.args[0]), result(out);
    int64_t next = 0;
    for_each_index(out.shape(), [&](const Shape& at) {
      input.spend(width);
      double sum = 0;
      for (int64_t k = 0; k < width; ++k) {
        const auto angle = static_cast<size_t>(at[1] * (left + k) % attrs.n_fft);
        const double factor = at[3] == 0 ? circle.cosines[angle] : -circle.sines[angle];
        const auto x = static_cast<double>(data[at[0] * length + at[2] * attrs.hop_length + left + k]);
        sum += read_window(input.args[1], k) * x * factor;
      }
      result.set(next++, static_cast<Compute<T>>(sum * scale));
    });
  });
  return {out};
}

}  // namespace

void register_fourier_ops() {
  OpBuilder(
      "dft",
      "The discrete Fourier transform of the last axis, summed up in float64: re_data, im_data f[..., n] -> (real "
      "parts, imaginary parts), both f[..., n]. The work is n for each result.")
      .arg("re_data", "Tensor", "f[..., n]: the real parts")
      .arg("im_data", "Tensor", "f[..., n]: the imaginary parts")
      .attrs<DFTAttrs>()
      .relation(relate_dft)
      .fusion(FusionKind::opaque)
      .level(3)
      .eval(eval_dft);
  OpBuilder("stft",
            "Fourier transforms of windows of the data, summed up in float64: data f[batch, length], window T[w] -> "
            "f[batch, frequencies, (length - n_fft) / hop_length + 1, 2], real and imaginary parts. A window of less "
            "than n_fft elements lies in the middle, between zeros.")
      .arg("data", "Tensor", "f[batch, length]: the signals")
      .arg("window", "Tensor", "T[w], w at most n_fft: the factors of the elements of each transform")
      .attrs<StftAttrs>()
      .relation(relate_stft)
      .fusion(FusionKind::anchor)
      .level(3)
      .eval(eval_stft);
}

Expr dft(Expr re_data, Expr im_data, bool inverse, Span span) {
  return call_with<DFTAttrs>("dft", {std::move(re_data), std::move(im_data)}, std::move(span),
                             [&](auto& attrs) { attrs.inverse = inverse; });
}

Expr stft(Expr data, Expr window, StftAttrs attrs, Span span) {
  return relay::make_call("stft", {std::move(data), std::move(window)}, make_object<StftAttrs>(std::move(attrs)),
                          std::move(span));
}

}  // namespace headrace::ops
