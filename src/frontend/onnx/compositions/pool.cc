#include <numeric>

#include "frontend/onnx/compositions/rows.h"
#include "frontend/onnx/parts/pool.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/reduce.h"

namespace headrace::onnx {

namespace {

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

std::span<const OpRow> composed_pool_rows() {
  static constexpr OpRow kRows[] = {
      {"LpPool", convert_lp_pool, 1, 1},
      {"GlobalLpPool", convert_global_lp_pool, 1, 1},
  };
  return kRows;
}

}  // namespace headrace::onnx
