// What the laws of SimplifyExpr are made of, and their tables, one a kind.
//
// A law says what a call of an op equals; its statement stands above its function. Laws never change a type. They are
// asked about calls without effects only, so that operands may be dropped, doubled, or evaluated in another order.
#pragma once

#include <span>

#include "relay/expr.h"

namespace headrace::passes::simplify {

// A call whose operands are simplified and typed.
struct Site {
  const relay::CallNode& call;
  const Type& type;  // of the call

  std::string_view op() const { return call.as_op()->name; }
  const Span& span() const { return call.span; }
  Expr arg(size_t i) const { return call.args[i]; }
  // Where the two are written with `?` they may be of two shapes: for a law by which the shapes are equal.
  bool has_type_of(const Expr& expr) const;
  // Operand i, if it surely has the type of the call, whose operands are broadcast; null otherwise. A `?` of it is the
  // call's where every other operand has 1 or no dimension there, or is the same expression.
  Expr operand(size_t i) const;
  // The shape of the call, where it is static.
  std::optional<Shape> shape() const;
  // Null for a type that is no tensor.
  DataType dtype() const;
};

// What the first operand's elements may be.
enum class LawDtypes : uint8_t {
  all,
  floats,
  exact,      // integers and bool: sums and products of them are exact, and nothing is NaN
  negatable,  // floats and signed integers: -x is on the other side of 0, but for the least integer, which stays
};

// What must be known of the call's shape.
enum class LawShape : uint8_t { any, known };

// How far a law may change floating-point results (docs/numerics.md). Integers are always exact.
enum class LawNumerics : uint8_t {
  exact,      // keeps every bit, except which NaN a NaN is
  zero_sign,  // a zero may get the other sign
  rounding,   // rounds differently, within the bound that docs/numerics.md states for the law
};

// The level from which laws that round differently apply to floats. Those that only change the sign of a zero apply at
// every level, as in Relay.
inline constexpr int32_t kRoundingLevel = 3;

struct Law {
  std::string_view op;
  // What the call equals, or null where the law does not apply. Asked only where the law holds.
  Expr (*apply)(const Site& site);
  LawDtypes dtypes = LawDtypes::all;
  LawShape shape = LawShape::any;
  LawNumerics numerics = LawNumerics::exact;

  // Returns whether the law may be asked about the call at that level.
  bool holds_for(const Site& site, int32_t opt_level) const;
};

// Sums, products, powers and constants among them.
std::span<const Law> arithmetic_laws();
// Casts, activations, extrema and bounds.
std::span<const Law> elementwise_laws();
// Comparisons, conditions, bits.
std::span<const Law> logic_laws();
// Ops that only move elements, and those over windows and axes of one element.
std::span<const Law> shape_laws();

// The call that `expr` is, if it is one of that op; else null.
const relay::CallNode* as_call_of(const Expr& expr, std::string_view op);
// Every element is that value: of a constant, zeros, ones, full.
bool all_elements_are(const Expr& expr, double value);
std::optional<Shape> static_shape(const Type& type);
DataType dtype_of(const Expr& expr);
// The one value of a scalar constant.
std::optional<double> scalar_value(const Expr& expr);
// Integers or bool.
bool is_exact(DataType dtype);
// A tensor of the site's type, of static shape, with that value everywhere.
Expr filled(const Site& site, double value);

}  // namespace headrace::passes::simplify
