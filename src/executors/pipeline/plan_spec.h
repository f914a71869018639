// From the plan of a file to a pipeline that can run.
#pragma once

#include <functional>
#include <memory>

#include "artifact/pipeline_plan.h"
#include "executors/pipeline/spec.h"

namespace headrace::executors::pipeline {

// Returns the code of one replica of a stage.
using MakeCode = std::function<std::shared_ptr<StageCode>(const artifact::PipelineStage& stage)>;

// Makes the spec of a plan that keeps the rules of artifact/check_pipeline.h; calls `make_code` once for each replica,
// in the order of the stages. UserError, with the stage and both types, where the ports of a stage's code are not those
// that the plan says.
PipelineSpec spec_of_plan(const artifact::PipelinePlan& plan, const MakeCode& make_code);

// Makes code that has the ports of the plan and fails when it is run: for checking the spec of a plan.
std::shared_ptr<StageCode> make_ports_only(const artifact::PipelineStage& stage);

}  // namespace headrace::executors::pipeline
