// Machines as LLVM knows them.
#pragma once

#include <memory>

#include "codegen/native.h"

namespace llvm {
class TargetMachine;
}

namespace headrace::codegen::llvm_plugin {

NativeTarget resolve_target(const TargetRequest& request);

// Makes LLVM's machine of a target from resolve_target. Floating point is exact: nothing is contracted or reassociated.
std::unique_ptr<llvm::TargetMachine> make_target_machine(const NativeTarget& target, int opt_level);

}  // namespace headrace::codegen::llvm_plugin
