// InferType: gives every expression its type.
//
// What nobody wrote is unknown at first and solved for: parameters, results, let variables, the arguments of
// polymorphic functions. Types are unified as expressions meet; an op whose relation needs to know more is asked again
// when it is known, and may say what an argument that nobody typed must be (the weight of a convolution). Inside itself
// a function that is not fully annotated has one type (recursion over several needs annotations); elsewhere, and where
// it is annotated, each use has its own type parameters and symbols; symbols of enclosing functions stay. `?` agrees
// with every dimension. Dimensions of results are canonical (arith/canonical.h).
//
// Types are set in place (checked_type is write-once); a node whose type would change, or whose operand was rebuilt, is
// rebuilt; a parameter without annotation gets its type as one, and a call the type arguments that its own arguments do
// not say (`None` becomes `None[int32]`): what says them may be gone after a pass. Several threads may infer one
// program: they share the types that are equal. Ops' calls that are typed already keep their type without asking their
// relation again, but for those with an argument that is followed as a value and no constant: its value may have
// changed.
//
// Small integer tensors (at most 64 elements) are followed as values, so that shape arithmetic gives static or symbolic
// shapes. Arithmetic wraps at run time, and what may have wrapped is not followed: a number that its dtype does not
// hold, and an expression of symbols in another dtype than int64 (where it is taken not to wrap). A symbol itself is
// followed in dtypes of 32 bits too: a program that measures a size in int32 is taken to have none past it.
//
// Raises one UserError that lists the type errors, each with its place and the line of its text, if any, with a caret;
// what nothing determines is told when there is no other. Kinds are checked (check_kind.h), and that matches cover all
// values (unmatched_cases.h). Linear in the size of the program where types are small; stack use does not depend on it.
#pragma once

#include "ir/module.h"

namespace headrace::relay {

// The module itself when nothing had to be rebuilt. Functions that are not relay's are left alone.
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
