#include <limits>

#include "arith/canonical.h"
#include "frontend/onnx/compositions/activation.h"
#include "frontend/onnx/single/rows.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/shape.h"

namespace headrace::onnx {

namespace {

Exprs convert_relu(NodeContext& context) {
  context.check_dtype(context.input(0), "data", is_number, "numbers");
  return {ops::relu(context.input(0), context.span())};
}

Exprs convert_leaky_relu(NodeContext& context) {
  const Expr x = context.input(0);
  context.check_dtype(x, "data", is_float, "floating point");
  return {ops::leaky_relu(x, context.float_attr("alpha", 0.01), context.span())};
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
  return {sloped(context, x, slope)};
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
  return {bounded(context, x, low.expr, high.expr)};
}

}  // namespace

std::span<const OpRow> activation_rows() {
  static constexpr OpRow kRows[] = {
      {"Relu", convert_relu, 1, 1},
      {"LeakyRelu", convert_leaky_relu, 1, 1},
      {"PRelu", convert_prelu, 2, 2},
      {"Clip", convert_clip, 1, 3},
  };
  return kRows;
}

}  // namespace headrace::onnx
