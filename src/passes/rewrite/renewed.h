// Copies of expressions that can stand beside the original.
#pragma once

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

}  // namespace headrace::passes
