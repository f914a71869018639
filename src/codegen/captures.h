// Finds the values that outlined code must be given.
#pragma once

#include <unordered_set>

#include "tir/stmt.h"

namespace headrace::codegen {

// Returns the buffers and variables that occur in `body`, bound ones included, and the variables in the shapes and
// strides of those buffers. Linear in its size.
std::unordered_set<const Object*> objects_in(const tir::Stmt& body);

}  // namespace headrace::codegen
