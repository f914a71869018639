// How the gradient by an op's result becomes those by its operands.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

struct GradientSite {
  const relay::CallNode& call;  // typed
  Expr result;                  // the call itself
  Expr gradient;                // by the result; a tuple for an op that gives one

  Expr arg(size_t i) const { return call.args[i]; }
  Shape arg_shape(size_t i) const;
  Shape shape() const;
};

// One an argument; null for an argument that has none. For an argument that is a tuple literal, a tuple.
using GradientRule = std::vector<Expr> (*)(const GradientSite& site);

// Null for an op that has no rule.
GradientRule find_gradient_rule(std::string_view op);

// UserError at `expr` when it is no tensor of static shape.
Shape static_shape_of(const Expr& expr);

}  // namespace headrace::passes
