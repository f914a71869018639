// InferType: gives every expression its type.
//
// Types without annotation are unknown at first and solved for: parameters, results, let variables, the arguments of
// polymorphic functions. Types are unified where expressions meet. An op whose relation needs to know more is asked
// again when it is known, and may determine the type of an argument without one (the weight of a convolution). Inside
// itself a function that is not fully annotated has one type (recursion over several needs annotations); elsewhere, and
// where it is annotated, each use has its own type parameters and symbols, while symbols of enclosing functions stay.
// `?` agrees with every dimension. Dimensions of results are canonical (arith/canonical.h). inferencer.h and
// type_solver.h describe the algorithm.
//
// Types are set in place (checked_type is write-once). A node is rebuilt when its type would change or when an operand
// was rebuilt. A parameter without annotation gets its type as annotation, and a call gets the type arguments that its
// own arguments do not determine (`None` becomes `None[int32]`), because a pass may remove the expression that
// determined them. Several threads may infer one program: they share types that are equal. Calls of ops that have a
// type keep it without asking their relation again, except those with an argument that is followed as a value and is
// not a constant, whose value may have changed.
//
// Small integer tensors (at most 64 elements) are followed as values, so that shape arithmetic gives static or symbolic
// shapes. Arithmetic wraps at run time, and values that may have wrapped are not followed: a number that overflows its
// dtype, and an expression of symbols in another dtype than int64 (where it is assumed not to wrap). A symbol itself is
// followed in 32-bit dtypes, too: a program that measures a size in int32 is assumed to have no larger one.
//
// Raises one UserError that lists the type errors, each with its place and the line of its text, if any, with a caret.
// Undetermined types are reported when there is no other error. Also checks kinds (check_kind.h), and that matches
// cover all values (unmatched_cases.h). Linear in the size of the program where types are small; stack use does not
// depend on it.
#pragma once

#include "ir/module.h"

namespace headrace::relay {

// Infers the types of a module; returns the module itself when nothing had to be rebuilt. Functions that are not
// relay's are left alone.
IRModule infer_type(const IRModule& module);
// Infers types for an interpreter. Returns the module unchanged when its only errors are undetermined parts of types,
// such as the item type of an empty list (List[_]), because no result depends on them.
IRModule infer_type_if_settled(const IRModule& module);
// Infers the types of one expression, which may use the module's functions and types. A free variable without
// annotation gets the type that its uses determine.
Expr infer_type(const Expr& expr, const IRModule& module = {});

// The known elements of integer expressions, by node of the module's functions: `?` where one is unknown. A tuple's are
// its items' one after another.
using ValueMap = std::unordered_map<const ExprNode*, std::vector<PrimExpr>>;
struct TypedModule {
  IRModule module;
  ValueMap values;
};
// Infers types and also returns the integer values that inference followed.
TypedModule infer_type_and_values(const IRModule& module);

}  // namespace headrace::relay
