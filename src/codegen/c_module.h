// Modules of C or C++ source, which code generators return for regions: the driver compiles the text and links it into
// the artifact, so that the file needs no compiler where it runs.
//
//   relay.ext.mine(function f)  ->  make_c_module("... TVM_DLL_EXPORT_TYPED_FUNC(f, f__wrapper_)", "c", {"f"})
#pragma once

#include "runtime/module.h"

namespace headrace::codegen {

inline constexpr std::string_view kCModuleKind = "c";

// The most tensors that TVM_DLL_EXPORT_TYPED_FUNC takes in C; in C++ there is no limit.
inline constexpr size_t kMostTypedArguments = 16;

// Returns the text that goes before such a source when it is compiled: the head of kernels (codegen/c_source.h),
// <stdlib.h>, and the macro TVM_DLL_EXPORT_TYPED_FUNC(NAME, FUNCTION), which makes the kernel NAME of
// `int32_t FUNCTION(DLTensor*, ...)`, inputs first, then outputs.
std::string c_source_head();

// Makes a module of source in the language `format`: "c", or "cc", "cpp" for C++. Its functions are kernels
// (headrace/kernel_abi.h) of the names `functions`, for which it has PackedFuncs that say that the source is to be
// compiled. `const_vars` is what get_const_vars returns. GetSource returns the source, and
// GetSource("file") the same below c_source_head(), which a compiler takes. UserError for another format.
runtime::Module make_c_module(const std::string& source, const std::string& format,
                              const Array<std::string>& functions = {}, const Array<std::string>& const_vars = {});

// Returns whether make_c_module() made the module.
bool is_c_module(const runtime::Module& module);
// Compiles such a module to an object by `compiler`, or, if that is empty, as find_c_compiler() says for `user`.
// UserError when the compiler refuses it.
std::string compile_c_module(const runtime::Module& module, const std::string& compiler, std::string_view user);

}  // namespace headrace::codegen
