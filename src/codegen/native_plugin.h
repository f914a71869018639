// The table that libheadrace_llvm.so hands over. Plain C++ types cross it, so both sides come from one build: `version`
// and `build` are compared before anything else is touched.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "codegen/native.h"

namespace headrace::codegen {

inline constexpr uint32_t kNativePluginVersion = 4;

struct LinkJob {
  std::span<const ObjectCode> objects;
  std::span<const ObjectCode> libraries;   // shared objects that are only named as needed when a symbol is used
  std::span<const std::string> arguments;  // further options of ld.lld
  std::string script;                      // linker script; may be empty
  std::string version_script;              // may be empty
};

// All functions may be called from any thread, and throw headrace's errors.
struct NativePlugin {
  uint32_t version;
  uint32_t size_bytes;
  const char* build;  // Headrace's version
  const char* llvm;   // LLVM's version
  NativeTarget (*resolve_target)(const TargetRequest& request);
  std::string (*compile)(std::span<const tir::PrimFunc> functions, const NativeTarget& target, CodeForm form,
                         int opt_level);
  std::string (*compile_llvm)(const std::string& text, const NativeTarget& target, CodeForm form, int opt_level);
  std::string (*link)(const LinkJob& job);
};

inline constexpr const char* kNativePluginEntry = "headrace_llvm_plugin";
using NativePluginEntry = const NativePlugin* (*)();

}  // namespace headrace::codegen
