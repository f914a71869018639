// The one symbol that the plugin exports.
#include <llvm/Config/llvm-config.h>
#include <llvm/Support/ErrorHandling.h>

#include <new>

#include "codegen/llvm/emit.h"
#include "codegen/llvm/linker.h"
#include "codegen/llvm/target.h"
#include "codegen/native_plugin.h"

namespace headrace::codegen::llvm_plugin {

static constexpr NativePlugin kPlugin = {
    .version = kNativePluginVersion,
    .size_bytes = sizeof(NativePlugin),
    .build = HEADRACE_VERSION,
    .llvm = LLVM_VERSION_STRING,
    .resolve_target = resolve_target,
    .compile = compile,
    .compile_llvm = compile_llvm,
    .link = link,
};

// LLVM, which is built without exceptions, would end the process where memory runs out.
[[noreturn]] static void throw_out_of_memory(void*, const char*, bool) { throw std::bad_alloc(); }

}  // namespace headrace::codegen::llvm_plugin

extern "C" const headrace::codegen::NativePlugin* headrace_llvm_plugin() {
  static const bool once = [] {
    llvm::install_bad_alloc_error_handler(headrace::codegen::llvm_plugin::throw_out_of_memory);
    return true;
  }();
  static_cast<void>(once);
  return &headrace::codegen::llvm_plugin::kPlugin;
}
