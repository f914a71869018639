#include <numeric>

#include "frontend/onnx/op_table.h"
#include "frontend/onnx/windows.h"
#include "ops/nn/adaptive_pool.h"
#include "ops/nn/pool.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/reduce.h"

namespace headrace::onnx {

namespace {

ops::PoolAttrs pool_attrs(const Windows& windows, bool ceil_mode) {
  ops::PoolAttrs attrs(windows.kernel.size());
  attrs.pool_size = windows.kernel;
  attrs.strides = windows.strides;
  attrs.dilation = windows.dilations;
  attrs.padding = windows.padding();
  attrs.ceil_mode = ceil_mode;
  return attrs;
}

// ONNX MaxPool (1, 8, 10, 11, 12). The indices (output 1) are not given.
Exprs convert_max_pool(NodeContext& context) {
  spatial_rank(context, 3);
  context.check_dtype(context.input(0), "data", is_number, "numbers");
  context.flag_attr("storage_order", false);  // orders the indices only
  const Windows windows = read_windows(context, read_kernel_shape(context));
  const bool ceil_mode = context.flag_attr("ceil_mode", false);
  return {ops::max_pool(context.input(0), pool_attrs(windows, ceil_mode), context.span())};
}

// ONNX AveragePool (1, 7, 10, 11).
Exprs convert_average_pool(NodeContext& context) {
  spatial_rank(context, 3);
  context.check_dtype(context.input(0), "data", is_float, "floating point");
  const Windows windows = read_windows(context, read_kernel_shape(context));
  auto attrs = pool_attrs(windows, context.flag_attr("ceil_mode", false));
  attrs.count_include_pad = context.flag_attr("count_include_pad", false);
  return {ops::avg_pool(context.input(0), attrs, context.span())};
}

Shape spatial_axes(NodeContext& context) {
  Shape axes(context.rank(context.input(0)) - 2);
  std::iota(axes.begin(), axes.end(), 2);
  return axes;
}

// ONNX GlobalAveragePool-1, GlobalMaxPool-1.
template <bool is_max>
Exprs convert_global_pool(NodeContext& context) {
  const size_t spatial = spatial_rank(context, 8);
  context.check_dtype(context.input(0), "data", is_float, "floating point");
  if (spatial > 3)
    return {ops::reduce(is_max ? "max" : "mean", context.input(0), spatial_axes(context), true, false, context.span())};
  if (spatial != 2) return {ops::adaptive_pool(is_max, context.input(0), Shape(spatial, 1), context.span())};
  return {is_max ? ops::global_max_pool2d(context.input(0), "NCHW", context.span())
                 : ops::global_avg_pool2d(context.input(0), "NCHW", context.span())};
}

Expr raised(NodeContext& context, const Expr& x, double power) {
  return ops::binary("power", x, context.scalar(power, context.dtype(x)), context.span());
}

// |x|^p of input 0, widened.
Expr powers_of(NodeContext& context, double p) {
  return raised(context, ops::unary("abs", context.widened(context.input(0)), context.span()), p);
}

double read_power(NodeContext& context) {
  const int64_t p = context.int_attr("p", 2);
  if (p < 1) context.invalid("attribute 'p' is {}, expected 1 or more", p);
  return static_cast<double>(p);
}

// ONNX LpPool (2, 11): the p-norm of each window, as the mean of |x|^p over all taps times their number.
Exprs convert_lp_pool(NodeContext& context) {
  spatial_rank(context, 3);
  context.check_dtype(context.input(0), "data", is_float, "floating point");
  const Windows windows = read_windows(context, read_kernel_shape(context));
  const double p = read_power(context);
  auto attrs = pool_attrs(windows, context.opset() >= 18 && context.flag_attr("ceil_mode", false));
  attrs.count_include_pad = true;
  const int64_t taps = std::accumulate(windows.kernel.begin(), windows.kernel.end(), int64_t{1}, std::multiplies<>());
  const Expr powers = powers_of(context, p);
  const Expr means = ops::avg_pool(powers, attrs, context.span());
  const Expr count = context.scalar(static_cast<double>(taps), context.dtype(powers));
  const Expr norms = raised(context, ops::multiply(means, count, context.span()), 1 / p);
  return {context.cast(norms, context.dtype(context.input(0)))};
}

// ONNX GlobalLpPool (2).
Exprs convert_global_lp_pool(NodeContext& context) {
  spatial_rank(context, 8);
  context.check_dtype(context.input(0), "data", is_float, "floating point");
  const double p = read_power(context);
  const Expr sums = ops::reduce("sum", powers_of(context, p), spatial_axes(context), true, false, context.span());
  return {context.cast(raised(context, sums, 1 / p), context.dtype(context.input(0)))};
}

}  // namespace

std::span<const OpRow> pool_rows() {
  static constexpr OpRow kRows[] = {
      {"MaxPool", convert_max_pool, 1, 1},
      {"AveragePool", convert_average_pool, 1, 1},
      {"GlobalAveragePool", convert_global_pool<false>, 1, 1},
      {"GlobalMaxPool", convert_global_pool<true>, 1, 1},
      {"LpPool", convert_lp_pool, 1, 1},
      {"GlobalLpPool", convert_global_lp_pool, 1, 1},
  };
  return kRows;
}

}  // namespace headrace::onnx
