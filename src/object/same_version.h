// Makes a library that registers C++ with Headrace fit for one version alone: that whose headers it was built with.
// These headers show how objects lie in memory, which may change with each version, and no table of functions stands
// between.
//
// Such a library refers to a symbol of libheadrace_rt.so that has the version in its name, so that the loader refuses
// the library in another version before any code of it runs: "undefined symbol: built_with_headers_of_headrace_0_1_0".
#pragma once

extern "C" const char built_with_headers_of_headrace_0_1_0;

namespace headrace::porting {

// Keeps the reference in every library that includes this.
[[gnu::used, gnu::retain]] inline const char* const same_version = &built_with_headers_of_headrace_0_1_0;

// The name of the symbol, and what it begins with in every version.
inline constexpr const char* kVersionSymbol = "built_with_headers_of_headrace_0_1_0";
inline constexpr const char* kVersionSymbolPrefix = "built_with_headers_of_headrace_";

}  // namespace headrace::porting
