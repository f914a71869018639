// Composite functions: literals that stand for the match of a backend's pattern. Their attribute Composite
// (relay/function_attrs.h) is the name of the pattern.
#pragma once

#include <string>

#include "relay/expr.h"

namespace headrace::relay {

// Returns the composite function that is called; null for other calls.
const FunctionNode* called_composite(const CallNode& call);

// Returns the name of a composite function's pattern; empty for other functions, and where the attribute is not a
// string.
std::string composite_name(const FunctionNode& function);

// Refuses composite functions that are nested too deep: `depth` counts this one and those around it. Passes recurse
// into them.
void check_composite_depth(int depth, const CallNode& call);

}  // namespace headrace::relay
