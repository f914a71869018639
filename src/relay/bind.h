// Replaces free variables and parameters by expressions and tensors, as `relay.bind` and `bind_params_by_name` do:
//   fn (%x, %w) { multiply(%x, %w) }  with %w = 2f   ->   fn (%x) { multiply(%x, 2f) }
// All uses of a variable share its replacement. An inner binder of a variable that is replaced, or that occurs in a
// replacement, gets a new variable, so that neither captures the other. Rebuilt nodes have no checked type.
#pragma once

#include "relay/expr.h"

namespace headrace::relay {

// Replaces the free variables of `expr` by `values`; where it is a function, also its parameters, which are then
// removed. A value that uses a remaining parameter refers to it, and variables that only the values have become
// parameters, too.
Expr bind(const Expr& expr, const Map<Var, Expr>& values);
// Replaces the parameters of those names by constants. Names that no parameter has are ignored, because importers give
// more than a function takes. UserError for a tensor that does not fit the parameter's annotation, and for a name that
// two parameters have.
Function bind_params_by_name(const Function& function, const Map<std::string, NDArray>& params);

}  // namespace headrace::relay
