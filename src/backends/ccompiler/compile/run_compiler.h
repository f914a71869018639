// Runs a C compiler of the system.
#pragma once

#include <string>

namespace headrace::backends::ccompiler {

// Returns the compiler to use: `wanted`, else the environment's CC, else the first of cc, gcc and clang that is there.
// MissingError that says what to install when there is none.
std::string find_compiler(const std::string& wanted);

// Compiles a C99 source to a relocatable object, and returns its bytes. UserError with the compiler's first words when
// it fails, and MissingError when it cannot be started.
std::string compile_c(const std::string& compiler, const std::string& source);

}  // namespace headrace::backends::ccompiler
