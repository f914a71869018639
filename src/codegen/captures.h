// Finds the values that outlined code must be given.
#pragma once

#include <unordered_set>

#include "tir/stmt.h"

namespace headrace::codegen {

// The buffers and variables that stand in `body`, with the variables that these buffers' shapes and strides are made
// of; what `body` itself binds too. Linear in its size.
std::unordered_set<const Object*> objects_in(const tir::Stmt& body);

}  // namespace headrace::codegen
