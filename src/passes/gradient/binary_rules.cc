// Gradients of arithmetic on two operands that broadcast, of where and bias_add.
#include "ops/tensor/broadcast.h"
#include "ops/op_handles.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/reduce.h"
#include "passes/gradient/rule_tools.h"

namespace headrace::passes::gradient_rules {

using ops::divide;
using ops::multiply;
using ops::subtract;
using ops::unary;

namespace {

Gradients grad_add(const GradientSite& s) { return binary(s, s.gradient, s.gradient); }
Gradients grad_subtract(const GradientSite& s) { return binary(s, s.gradient, negative(s.gradient)); }
Gradients grad_multiply(const GradientSite& s) {
  return binary(s, multiply(s.gradient, s.arg(1)), multiply(s.gradient, s.arg(0)));
}
// x / y: 1 / y, and -(x / y) / y
Gradients grad_divide(const GradientSite& s) {
  const Expr by_first = divide(s.gradient, s.arg(1));
  return binary(s, by_first, negative(multiply(by_first, s.result)));
}
// Unless it is a constant without one.
bool has_zero(const Expr& expr) {
  const auto* constant = expr.as<relay::ConstantNode>();
  if (constant == nullptr) return true;
  const NDArray data = constant->data.to_dense();
  for (int64_t i = 0; i < data.num_elements(); ++i) {
    if (element_as_double(data.tensor(), i) == 0) return true;
  }
  return false;
}
// x^y: y x^(y-1), and x^y log x, which is 0 where x is 0
Gradients grad_power(const GradientSite& s) {
  const Expr x = s.arg(0), y = s.arg(1);
  // Where y is 0 the slope is 0 x^0: 0 x^-1 is not a number at 0.
  const Expr safe_y = has_zero(y) ? ops::where(ops::binary(op::kEqual, y, scalar(0, s)), ones_as(y), y) : y;
  const Expr by_base = multiply(s.gradient, multiply(y, ops::binary(op::kPower, x, subtract(safe_y, scalar(1, s)))));
  if (y.is<relay::ConstantNode>()) return {summed_to(by_base, s.result, x), Expr()};
  const Expr is_zero = ops::binary(op::kEqual, x, scalar(0, s));
  const Expr safe = ops::where(is_zero, ones_as(x), x);
  return binary(s, by_base, multiply(s.gradient, multiply(s.result, unary(op::kLog, safe))));
}
Gradients grad_extremum(const GradientSite& s) {
  const bool is_maximum = relay::is_call(s.call, op::kMaximum);
  const Expr takes_first = ops::binary(is_maximum ? op::kGreaterEqual : op::kLessEqual, s.arg(0), s.arg(1));
  const Expr zero = zeros_as(s.result);
  return binary(s, ops::where(takes_first, s.gradient, zero), ops::where(takes_first, zero, s.gradient));
}
// x - y q, where the whole quotient q has no slope: 1, and -q
Gradients grad_remainder(const GradientSite& s) {
  const bool rounds_down = relay::is_call(s.call, op::kFloorMod);
  const Expr quotient = ops::binary(rounds_down ? op::kFloorDivide : op::kTruncDivide, s.arg(0), s.arg(1));
  return binary(s, s.gradient, negative(multiply(s.gradient, quotient)));
}
// Steps have no slope.
Gradients grad_whole_quotient(const GradientSite&) { return {Expr(), Expr()}; }
Gradients grad_where(const GradientSite& s) {
  const Expr zero = zeros_as(s.result);
  return {Expr(), summed_to(ops::where(s.arg(0), s.gradient, zero), s.result, s.arg(1)),
          summed_to(ops::where(s.arg(0), zero, s.gradient), s.result, s.arg(2))};
}
Gradients grad_bias_add(const GradientSite& s) {
  return {s.gradient, summed_but(s.gradient, ops::normal_axis(s.call.attrs_as<ops::BiasAddAttrs>().axis,
                                                              tensor_of(s.result).shape.size()))};
}

constexpr GradientRow kBinaryRows[] = {
    {op::kAdd, grad_add},
    {op::kDivide, grad_divide},
    {op::kFloorDivide, grad_whole_quotient},
    {op::kFloorMod, grad_remainder},
    {op::kMaximum, grad_extremum},
    {op::kMinimum, grad_extremum},
    {op::kMod, grad_remainder},
    {op::kMultiply, grad_multiply},
    {op::kBiasAdd, grad_bias_add},
    {op::kPower, grad_power},
    {op::kSubtract, grad_subtract},
    {op::kTruncDivide, grad_whole_quotient},
    {op::kTruncMod, grad_remainder},
    {op::kWhere, grad_where},
};

}  // namespace

std::span<const GradientRow> binary_gradients() { return kBinaryRows; }

}  // namespace headrace::passes::gradient_rules
