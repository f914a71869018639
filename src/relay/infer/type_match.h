// Predicates and substitutions on types: equality, size, symbols, types in place of variables.
#pragma once

#include "ir/module.h"

namespace headrace::relay {

// Returns whether two types are equal in every part; `?` equals `?`. Symbols are compared by identity, dimensions by
// value.
bool same_type(const Type& a, const Type& b);

// Returns the type itself for a type function that is applied to nothing.
Type strip_empty_call(const Type& type);

// The values that a call gives to the callee's symbols and type variables.
struct TypeBindings {
  std::unordered_map<const PrimVarNode*, PrimExpr> symbols;
  std::unordered_map<const TypeVarNode*, Type> types;
};

// Replaces variables and symbols in `type` by their bindings; a symbol without one for which `can_bind` is true makes
// its dimension `?`.
Type instantiate(const Type& type, const std::function<bool(const Object*)>& can_bind, const TypeBindings& bindings);

// Calls `visit` for each symbol in the type's dimensions.
void visit_symbols(const Type& type, const std::function<void(const PrimVarNode*)>& visit);
void visit_symbols(const PrimExpr& dim, const std::function<void(const PrimVarNode*)>& visit);

// Nodes of the type as a tree, at most `limit`; `limit` also when it nests deeper than kMaxTypeDepth. Types within
// these bounds may be recursed over.
inline constexpr int kMaxTypeDepth = 200;
inline constexpr int64_t kMaxTypeSize = int64_t{1} << 16;
int64_t type_size(const Type& type, int64_t limit);

}  // namespace headrace::relay
