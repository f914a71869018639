// The type of the laws of SimplifyExpr, the tables of laws, and helpers to write them.
//
// A law states an expression that a call of an op equals; its statement is above its function. Laws never change a
// type. They are applied to calls without effects only, so they may drop, duplicate and reorder operands.
#pragma once

#include <span>

#include "relay/match.h"

namespace headrace::passes::simplify {

// A call whose operands are simplified and typed.
struct Site {
  const relay::CallNode& call;
  const Type& type;  // the type of the call

  const OpNode& op() const { return *call.as_op(); }
  bool is(const OpHandle& handle) const { return relay::is_call(call, handle); }
  const Span& span() const { return call.span; }
  Expr arg(size_t i) const { return call.args[i]; }
  // Returns whether `expr` has the type of the call. Two unknown dimensions `?` count as equal although their sizes may
  // differ, so use it only in laws that imply equal shapes.
  bool has_type_of(const Expr& expr) const;
  // Returns operand i of a call with broadcasting if it certainly has the type of the call; null otherwise. An unknown
  // dimension `?` of the operand equals that of the call if every other operand has size 1 or no dimension there, or is
  // the same expression.
  Expr operand(size_t i) const;
  // Returns the shape of the call if it is static.
  std::optional<Shape> shape() const;
  // Returns the dtype of the call; null if its type is not a tensor.
  DataType dtype() const;
};

// The dtypes of the first operand for which a law holds.
enum class LawDtypes : uint8_t {
  all,
  floats,
  exact,      // integers and bool: sums and products of them are exact, and nothing is NaN
  negatable,  // floats and signed integers: -x has the other sign, except that the least integer is its own negative
};

// Whether a law needs a static shape of the call.
enum class LawShape : uint8_t { any, known };

// How far a law may change floating-point results (docs/numerics.md). Integers are always exact.
enum class LawNumerics : uint8_t {
  exact,      // keeps every bit, except which NaN a NaN is
  zero_sign,  // a zero may get the other sign
  rounding,   // rounds differently, within the bound that docs/numerics.md states for the law
};

// Where a law applies.
enum class LawScope : uint8_t {
  everywhere,
  builds,    // Relay has no such law, or keeps what it makes another op of: not where the pass is named, as in Relay
  as_named,  // a law of Relay's that builds gain nothing by, or that rounds more than they may
};

// The level from which laws that round differently apply to floats. Those that only change the sign of a zero apply at
// every level, as in Relay.
inline constexpr int32_t kRoundingLevel = 3;

struct Law {
  const OpHandle& op;
  // Returns the expression that the call equals, or null if the law does not apply. Call only if holds_for() is true.
  Expr (*apply)(const Site& site);
  LawDtypes dtypes = LawDtypes::all;
  LawShape shape = LawShape::any;
  LawNumerics numerics = LawNumerics::exact;
  LawScope scope = LawScope::everywhere;

  // Returns whether the law may be applied to the call at that level.
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

// Joins a view (ops::only_reshapes) with the view that it reads, or drops it. The law of every such op, of a user's
// too; the call's shape must be static. Null where it does not apply.
Expr join_views(const Site& s);
// Returns whether `expr` is a constant or a call of zeros, ones or full whose elements are all `value`.
bool all_elements_are(const Expr& expr, double value);
std::optional<Shape> static_shape(const Type& type);
using relay::dtype_of;
// Returns the value of a scalar constant; nullopt for any other expression.
std::optional<double> scalar_value(const Expr& expr);
// Returns whether the dtype is an integer or bool.
bool is_exact(DataType dtype);
// Makes a tensor of the site's type, whose shape must be static, with `value` in each element.
Expr filled(const Site& site, double value);

}  // namespace headrace::passes::simplify
