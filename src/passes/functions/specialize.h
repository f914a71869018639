// Specialise: functions of the module with type parameters become one function for each set of types they are used
// with.
//
//   def @first[A](%a: A, %b: A) -> A {...}            def @first_1(%a: float32, %b: float32) -> float32 {...}
//   @first(1f, 2f)                               ->   @first_1(1f, 2f)
//
// A constructor or a function with type parameters that is a value (an argument, an item, what a branch gives or a
// reference holds) becomes a function literal of the types that are asked for there; a variable that is but another
// name of one gives way to it. What is left of functions with type parameters nothing refers to; it is dropped. For
// passes that need to know every type (Defunctionalization). Needs types; what it gives has types. Linear in the size
// of the program and its copies. Preserves results to the last bit.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

// Copies that a program may need; one that calls itself with ever larger types would need infinitely many.
inline constexpr size_t kMostSpecializations = 2'000;
// Nodes of a type that a function may be used with.
inline constexpr int64_t kMostTypeNodes = 4'096;

// UserError where the types of a use are not known or are several, for a function literal that has type parameters
// where it uses such a function, and past kMostSpecializations.
IRModule specialize(const IRModule& module);

}  // namespace headrace::passes
