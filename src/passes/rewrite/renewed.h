// Copies expressions so that the copy and the original can be in one program.
#pragma once

#include <vector>

#include "relay/infer/type_match.h"
#include "relay/visit.h"

namespace headrace::passes {

struct Renewal {
  // Replacements for nodes of the original, mostly free variables. A replacement is not copied.
  std::unordered_map<const Object*, Expr> values;
  // Replacements for type variables and symbols in written types; others stay.
  relay::TypeBindings types;
};

// Copies `expr` with new variables for all that `expr` binds, and with new nodes, so that a reference which both create
// is two references. Free variables, constants and names are not copied. Nodes shared in `expr` are shared in the copy.
// Spans stay; the copy has no checked types. Linear; no recursion.
Expr renewed(const Expr& expr, const Renewal& renewal = {});

// Matches `formal` against `actual` and adds the values of its symbols and type variables to `bindings`.
void match_types(const Type& formal, const Type& actual, relay::TypeBindings& bindings);

// The types that a call gives its callee; null where one is not known.
struct CallTypes {
  std::vector<Type> type_args, args;
  Type result;
};
// Returns the types of a call; `type_args` are those written in the call.
CallTypes call_types(const relay::CallNode& call);
// Sets in `bindings` the values that the call gives to the type parameters of `function` (its type arguments, if any)
// and to the symbols in its types. Returns false when the number of arguments differs, or when a type parameter or a
// symbol of the parameters stays unknown.
bool bind_types(const relay::FunctionNode& function, const CallTypes& call, relay::TypeBindings& bindings);

}  // namespace headrace::passes
