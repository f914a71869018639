// Describes the machine that a compile is for to the code generator and the schedules.
#pragma once

#include "codegen/native.h"
#include "cost/machine.h"
#include "ir/target.h"

namespace headrace::driver {

// Makes the target for the CPU and features that a user named on the command line or in Python. An empty `cpu` means
// this machine's. `features` has the form "+avx2,-avx512f".
Target llvm_target(const std::string& cpu, const std::string& features);

// Throws UserError if there is no code generator for targets of this kind, if the target has a different host, or if
// checked_target rejects the target.
void check_target(const Target& target);

// Returns the sorted LLVM names of the CPU features of a target of kind llvm; empty for other kinds. Throws UserError
// as NativeCompiler::resolve_target.
std::vector<std::string> target_features(const codegen::NativeCompiler& compiler, const Target& target);

// Resolves the target for the code generator. Leaves out CPU features that the runtime cannot detect, because the
// loader must be able to check every feature that an artifact needs. Throws UserError as check_target and
// NativeCompiler::resolve_target, for a triple of an architecture that artifacts cannot be made for, and if the user
// named a feature that the runtime cannot detect.
codegen::NativeTarget choose_target(const codegen::NativeCompiler& compiler, const Target& target);

// Returns the machine that lowering and cost models see: the row of the target's processor (cost/machine.h).
cost::Machine machine_of(const codegen::NativeTarget& target);

}  // namespace headrace::driver
