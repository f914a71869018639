// The machine that a compile is for, as the code generator and the schedules need it.
#pragma once

#include "codegen/native.h"
#include "ir/target.h"
#include "lower/schedule.h"

namespace headrace::driver {

// The processor that the options of the programs and of Python name; empty: this machine's. `features` as
// "+avx2,-avx512f".
Target llvm_target(const std::string& cpu, const std::string& features);

// What the user asked for, without the features of the processor that the runtime has no test for: an artifact needs
// only what loading can check. UserError as NativeCompiler::resolve_target, for a triple of another architecture than
// this machine's, and when such a feature is asked for by name.
codegen::NativeTarget choose_target(const codegen::NativeCompiler& compiler, const Target& target);

lower::ScheduleOptions schedule_options(const codegen::NativeTarget& target);

}  // namespace headrace::driver
