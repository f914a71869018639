// InferType: gives every expression its type.
//
// Types flow from arguments to results over the DAG; lets, functions, matches and globals are entered in order. A
// global function without a full signature is inferred at its first use; a recursive one needs its return type
// annotated. A call instantiates the symbols (and type parameters) of the callee's parameters; symbols of enclosing
// functions stay. Dimensions of results are canonical (arith/canonical.h). Types are set in place (checked_type is
// write-once); a node whose type would change, or whose operand was rebuilt, is rebuilt. Nodes that are typed already
// keep their type without asking their relation again. Small integer tensors (at most 64 elements) are followed as
// values, so that shape arithmetic gives static or symbolic shapes. Raises one UserError that lists every type error
// found, each with its place. Linear in the size of the program; stack use does not depend on it.
#pragma once

#include "ir/module.h"

namespace headrace::relay {

// The module itself when nothing had to be rebuilt. Functions that are not relay's are left alone.
IRModule infer_type(const IRModule& module);
// As above for one expression, which may use the module's functions and types; free variables need annotations.
Expr infer_type(const Expr& expr, const IRModule& module = {});

// The known elements of integer expressions, by node of `expr`: `?` where one is unknown. A tuple's are its items'
// one after another.
using ValueMap = std::unordered_map<const ExprNode*, std::vector<PrimExpr>>;
struct TypedExpr {
  Expr expr;
  ValueMap values;
};
TypedExpr infer_type_and_values(const Expr& expr, const IRModule& module = {});

}  // namespace headrace::relay
