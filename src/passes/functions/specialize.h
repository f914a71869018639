// Specialise: functions of the module with type parameters become one function for each set of types they are used
// with.
//
//   def @first[A](%a: A, %b: A) -> A {...}            def @first_1(%a: float32, %b: float32) -> float32 {...}
//   @first(1f, 2f)                               ->   @first_1(1f, 2f)
//
// A constructor or a generic function that is used as a value (an argument, an item, the result of a branch or of a
// reference) becomes a function literal of the types required there; a variable that is only an alias of one is
// replaced. Generic functions then have no references and are dropped. For passes that need to know every type
// (Defunctionalization). Needs types and returns a typed module. Linear in the size of the program and its copies.
// Preserves results to the last bit.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

// Copies that a program may need; one that calls itself with ever larger types would need infinitely many.
inline constexpr size_t kMostSpecializations = 2'000;
// Nodes of a type that a function may be used with.
inline constexpr int64_t kMostTypeNodes = 4'096;

// Specialises a module. UserError where the types of a use are unknown or ambiguous, for a function literal with type
// parameters that uses such a function, and past kMostSpecializations.
IRModule specialize(const IRModule& module);

}  // namespace headrace::passes
