// The one symbol that the plugin exports.
#include "codegen/llvm/emit.h"
#include "codegen/llvm/linker.h"
#include "codegen/llvm/target.h"
#include "codegen/native_plugin.h"

namespace headrace::codegen::llvm_plugin {

static constexpr NativePlugin kPlugin = {
    .version = kNativePluginVersion,
    .size_bytes = sizeof(NativePlugin),
    .build = HEADRACE_VERSION,
    .resolve_target = resolve_target,
    .compile = compile,
    .compile_llvm = compile_llvm,
    .link = link,
};

}  // namespace headrace::codegen::llvm_plugin

extern "C" const headrace::codegen::NativePlugin* headrace_llvm_plugin() {
  return &headrace::codegen::llvm_plugin::kPlugin;
}
