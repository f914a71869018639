// Puts the stages of a pipeline on the devices that its plan names.
#pragma once

#include "artifact/pipeline_plan.h"
#include "devices/open_device.h"
#include "devices/transfers.h"

namespace headrace::devices {

struct PlacedStages {
  // In the order in which groups of the plan name them. The codes of the spec keep them.
  std::vector<std::shared_ptr<OpenDevice>> devices = {};
  std::vector<Transfer> transfers = {};
};

// Opens each device that a group of the plan lies on, puts the group's stages there, and adds the transfers between
// memories. The spec is that of the plan (spec_of_plan); one whose stages are all on the CPU stays as it is. Groups of
// one device share it and take turns. UserError for a group on a device that is neither the CPU nor simulated, devices
// of one number that differ, a stage on a device that has replicas, and as make_simulated_stage.
PlacedStages place_stages(const artifact::PipelinePlan& plan, executors::pipeline::PipelineSpec& spec);

// Returns the time of a transfer of these; 0 for that of a parameter.
int64_t transfer_ns(const PlacedStages& placed, const Transfer& transfer);

}  // namespace headrace::devices
