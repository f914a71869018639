// Runs a C or C++ compiler of the system.
#pragma once

#include <string>
#include <string_view>

namespace headrace::codegen {

enum class CLanguage : uint8_t { c, cpp };

// Returns the compiler to use for `user`, such as "the backend 'ccompiler'": `wanted`, else the environment's CC (CXX
// for C++), else the first of cc, gcc and clang (c++, g++ and clang++) that is there. MissingError that says what to
// install when there is none.
std::string find_c_compiler(const std::string& wanted, std::string_view user, CLanguage language = CLanguage::c);

// Compiles a source, C11 or C++17, to a relocatable object, and returns its bytes. UserError with the compiler's first
// words when it fails, and MissingError when it cannot be started.
std::string compile_c(const std::string& compiler, const std::string& source, CLanguage language = CLanguage::c);

}  // namespace headrace::codegen
