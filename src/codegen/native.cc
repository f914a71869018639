#include "codegen/native.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/library_folder.h"
#include "codegen/for_each_index.h"
#include "codegen/native_plugin.h"

namespace headrace::codegen {

bool NativeTarget::has(std::string_view feature) const {
  return std::binary_search(enabled.begin(), enabled.end(), feature, std::less<>());
}

namespace {

constexpr const char* kPluginFile = "libheadrace_llvm.so";

std::string default_plugin_path() { return (std::filesystem::path(library_folder()) / kPluginFile).string(); }

// The plugin, or a library that it needs, is not there; or it is, and something else is wrong, such as a limit on
// memory.
[[noreturn]] void fail_to_open(const std::string& path, std::string_view reason) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored) || reason.find("No such file") != std::string_view::npos) {
    throw MissingError(fmt::format(
        "the native code generator is missing: {}; install the package that brings {} and LLVM 19.1, or build the "
        "target headrace_llvm",
        reason, kPluginFile));
  }
  const bool is_memory =
      reason.find("memory") != std::string_view::npos || reason.find("map ") != std::string_view::npos;
  throw_user_error(
      "the native code generator '{}' exists but cannot be loaded: {}; {}", path, reason,
      is_memory ? "allow the process more memory (ulimit -v, or the limit of the container)" : "install it again");
}

void check_plugin(const std::string& path, const NativePlugin& plugin) {
  // `build` is read only when the layout of the table is known.
  if (plugin.version == kNativePluginVersion && plugin.size_bytes == sizeof(NativePlugin) &&
      std::string_view(plugin.build) == HEADRACE_VERSION) {
    return;
  }
  throw MissingError(fmt::format(
      "the native code generator '{}' belongs to another build of Headrace (interface {}, this is {} of Headrace {}); "
      "install the two from the same release",
      path, plugin.version, kNativePluginVersion, HEADRACE_VERSION));
}

}  // namespace

NativeCompiler NativeCompiler::load(const std::string& plugin_path) {
  const std::string path = plugin_path.empty() ? default_plugin_path() : plugin_path;
  // RTLD_LOCAL: LLVM's symbols stay out of the global scope. Never closed: LLVM keeps process-wide state.
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    fail_to_open(path, reason == nullptr ? "unknown reason" : reason);
  }
  auto entry = reinterpret_cast<NativePluginEntry>(dlsym(handle, kNativePluginEntry));
  if (entry == nullptr) {
    throw MissingError(fmt::format("'{}' is not a native code generator of Headrace: it lacks the function {}", path,
                                   kNativePluginEntry));
  }
  const NativePlugin* plugin = entry();
  check_plugin(path, *plugin);
  return NativeCompiler(plugin);
}

std::string NativeCompiler::llvm_version() const { return plugin_->llvm; }

NativeTarget NativeCompiler::resolve_target(const TargetRequest& request) const {
  return plugin_->resolve_target(request);
}

std::vector<ObjectCode> NativeCompiler::compile(std::span<const tir::PrimFunc> functions, const NativeTarget& target,
                                                const CompileOptions& options) const {
  std::vector<ObjectCode> objects(functions.size());
  for_each_index(functions.size(), options.jobs, [&](size_t i) {
    poll_interrupt();
    objects[i] = {tir::symbol_of(*functions[i]),
                  plugin_->compile(functions.subspan(i, 1), target, CodeForm::kObject, options.opt_level)};
  });
  return objects;
}

std::string NativeCompiler::emit_text(std::span<const tir::PrimFunc> functions, const NativeTarget& target,
                                      CodeForm form, int opt_level) const {
  return plugin_->compile(functions, target, form, opt_level);
}

std::vector<ObjectCode> NativeCompiler::compile_llvm(std::span<const std::string> texts, const NativeTarget& target,
                                                     const CompileOptions& options) const {
  std::vector<ObjectCode> objects(texts.size());
  for_each_index(texts.size(), options.jobs, [&](size_t i) {
    poll_interrupt();
    objects[i] = {fmt::format("module {}", i),
                  plugin_->compile_llvm(texts[i], target, CodeForm::kObject, options.opt_level)};
  });
  return objects;
}

std::string NativeCompiler::emit_llvm(const std::string& text, const NativeTarget& target, CodeForm form,
                                      int opt_level) const {
  return plugin_->compile_llvm(text, target, form, opt_level);
}

}  // namespace headrace::codegen
