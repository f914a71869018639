// How the gradient by an op's result becomes those by its operands.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

struct GradientSite {
  const relay::CallNode& call;  // typed
  Expr result;                  // the call itself
  Expr gradient;                // by the result; a tuple for an op that gives one

  Expr arg(size_t i) const { return call.args[i]; }
  // Returns the shape of an argument; UserError where it is not static.
  Shape arg_shape(size_t i) const;
  Shape shape() const;
};

// The op attribute for gradients of users: a function of (call, gradient by its result) that returns the list of
// gradients by the arguments. It takes precedence over the project's rules.
inline constexpr const char* kGradientAttr = "FPrimalGradient";
inline constexpr OpKey<Value> kGradientKey{kGradientAttr};
bool has_user_gradient(const OpNode& op);

// Returns whether the project has a rule for the op.
bool has_gradient_rule(std::string_view op);

// Returns one gradient for each argument, null for an argument that has none; for a tuple argument, a tuple literal.
// New nodes have the span of the call. UserError at the call for an op without a rule, and for a user's rule that
// returns something else.
std::vector<Expr> gradients_of(const GradientSite& site);

}  // namespace headrace::passes
