#include "frontend/onnx/compositions/activation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "frontend/onnx/compositions/rows.h"
#include "frontend/onnx/file/field_reader.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"

namespace headrace::onnx {

namespace {

// Arithmetic of one input with numbers of its dtype.
class Formula {
 public:
  explicit Formula(NodeContext& context) : Formula(context, context.input(0)) {}
  Formula(NodeContext& context, Expr x) : context_(context), x_(std::move(x)) {
    context.check_dtype(x_, "data", is_float, "floating point");
  }
  NodeContext& context() const { return context_; }
  const Expr& x() const { return x_; }
  Expr number(double value) const { return context_.scalar(value, context_.dtype(x_)); }
  Expr add(const Expr& a, double b) const { return ops::add(a, number(b), context_.span()); }
  Expr add(const Expr& a, const Expr& b) const { return ops::add(a, b, context_.span()); }
  Expr subtract(const Expr& a, const Expr& b) const { return ops::subtract(a, b, context_.span()); }
  Expr multiply(const Expr& a, double b) const { return b == 1 ? a : ops::multiply(a, number(b), context_.span()); }
  Expr multiply(const Expr& a, const Expr& b) const { return ops::multiply(a, b, context_.span()); }
  Expr divide(const Expr& a, const Expr& b) const { return ops::divide(a, b, context_.span()); }
  Expr relu(const Expr& a) const { return ops::relu(a, context_.span()); }
  Expr unary(std::string_view op, const Expr& a) const { return ops::unary(op, a, context_.span()); }
  Expr binary(std::string_view op, const Expr& a, const Expr& b) const {
    return ops::binary(op, a, b, context_.span());
  }
  Expr compare(std::string_view op, const Expr& a, double b) const {
    return ops::binary(op, a, number(b), context_.span());
  }
  Expr where(const Expr& condition, const Expr& a, const Expr& b) const {
    return ops::where(condition, a, b, context_.span());
  }
  Expr clip(const Expr& a, double low, double high) const { return ops::clip(a, low, high, context_.span()); }

 private:
  NodeContext& context_;
  Expr x_;
};

// max(0, x) + alpha * min(0, e^x - 1), without a comparison: the second part is -alpha * relu(1 - e^x).
Expr elu(const Formula& f, double alpha) {
  const Expr negative = f.relu(f.subtract(f.number(1), f.unary("exp", f.x())));
  return f.subtract(f.relu(f.x()), f.multiply(negative, alpha));
}

Exprs convert_elu(NodeContext& context) { return {elu(Formula(context), context.float_attr("alpha", 1))}; }

Expr selu(const Formula& f, double alpha, double gamma) { return f.multiply(elu(f, alpha), gamma); }

// max(0, x) + min(0, alpha * (e^(x / alpha) - 1)).
Expr celu(const Formula& f, double alpha) {
  if (alpha == 0) f.context().invalid("attribute 'alpha' is 0");
  const Expr grown = f.add(f.unary("exp", f.divide(f.x(), f.number(alpha))), -1);
  return f.add(f.relu(f.x()), f.binary("minimum", f.multiply(grown, alpha), f.number(0)));
}

Expr thresholded_relu(const Formula& f, double alpha) {
  return f.where(f.compare("greater", f.x(), alpha), f.x(), f.number(0));
}

Expr hard_sigmoid(const Formula& f, double alpha, double beta) {
  return f.clip(f.add(f.multiply(f.x(), alpha), beta), 0, 1);
}

// x * clip(x / 6 + 1/2, 0, 1).
Expr hard_swish(const Formula& f) { return f.multiply(f.x(), f.clip(f.add(f.multiply(f.x(), 1.0 / 6), 0.5), 0, 1)); }

// log(1 + e^x) as max(x, 0) + log(1 + e^-|x|), which cannot overflow.
Expr softplus(const Formula& f, const Expr& x) {
  const Expr small = f.unary("exp", f.unary("negative", f.unary("abs", x)));
  return f.add(f.relu(x), f.unary("log", f.add(small, 1)));
}

Expr softsign(const Formula& f) { return f.divide(f.x(), f.add(f.unary("abs", f.x()), 1)); }

Exprs convert_selu(NodeContext& context) {
  const double alpha = context.float_attr("alpha", 1.67326319217681884765625);
  return {selu(Formula(context), alpha, context.float_attr("gamma", 1.05070102214813232421875))};
}

Exprs convert_celu(NodeContext& context) { return {celu(Formula(context), context.float_attr("alpha", 1))}; }

Exprs convert_thresholded_relu(NodeContext& context) {
  return {thresholded_relu(Formula(context), context.float_attr("alpha", 1))};
}

Exprs convert_hard_sigmoid(NodeContext& context) {
  return {hard_sigmoid(Formula(context), context.float_attr("alpha", 0.2), context.float_attr("beta", 0.5))};
}

Exprs convert_hard_swish(NodeContext& context) { return {hard_swish(Formula(context))}; }

Exprs convert_softplus(NodeContext& context) { return {softplus(Formula(context), context.input(0))}; }

// ONNX Mish (18, 22): x * tanh(log(1 + e^x)).
Exprs convert_mish(NodeContext& context) {
  const Formula f(context);
  return {f.multiply(f.x(), f.unary("tanh", softplus(f, f.x())))};
}

// ONNX Swish (24): x * sigmoid(alpha * x).
Exprs convert_swish(NodeContext& context) {
  const Formula f(context);
  return {f.multiply(f.x(), f.unary("sigmoid", f.multiply(f.x(), context.float_attr("alpha", 1))))};
}

// ONNX Gelu (20).
Exprs convert_gelu(NodeContext& context) {
  const std::string approximate = context.string_attr("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    context.invalid("attribute 'approximate' is {}, expected none or tanh", printable(approximate));
  return {gelu(context, context.input(0), approximate == "tanh")};
}

Exprs convert_softsign(NodeContext& context) { return {softsign(Formula(context))}; }

// ONNX Shrink (9): x + bias below -lambd, x - bias above lambd, else 0.
Exprs convert_shrink(NodeContext& context) {
  const Expr x = context.input(0);
  context.check_dtype(x, "data", is_number, "numbers");
  const DataType dtype = context.dtype(x);
  const double lambd = context.float_attr("lambd", 0.5), bias = context.float_attr("bias", 0);
  const Span& span = context.span();
  const Expr offset = context.scalar(bias, dtype);
  const Expr above = ops::where(ops::binary("greater", x, context.scalar(lambd, dtype), span),
                                ops::subtract(x, offset, span), context.scalar(0, dtype), span);
  return {
      ops::where(ops::binary("less", x, context.scalar(-lambd, dtype), span), ops::add(x, offset, span), above, span)};
}

// An activation within another operator.
struct FusedActivation {
  std::string_view name;
  std::array<std::string_view, 2> numbers;  // the names of its attributes; empty for none
  Expr (*apply)(const Formula& f, double a, double b);
};

constexpr FusedActivation kFusedActivations[] = {
    {"Relu", {}, [](const Formula& f, double, double) { return f.relu(f.x()); }},
    {"Tanh", {}, [](const Formula& f, double, double) { return f.unary("tanh", f.x()); }},
    {"Sigmoid", {}, [](const Formula& f, double, double) { return f.unary("sigmoid", f.x()); }},
    {"Softplus", {}, [](const Formula& f, double, double) { return softplus(f, f.x()); }},
    {"Softsign", {}, [](const Formula& f, double, double) { return softsign(f); }},
    {"HardSwish", {}, [](const Formula& f, double, double) { return hard_swish(f); }},
    {"LeakyRelu",
     {"alpha"},
     [](const Formula& f, double a, double) { return ops::leaky_relu(f.x(), a, f.context().span()); }},
    {"Elu", {"alpha"}, [](const Formula& f, double a, double) { return elu(f, a); }},
    {"Celu", {"alpha"}, [](const Formula& f, double a, double) { return celu(f, a); }},
    {"ThresholdedRelu", {"alpha"}, [](const Formula& f, double a, double) { return thresholded_relu(f, a); }},
    {"Clip", {"min", "max"}, [](const Formula& f, double low, double high) { return f.clip(f.x(), low, high); }},
    {"HardSigmoid", {"alpha", "beta"}, hard_sigmoid},
    {"Selu", {"alpha", "gamma"}, selu},
    {"ScaledTanh",
     {"alpha", "beta"},
     [](const Formula& f, double a, double b) { return f.multiply(f.unary("tanh", f.multiply(f.x(), b)), a); }},
    {"ParametricSoftplus",
     {"alpha", "beta"},
     [](const Formula& f, double a, double b) { return f.multiply(softplus(f, f.multiply(f.x(), b)), a); }},
};

const FusedActivation& find_activation(const NodeContext& context, std::string_view name) {
  for (const FusedActivation& one : kFusedActivations) {
    if (one.name == name) return one;
  }
  context.refuse(HR_REASON_ATTRIBUTE_UNSUPPORTED, "the activation {} is not supported", printable(name));
}

}  // namespace

std::span<const std::string_view> fused_activation_numbers(NodeContext& context, std::string_view name) {
  const std::array<std::string_view, 2>& numbers = find_activation(context, name).numbers;
  return {numbers.begin(), std::find(numbers.begin(), numbers.end(), "")};
}

Expr fused_activation(NodeContext& context, const Expr& x, std::string_view name, std::span<const double> numbers) {
  const FusedActivation& activation = find_activation(context, name);
  const size_t wanted = fused_activation_numbers(context, name).size();
  if (numbers.size() < wanted)
    context.invalid("the activation {} needs {} numbers, got {}", name, wanted, numbers.size());
  return activation.apply(Formula(context, x), wanted > 0 ? numbers[0] : 0, wanted > 1 ? numbers[1] : 0);
}

Expr gelu(NodeContext& context, const Expr& x, bool by_tanh) {
  const Formula f(context, x);
  const Expr half = f.multiply(x, 0.5);
  if (!by_tanh) return f.multiply(half, f.add(f.unary("erf", f.multiply(x, std::sqrt(0.5))), 1));
  const Expr cube = f.multiply(f.multiply(x, x), f.multiply(x, 0.044715));
  const Expr bent = f.unary("tanh", f.multiply(f.add(x, cube), std::sqrt(2 / std::numbers::pi)));
  return f.multiply(half, f.add(bent, 1));
}

Expr sloped(NodeContext& context, const Expr& x, const Expr& slope) {
  const Span& span = context.span();
  const Expr negative = ops::binary("less", x, context.scalar(0, context.dtype(x)), span);
  return ops::where(negative, ops::multiply(x, slope, span), x, span);
}

Expr bounded(NodeContext& context, const Expr& x, const Expr& low, const Expr& high) {
  const Expr raised = low ? ops::binary("maximum", x, low, context.span()) : x;
  return high ? ops::binary("minimum", raised, high, context.span()) : raised;
}

std::span<const OpRow> composed_activation_rows() {
  static constexpr OpRow kRows[] = {
      {"Elu", convert_elu, 1, 1},
      {"Selu", convert_selu, 1, 1},
      {"Celu", convert_celu, 1, 1, 12},
      {"ThresholdedRelu", convert_thresholded_relu, 1, 1},
      {"HardSigmoid", convert_hard_sigmoid, 1, 1},
      {"HardSwish", convert_hard_swish, 1, 1, 14},
      {"Softplus", convert_softplus, 1, 1},
      {"Softsign", convert_softsign, 1, 1},
      {"Mish", convert_mish, 1, 1, 18},
      {"Swish", convert_swish, 1, 1, 24},
      {"Gelu", convert_gelu, 1, 1, 20},
      {"Shrink", convert_shrink, 1, 1, 9},
  };
  return kRows;
}

}  // namespace headrace::onnx
