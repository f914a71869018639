// Stages that run in processes of their own, so that code which crashes or hangs ends no other.
//
// A call copies the inputs to memory that both processes share, and the outputs from there. The process that crashes is
// started again. What it had been called for fails with StageLost; pure code is called again, kMostReplays times at
// most.
#pragma once

#include <memory>

#include "executors/pipeline/isolation/host_process.h"
#include "executors/pipeline/isolation/process_options.h"
#include "executors/pipeline/isolation/wire.h"
#include "executors/pipeline/stage_code.h"

namespace headrace::executors::pipeline::isolation {

// Starts the process, and makes a stage that has the ports of its code. The stage ends its process when it ends, and
// when a pipeline that had it stops; the next call starts another one. UserError when the process cannot be started, or
// ends, fails or takes too long before it is ready.
std::shared_ptr<StageCode> make_process_stage(HostCommand command, const ProcessOptions& options = {});

}  // namespace headrace::executors::pipeline::isolation
