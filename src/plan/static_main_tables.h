// Emits the static main: `headrace_run` and `__tvm_ffi_main`, the ways into an artifact for clients that have only
// dlopen, and for those that have tvm-ffi.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/manifest.h"

namespace headrace::plan {

inline constexpr const char* kWeightsSymbol = "headrace_weights";
// The way in for tvm-ffi: its loader looks "main" up under this name.
inline constexpr const char* kTvmFfiSymbol = "__tvm_ffi_main";

// Returns the program as the constant tables of static_main.h, in LLVM's text form, with the symbol headrace_program.
// `program` comes from emit_graph_program, with its workspace filled in; `weights` from the manifest. A `needs_runtime`
// that is not empty says why bare clients cannot run the program: the tables are then empty, and clients get that
// sentence.
std::string static_main_tables(const artifact::Program& program, std::span<const artifact::Weight> weights,
                               const std::string& triple, const std::string& needs_runtime);

// Returns the object file of static_main.c for an architecture ("x86_64", "aarch64"); empty where the build made none.
std::string_view static_main_object(std::string_view architecture);

// Returns the architectures that static_main_object has an object for.
std::vector<std::string_view> static_main_architectures();

}  // namespace headrace::plan
