// Attributes that say which pass, compiler or backend handles a function. Their values are not 0.
#pragma once

#include "relay/expr.h"

namespace headrace::relay {

// Marks a function that FuseOps made: it is compiled as one kernel, and other passes do not change it.
inline constexpr const char* kPrimitive = "Primitive";
// Another compiler takes the function; the value is its name.
inline constexpr const char* kCompiler = "Compiler";
// The function is a pattern that a backend knows; the value is its name.
inline constexpr const char* kComposite = "Composite";
// Passes leave the function as it is.
inline constexpr const char* kSkipOptimization = "SkipOptimization";

// The strides, in elements, at which the kernel of a primitive function writes its only result (plan/join_views.h);
// without it the result is dense.
inline constexpr const char* kResultStrides = "result_strides";

// The name under which code that is compiled for the function is found.
inline constexpr const char* kGlobalSymbol = "global_symbol";

// Return those attributes; nothing when the function has none. UserError at the function for a value that is not a
// string, or is an empty one.
std::optional<std::string> compiler_of(const FunctionNode& function);
std::optional<std::string> symbol_of(const FunctionNode& function);

// Returns the value of kResultStrides; empty where the function has none.
Shape result_strides_of(const FunctionNode& function);

bool is_primitive(const FunctionNode& function);
inline bool is_primitive(const Function& function) { return function && is_primitive(*function); }

// Passes do not rewrite its body: it is primitive, another compiler's, or marked SkipOptimization.
bool is_left_alone(const FunctionNode& function);
// Returns whether the function stays a unit in the body around it: it is primitive, another compiler's, or a composite.
bool is_sealed(const FunctionNode& function);
// Returns whether passes visit and rewrite `expr` in a body: true for everything but functions that are sealed or left
// alone.
bool is_entered(const Expr& expr);

}  // namespace headrace::relay
