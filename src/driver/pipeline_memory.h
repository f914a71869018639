// The memory that the stages of a pipeline take while it runs, by the plan and the manifests of its models.
#pragma once

#include <span>

#include "artifact/manifest.h"
#include "artifact/pipeline_plan.h"
#include "devices/simulated_device.h"

namespace headrace::driver {

struct StageMemory {
  // Weights, each once even if programs for several batches read it; the working memory of each program; and the
  // tensors in which a stage gathers batches. 0 for a function, whose memory is unknown.
  int64_t program_bytes = 0;
  // The slots of the tensors that pass between it and other stages, or the link of its device; an end of a connection
  // on the CPU counts the slots that both ends share.
  int64_t slot_bytes = 0;

  int64_t total() const { return program_bytes + slot_bytes; }
};

// Returns the memory of each stage of a plan whose stages have their ports, as one that was saved has; `manifests` are
// those of the plan's models. The memory is that of one replica, for as many requests in the pipeline as the plan says.
// It counts neither what requests bring and take away on the CPU, nor the slots of a queue on the CPU beyond those that
// its stages need, nor values of any type, nor what a backend allocates for itself. UserError as place_stages of
// devices/place_stages.h.
std::vector<StageMemory> memory_of_stages(const artifact::PipelinePlan& plan,
                                          std::span<const artifact::Manifest* const> manifests);

// A simulated device of a plan, and what its stages take of it together: each weight of a model once, even if several
// stages read it, but once more for each process of a stage, and the slots of each tensor once, even if both ends of a
// connection lie there.
struct DeviceMemory {
  devices::SimulatedDevice device = {};
  int64_t nbytes = 0;
};

// Returns the simulated devices of a plan in the order in which its groups name them, as memory_of_stages counts.
std::vector<DeviceMemory> memory_of_devices(const artifact::PipelinePlan& plan,
                                            std::span<const artifact::Manifest* const> manifests);

}  // namespace headrace::driver
