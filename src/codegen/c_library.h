// The functions of C's library that generated code calls for intrinsics.
#pragma once

#include <string_view>
#include <vector>

namespace headrace::codegen {

// Returns the functions that the rows of codegen/c_intrinsic.cc name, in the order of the rows. Each exists for double
// under its name and for float with the suffix "f". Native code calls no other function for an intrinsic.
const std::vector<std::string_view>& functions_of_intrinsics();

}  // namespace headrace::codegen
