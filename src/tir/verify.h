// The rules a PrimFunc keeps, checked in this order:
//   1. it has a global_symbol, a body, as many parameters as outputs or more, and no part that is null;
//   2. parameters are different buffers of scalar numbers; their dimensions and strides are int64 and not negative, `?`
//      is none of them; a symbol in them is by itself a dimension or a stride of some parameter;
//   3. a variable is bound by a loop, a let or as a symbol, and used only where that reaches; it is not bound again
//      within its own scope (a copy of the statement elsewhere may bind it again);
//   4. a buffer that is read or written is a parameter or allocated around; an allocation is dense, of constant shape,
//      and not of a buffer that is there already;
//   5. operands have the dtypes that ir/prim_expr.h says, nodes the dtype that follows from them; intrinsics have their
//      number of arguments; conditions of statements are scalar bools;
//   6. a load or store has one integer index a dimension, and only the last may be a vector; what is stored has
//      the buffer's dtype with the lanes of that index; vector_load and prefetch name a place in a buffer;
//   7. a loop's variable, begin and extent are integers of one dtype; vectorized and unrolled loops have constant
//      extents; a parallel loop is inside no other parallel loop and no vectorized one;
//   8. a layout of the workspace (workspace.h) has a place for each of its buffers, and those that are allocated
//      together do not overlap.
// Linear in the size of the function; expressions may be of any depth, statements nest as one kernel's do.
#pragma once

#include "ir/module.h"
#include "tir/stmt.h"

namespace headrace::tir {

// Returns all breaches, each as "place: rule", where the place is the statement's text; empty when the function keeps
// the rules. A breach that repeats in one statement is listed once.
std::vector<std::string> find_breaches(const PrimFunc& function);
// Throws a UserError that lists the breaches of all tir functions in the module, if there are any.
void verify(const IRModule& module);
void verify(const PrimFunc& function);

}  // namespace headrace::tir
