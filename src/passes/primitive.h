// What FuseOps makes: a function that is compiled as a unit and that other passes leave as it is.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

// The attribute of such a function; its value is not 0.
inline constexpr const char* kPrimitive = "Primitive";

bool is_primitive(const relay::FunctionNode& function);
inline bool is_primitive(const relay::Function& function) { return function && is_primitive(*function); }

}  // namespace headrace::passes
