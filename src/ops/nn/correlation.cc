#include "ops/nn/correlation.h"

#include <cmath>

#include "arith/canonical.h"
#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "ops/loops/move.h"
#include "ops/loops/window.h"
#include "relay/expr.h"

namespace headrace::ops {

void CorrelationAttrs::fields(FieldList<CorrelationAttrs>& f) {
  using A = CorrelationAttrs;
  f.field<&A::kernel_size>(
       "kernel_size", {.default_value = 1, .has_default = true, .doc = "height and width of what is compared; odd"})
      .field<&A::max_displacement>("max_displacement",
                                   {.default_value = 1,
                                    .has_default = true,
                                    .doc = "how far the place in data2 is from that in data1 at most, along each axis"})
      .field<&A::stride1>(
          "stride1", {.default_value = 1, .has_default = true, .doc = "elements of data1 from one result to the next"})
      .field<&A::stride2>(
          "stride2",
          {.default_value = 1, .has_default = true, .doc = "elements of data2 from one displacement to the next"})
      .field<&A::padding>("padding", {.default_value = Shape{0, 0},
                                      .has_default = true,
                                      .doc = "zeros around each plane: one number, height and width, or top, left, "
                                             "bottom, right"})
      .field<&A::is_multiply>("is_multiply",
                              {.default_value = true,
                               .has_default = true,
                               .doc = "products of elements; otherwise the absolute values of their differences"})
      .field<&A::layout>("layout", {.default_value = "NCHW", .has_default = true, .doc = "NCHW"});
}

namespace {

void check_correlation(const RelationInput& input, const CorrelationAttrs& attrs) {
  check_one_of(input, "layout", attrs.layout, {"NCHW"});
  check_sizes(input, "kernel_size", {attrs.kernel_size}, 1, 1);
  check_sizes(input, "max_displacement", {attrs.max_displacement}, 1, 0);
  check_sizes(input, "stride1", {attrs.stride1}, 1, 1);
  check_sizes(input, "stride2", {attrs.stride2}, 1, 1);
  if (attrs.kernel_size % 2 == 0) input.fail(fmt::format("kernel_size is {}; it is odd", attrs.kernel_size));
}

Type relate_correlation(const RelationInput& input) {
  const auto& attrs = input.call.attrs_as<CorrelationAttrs>();
  check_correlation(input, attrs);
  const Window window = make_window(input, 2, {1, 1}, attrs.padding, {1, 1});
  const TensorType data = input.tensor(0), other = input.tensor(1);
  if (!data || !other) return {};
  if (data->shape.size() != 4 || !data->dtype.is_float())
    input.fail(fmt::format("data1 must be floats [N, C, H, W], got {}", show(data)));
  check_same_dtype(input, data, other, "data2");
  bool is_alike = other->shape.size() == 4;
  for (size_t i = 0; is_alike && i < 4; ++i) is_alike = !arith::is_unequal(data->shape[i], other->shape[i]);
  if (!is_alike) input.fail(fmt::format("data2 must have the shape of data1, {}, got {}", show(data), show(other)));
  const int64_t width = 2 * displacement_steps(attrs) + 1,
                border = attrs.max_displacement + (attrs.kernel_size - 1) / 2;
  check_sizes(input, "the number of displacements", {width}, 1, 1);
  Array<PrimExpr> dims{data->shape[0], make_int(width * width)};
  // Results lie stride1 apart, as many as begin within: the windows of one element more are as many.
  Window places = window;
  places.strides = {attrs.stride1, attrs.stride1};
  for (size_t i = 0; i < 2; ++i) dims.push_back(window_count(input, places, i, data->shape[2 + i], 2 * border + 1));
  return make_tensor_type(dims, data->dtype);
}

// Returns an element of a plane, whose sizes are the last two of `shape`; zero outside.
template <typename T>
Compute<T> element_or_zero(const Elements<T>& x, const Shape& shape, int64_t plane, int64_t row, int64_t column) {
  const bool is_inside = row >= 0 && row < shape[2] && column >= 0 && column < shape[3];
  return is_inside ? x[(plane * shape[2] + row) * shape[3] + column] : Compute<T>(0);
}

// Computes the result at [n, displacement, p, q].
template <typename T>
Compute<T> correlation_at(const CorrelationAttrs& attrs, const Shape& shape, const Elements<T>& x, const Elements<T>& y,
                          const Shape& at) {
  const Window window = window_of(2, {1, 1}, attrs.padding, {1, 1});
  const int64_t steps = displacement_steps(attrs), width = 2 * steps + 1, size = attrs.kernel_size;
  const int64_t down = (at[1] / width - steps) * attrs.stride2, across = (at[1] % width - steps) * attrs.stride2;
  Compute<T> total = 0;
  for_each_index({shape[1], size, size}, [&](const Shape& r) {
    const int64_t plane = at[0] * shape[1] + r[0];
    const int64_t row = at[2] * attrs.stride1 + attrs.max_displacement + r[1] - window.pad_begin[0];
    const int64_t column = at[3] * attrs.stride1 + attrs.max_displacement + r[2] - window.pad_begin[1];
    const Compute<T> a = element_or_zero(x, shape, plane, row, column);
    const Compute<T> b = element_or_zero(y, shape, plane, row + down, column + across);
    total += attrs.is_multiply ? a * b : std::abs(a - b);
  });
  return total / static_cast<Compute<T>>(shape[1] * size * size);
}

std::vector<NDArray> eval_correlation(const EvalInput& input) {
  const auto& attrs = input.attrs<CorrelationAttrs>();
  const NDArray out = input.make_output();
  const Shape& shape = input.args[0].shape();
  dispatch_float(out.dtype(), [&]<typename T>() {
    const Elements<T> x(input.args[0]), y(input.args[1]), result(out);
    int64_t next = 0;
    for_each_index(out.shape(), [&](const Shape& at) {
      input.spend(shape[1] * attrs.kernel_size * attrs.kernel_size);
      result.set(next++, correlation_at(attrs, shape, x, y, at));
    });
  });
  return {out};
}

}  // namespace

void register_correlation_ops() {
  OpBuilder(
      "nn.correlation",
      "How alike the neighbourhoods of two images are: for each place of data1 and each displacement of data2, D * "
      "D of them, the mean of the products of kernel_size x kernel_size elements of all channels: data1, data2 "
      "f[N,C,H,W] -> f[N,D*D,P,Q] with D = 2 * (max_displacement / stride2) + 1 and P = (H + top + bottom - "
      "kernel_size - 2 * max_displacement) / stride1 + 1.")
      .arg("data1", "Tensor", "f[N, C, H, W]: the image whose places are compared")
      .arg("data2", "Tensor", "f[N, C, H, W], of the same type: the image that is displaced")
      .attrs<CorrelationAttrs>()
      .relation(relate_correlation)
      .fusion(FusionKind::anchor)
      .level(2)
      .eval(eval_correlation);
}

}  // namespace headrace::ops
