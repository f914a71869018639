// Regions: functions marked Compiler, which another compiler than the native one takes, and the calls of them.
#pragma once

#include "ir/module.h"
#include "relay/expr.h"

namespace headrace::relay {

// Returns the function that a call names, a literal or one of `module`, if it is marked Compiler; null for other calls.
// UserError for a Compiler that is not a name.
Function region_of(const CallNode& call, const IRModule& module);

// Returns the name under which the code of a region is found: its global_symbol, else its name in the module. UserError
// at a literal without a global_symbol.
std::string region_name(const CallNode& call, const FunctionNode& region);

}  // namespace headrace::relay
