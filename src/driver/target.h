// The machine that a compile is for, as the code generator and the schedules need it.
#pragma once

#include "codegen/native.h"
#include "ir/target.h"
#include "lower/schedule.h"

namespace headrace::driver {

// The processor that the options of the programs and of Python name; empty: this machine's. `features` as
// "+avx2,-avx512f".
Target llvm_target(const std::string& cpu, const std::string& features);

// UserError: code is not made for targets of this kind, or not for a host other than the target, or the target is one
// that checked_target refuses.
void check_target(const Target& target);

// The processor features of a target of kind llvm, by LLVM's names, sorted; none of another kind's. UserError as
// NativeCompiler::resolve_target.
std::vector<std::string> target_features(const codegen::NativeCompiler& compiler, const Target& target);

// What the user asked for, without the features of the processor that the runtime has no test for: an artifact needs
// only what loading can check. UserError as check_target and NativeCompiler::resolve_target, for a triple of another
// architecture than this machine's, and when such a feature is asked for by name.
codegen::NativeTarget choose_target(const codegen::NativeCompiler& compiler, const Target& target);

lower::ScheduleOptions schedule_options(const codegen::NativeTarget& target);

}  // namespace headrace::driver
