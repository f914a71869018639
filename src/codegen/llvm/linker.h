// Runs lld within this process.
#pragma once

#include <string>

#include "codegen/native_plugin.h"

namespace headrace::codegen::llvm_plugin {

// Links and returns the file's bytes. UserError with lld's messages. Runs one link at a time: others wait.
std::string link(const LinkJob& job);

}  // namespace headrace::codegen::llvm_plugin
