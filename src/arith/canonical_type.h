// Types whose dimensions are in canonical form, for comparisons: Tensor[(n + n), float32] is Tensor[(n * 2), float32].
#pragma once

#include "ir/type.h"

namespace headrace::arith {

// Returns the type with each dimension in canonical form; a dimension that has none stays. Returns `type` itself where
// nothing changes. Nesting is limited only by memory.
Type canonical_type(const Type& type);

}  // namespace headrace::arith
