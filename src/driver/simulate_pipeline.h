// The input of the simulator for a pipeline over simulated devices.
#pragma once

#include "artifact/pipeline_plan.h"
#include "plan/pipeline/simulate.h"

namespace headrace::driver {

// Returns the model of a saved plan whose stage i is that of the split: its stages with the split's times to compute,
// and the transfers that it runs with (devices/transfers.h), each direction of a link a group. Edges have the slots and
// requests the places that they have in the run.
plan::PipelineModel model_of_pipeline(const artifact::PipelinePlan& plan, const plan::SplitPlan& split);

}  // namespace headrace::driver
