// Activations. Those that relay has no op for are composites of its ops, by the formula of the ONNX specification.
#include <cmath>
#include <limits>
#include <numbers>

#include "arith/canonical.h"
#include "frontend/onnx/field_reader.h"
#include "frontend/onnx/op_table.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/shape.h"

namespace headrace::onnx {

namespace {

// Arithmetic of one input with numbers of its dtype.
class Formula {
 public:
  explicit Formula(NodeContext& context) : context_(context), x_(context.input(0)) {
    context.check_dtype(x_, "data", is_float, "floating point");
  }
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

Exprs convert_relu(NodeContext& context) {
  context.check_dtype(context.input(0), "data", is_number, "numbers");
  return {ops::relu(context.input(0), context.span())};
}

Exprs convert_leaky_relu(NodeContext& context) {
  const Formula f(context);
  return {ops::leaky_relu(f.x(), context.float_attr("alpha", 0.01), context.span())};
}

Exprs convert_elu(NodeContext& context) { return {elu(Formula(context), context.float_attr("alpha", 1))}; }

Exprs convert_selu(NodeContext& context) {
  const Formula f(context);
  const double alpha = context.float_attr("alpha", 1.67326319217681884765625);
  return {f.multiply(elu(f, alpha), context.float_attr("gamma", 1.05070102214813232421875))};
}

// ONNX Celu (12): max(0, x) + min(0, alpha * (e^(x / alpha) - 1)).
Exprs convert_celu(NodeContext& context) {
  const Formula f(context);
  const double alpha = context.float_attr("alpha", 1);
  if (alpha == 0) context.invalid("attribute 'alpha' is 0");
  const Expr grown = f.add(f.unary("exp", f.divide(f.x(), f.number(alpha))), -1);
  return {f.add(f.relu(f.x()), ops::binary("minimum", f.multiply(grown, alpha), f.number(0), context.span()))};
}

Exprs convert_thresholded_relu(NodeContext& context) {
  const Formula f(context);
  return {f.where(f.compare("greater", f.x(), context.float_attr("alpha", 1)), f.x(), f.number(0))};
}

Exprs convert_hard_sigmoid(NodeContext& context) {
  const Formula f(context);
  const double alpha = context.float_attr("alpha", 0.2), beta = context.float_attr("beta", 0.5);
  return {f.clip(f.add(f.multiply(f.x(), alpha), beta), 0, 1)};
}

// ONNX HardSwish (14): x * clip(x / 6 + 1/2, 0, 1).
Exprs convert_hard_swish(NodeContext& context) {
  const Formula f(context);
  return {f.multiply(f.x(), f.clip(f.add(f.multiply(f.x(), 1.0 / 6), 0.5), 0, 1))};
}

// log(1 + e^x) as max(x, 0) + log(1 + e^-|x|), which cannot overflow.
Exprs convert_softplus(NodeContext& context) {
  const Formula f(context);
  const Expr small = f.unary("exp", f.unary("negative", f.unary("abs", f.x())));
  return {f.add(f.relu(f.x()), f.unary("log", f.add(small, 1)))};
}

// ONNX Mish (18, 22): x * tanh(log(1 + e^x)).
Exprs convert_mish(NodeContext& context) {
  const Formula f(context);
  return {f.multiply(f.x(), f.unary("tanh", convert_softplus(context)[0]))};
}

// ONNX Gelu (20): x times the normal distribution's part below x, or its approximation by tanh.
Exprs convert_gelu(NodeContext& context) {
  const Formula f(context);
  const std::string approximate = context.string_attr("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    context.invalid("attribute 'approximate' is {}, expected none or tanh", printable(approximate));
  const Expr half = f.multiply(f.x(), 0.5);
  if (approximate == "none") return {f.multiply(half, f.add(f.unary("erf", f.multiply(f.x(), std::sqrt(0.5))), 1))};
  const Expr cube = f.multiply(f.multiply(f.x(), f.x()), f.multiply(f.x(), 0.044715));
  const Expr bent = f.unary("tanh", f.multiply(f.add(f.x(), cube), std::sqrt(2 / std::numbers::pi)));
  return {f.multiply(half, f.add(bent, 1))};
}

Exprs convert_softsign(NodeContext& context) {
  const Formula f(context);
  return {f.divide(f.x(), f.add(f.unary("abs", f.x()), 1))};
}

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

// The one axis of x that a slope broadcast to it varies along; nothing when there are several or none.
std::optional<size_t> slope_axis(NodeContext& context, const Expr& slope) {
  const auto x = context.dims(context.input(0)), s = context.dims(slope);
  std::optional<size_t> axis;
  for (size_t i = 0; i < s.size(); ++i) {
    if (is_int(s[i], 1)) continue;
    const size_t at = i + x.size() - s.size();
    if (axis || !arith::is_equal(s[i], x[at])) return std::nullopt;
    axis = at;
  }
  return axis;
}

// ONNX PRelu (6, 7, 9, 16). Opset 6 has a slope a channel, or one for all; later ones broadcast it to x.
Exprs convert_prelu(NodeContext& context) {
  const Expr x = context.input(0);
  Expr slope = context.input(1);
  const Span& span = context.span();
  context.check_dtype(x, "data", is_number, "numbers");
  if (context.rank(slope) > context.rank(x)) context.invalid("its slope has more dimensions than its data");
  if (context.opset() < 7 && context.rank(slope) == 1 && context.rank(x) > 2)
    slope = ops::expand_dims(slope, 1, static_cast<int64_t>(context.rank(x)) - 2, span);
  const auto axis = context.dtype(x).is_float() ? slope_axis(context, slope) : std::nullopt;
  if (axis) {
    const Expr vector = context.rank(slope) == 1 ? slope : ops::reshape(slope, Shape{-1}, false, span);
    return {ops::prelu(x, vector, static_cast<int64_t>(*axis), span)};
  }
  const Expr negative = ops::binary("less", x, context.scalar(0, context.dtype(x)), span);
  return {ops::where(negative, ops::multiply(x, slope, span), x, span)};
}

// A bound of Clip: an attribute up to opset 6, an input later.
struct Bound {
  Expr expr;                     // null: there is none
  std::optional<double> number;  // when it is known
};

Bound clip_bound(NodeContext& context, size_t i, std::string_view name, double otherwise) {
  if (context.opset() < 11) {
    if (!context.has_attr(name)) return {};
    const double value = context.float_attr(name, otherwise);
    return {context.scalar(value, context.dtype(context.input(0))), value};
  }
  if (!context.has(i)) return {};
  const NDArray known = context.facts().constant(context.input(i));
  if (!known || known.num_elements() != 1) return {context.input(i), std::nullopt};
  return {context.input(i), element_as_double(known.tensor(), 0)};
}

// ONNX Clip (6, 11, 12, 13): min(max(x, low), high).
Exprs convert_clip(NodeContext& context) {
  const Expr x = context.input(0);
  context.check_dtype(x, "data", is_number, "numbers");
  const Bound low = clip_bound(context, 1, "min", std::numeric_limits<float>::lowest());
  const Bound high = clip_bound(context, 2, "max", std::numeric_limits<float>::max());
  // Integers of 64 bits do not fit clip's bounds, which are doubles.
  if (low.number && high.number && context.dtype(x).is_float() && *low.number <= *high.number)
    return {ops::clip(x, *low.number, *high.number, context.span())};
  Expr result = x;
  if (low.expr) result = ops::binary("maximum", result, low.expr, context.span());
  if (high.expr) result = ops::binary("minimum", result, high.expr, context.span());
  return {result};
}

}  // namespace

std::span<const OpRow> activation_rows() {
  static constexpr OpRow kRows[] = {
      {"Relu", convert_relu, 1, 1},
      {"LeakyRelu", convert_leaky_relu, 1, 1},
      {"Elu", convert_elu, 1, 1},
      {"Selu", convert_selu, 1, 1},
      {"Celu", convert_celu, 1, 1},
      {"ThresholdedRelu", convert_thresholded_relu, 1, 1},
      {"HardSigmoid", convert_hard_sigmoid, 1, 1},
      {"HardSwish", convert_hard_swish, 1, 1},
      {"Softplus", convert_softplus, 1, 1},
      {"Softsign", convert_softsign, 1, 1},
      {"Mish", convert_mish, 1, 1},
      {"Gelu", convert_gelu, 1, 1},
      {"Shrink", convert_shrink, 1, 1},
      {"PRelu", convert_prelu, 2, 2},
      {"Clip", convert_clip, 1, 3},
  };
  return kRows;
}

}  // namespace headrace::onnx
