// Whether a function's arguments are what its parameters say.
#pragma once

#include "relay/expr.h"

namespace headrace::interp {

// `given`: the arguments' types, as many as there are parameters; null where an argument's is not known. UserError for
// a tensor of another dtype or shape than its parameter's, in tuples too, and for two sizes of one symbol.
void check_arguments(const relay::FunctionNode& function, const std::vector<Type>& given);

}  // namespace headrace::interp
