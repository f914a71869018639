// The machine that a compile is for, as the code generator and the schedules need it.
#pragma once

#include "codegen/native.h"
#include "lower/schedule.h"

namespace headrace::driver {

// What the user asked for, without the features of the processor that the runtime has no test for: an artifact needs
// only what loading can check. UserError as NativeCompiler::resolve_target, for a triple of another architecture than
// this machine's, and when such a feature is asked for by name.
codegen::NativeTarget choose_target(const codegen::NativeCompiler& compiler, const codegen::TargetRequest& request);

lower::ScheduleOptions schedule_options(const codegen::NativeTarget& target);

}  // namespace headrace::driver
