// Stages that run programs of artifacts in processes of their own.
#pragma once

#include "executors/pipeline/isolation/process_stage.h"

namespace headrace::executors::pipeline::isolation {

// Starts a process that runs the programs, and makes a stage of it: see make_process_stage, make_executor_stage and
// make_batch_executor_stage. MissingError without the program headrace-stage-host.
std::shared_ptr<StageCode> make_program_stage(const ProgramFiles& programs, const ProcessOptions& options);

// Returns the path of the program that runs such stages, which lies beside the libraries in that folder, or in the
// folder bin/ that belongs to it. MissingError where it is not installed.
std::string find_stage_host(const std::string& library_folder);

}  // namespace headrace::executors::pipeline::isolation
