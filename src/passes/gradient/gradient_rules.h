// How the gradient by an op's result becomes those by its operands.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

struct GradientSite {
  const relay::CallNode& call;  // typed
  Expr result;                  // the call itself
  Expr gradient;                // by the result; a tuple for an op that gives one

  Expr arg(size_t i) const { return call.args[i]; }
  // UserError where it is not static.
  Shape arg_shape(size_t i) const;
  Shape shape() const;
};

// The attribute of ops that users set: a function of (call, gradient by its result) that gives a list of what a rule
// gives. It counts before the project's rules.
inline constexpr const char* kGradientAttr = "FPrimalGradient";
bool has_user_gradient(const OpNode& op);

// The project has a rule for the op.
bool has_gradient_rule(std::string_view op);

// One an argument; null for an argument that has none. For an argument that is a tuple, a tuple literal. What a rule
// makes has the span of the call. UserError at the call for an op that has no rule, and for a user's that gives
// something else.
std::vector<Expr> gradients_of(const GradientSite& site);

}  // namespace headrace::passes
