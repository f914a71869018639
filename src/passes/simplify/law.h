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
  bool has_type_of(const Expr& expr) const;
  // The operand, if it may stand for the call.
  Expr operand(size_t i) const { return has_type_of(arg(i)) ? arg(i) : Expr(); }
  // The shape of the call, where it is static.
  std::optional<Shape> shape() const;
  // Null for a type that is no tensor.
  DataType dtype() const;
};

struct Law {
  std::string_view op;
  // What the call equals, or null where the law does not apply.
  Expr (*apply)(const Site& site);
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
// Integers or bool: sums and products of them are exact, and nothing is NaN.
bool is_exact(DataType dtype);
// A tensor of the site's type with that value everywhere; null where its shape is not static.
Expr filled(const Site& site, double value);

}  // namespace headrace::passes::simplify
