// Relations between types: sameness, joining, and matching a callee's parameters against arguments.
#pragma once

#include "ir/module.h"

namespace headrace::relay {

// Equal in every part; `?` counts as the same as `?`. Symbols are compared by identity, dimensions by value.
bool same_type(const Type& a, const Type& b);

// The type that stands for both a and b, or null when they differ. A dimension `?` and an unknown type go with
// anything, and the more precise side is taken when `precise`, the less precise one otherwise.
Type join_types(const Type& a, const Type& b, bool precise);

// What a call puts in place of the callee's symbols and type variables.
struct TypeBindings {
  std::unordered_map<const PrimVarNode*, PrimExpr> symbols;
  std::unordered_map<const TypeVarNode*, Type> types;
};

// Binds the symbols and type variables that stand alone in `param` to the parts of `arg` at the same place; the first
// place wins. `can_bind` says which symbols and type variables are the callee's. Differing structure binds nothing.
void bind_type(const Type& param, const Type& arg, const std::function<bool(const Object*)>& can_bind,
               TypeBindings& bindings);

// `type` with the bindings put in; a symbol that `can_bind` and has no binding makes its dimension `?`.
Type instantiate(const Type& type, const std::function<bool(const Object*)>& can_bind, const TypeBindings& bindings);

// Calls `visit` for each symbol in the type's dimensions.
void visit_symbols(const Type& type, const std::function<void(const PrimVarNode*)>& visit);
void visit_symbols(const PrimExpr& dim, const std::function<void(const PrimVarNode*)>& visit);

// Nodes of the type as a tree, at most `limit`; `limit` also when it nests deeper than kMaxTypeDepth. Types within
// these bounds may be recursed over.
inline constexpr int kMaxTypeDepth = 200;
int64_t type_size(const Type& type, int64_t limit);

}  // namespace headrace::relay
