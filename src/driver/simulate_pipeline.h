// The input of the simulator for a pipeline over simulated devices, and for one that runs.
#pragma once

#include <span>

#include "artifact/pipeline_plan.h"
#include "executors/pipeline/spec.h"
#include "plan/pipeline/simulate.h"

namespace headrace::driver {

// Returns the model of a saved plan whose stage i is that of the split: its stages with the split's times to compute,
// and the transfers that it runs with (devices/transfers.h), each direction of a link a group. Edges have the slots and
// requests the places that they have in the run.
plan::PipelineModel model_of_pipeline(const artifact::PipelinePlan& plan, const plan::SplitPlan& split);

// Returns the model of a pipeline that runs: `stage_ns` has the time of a request in each stage, in the order of the
// spec. A group serves as many requests at a time as its stage has replicas.
plan::PipelineModel model_of_spec(const executors::pipeline::PipelineSpec& spec, int32_t max_inflight,
                                  std::span<const int64_t> stage_ns);

}  // namespace headrace::driver
