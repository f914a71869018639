// Copies of expressions that can stand beside the original.
#pragma once

#include <vector>

#include "relay/infer/type_match.h"
#include "relay/visit.h"

namespace headrace::passes {

struct Renewal {
  // What stands for a node of the original, free variables mostly. A replacement is not copied.
  std::unordered_map<const Object*, Expr> values;
  // What stands for type variables and symbols in written types; the others stay.
  relay::TypeBindings types;
};

// A copy of `expr` whose variables are new wherever `expr` binds them, and whose nodes are new too: a reference that
// both create is not one. Variables, constants and names that are free in it are not copied. Nodes shared in it are
// shared in the copy. Spans stay; nothing in the copy has a checked type. Linear; no stack.
Expr renewed(const Expr& expr, const Renewal& renewal = {});

// What the symbols and type variables in `formal` are where it is `actual`, added to `bindings`.
void match_types(const Type& formal, const Type& actual, relay::TypeBindings& bindings);

// The types that a call gives its callee; null where one is not known.
struct CallTypes {
  std::vector<Type> type_args, args;
  Type result;
};
// Of a call; `type_args` are those that it names.
CallTypes call_types(const relay::CallNode& call);
// What stands for the type parameters of `function` (its type arguments, where there are any) and for the symbols in
// its types at such a call, set in `bindings`. False when the number of arguments is another, or when a type parameter
// or a symbol of the parameters is not known.
bool bind_types(const relay::FunctionNode& function, const CallTypes& call, relay::TypeBindings& bindings);

}  // namespace headrace::passes
