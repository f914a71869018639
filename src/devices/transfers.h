// Transfers: stages that copy tensors between the memory of the host and that of devices.
#pragma once

#include <vector>

#include "executors/pipeline/spec.h"

namespace headrace::devices {

// A stage of a spec that copies one tensor.
struct Transfer {
  size_t stage = 0;
  artifact::Location device = {};
  bool is_in = true;   // to the device; false: from it
  int64_t nbytes = 0;  // -1: a parameter, which is copied once for each of its values
};

// Adds a stage for each tensor that is read in other memory than it is made in, and reads it from there: each tensor is
// copied once to each memory, and tensors between two devices pass through the host. The pipeline's inputs, outputs and
// parameters are the host's. The stages of one direction of a device's link are one group, so they take turns, and run
// beside the stages that compute. Returns the stages that were added.
//
// Before: a (cpu) -> b (on sim:0), whose ports differ in memory, which check_spec refuses.
// After:  a -> "a.y to sim:0", in the group "sim:0 in" -> b.
std::vector<Transfer> add_transfers(executors::pipeline::PipelineSpec& spec);

}  // namespace headrace::devices
