#include "devices/place_stages.h"

#include <algorithm>

#include "base/error.h"
#include "devices/simulated_stage.h"

namespace headrace::devices {
namespace {

using namespace executors::pipeline;

// Returns the open device with these numbers, and opens it if there is none.
std::shared_ptr<OpenDevice> require_device(PlacedStages& placed, const artifact::PipelineGroup& group) {
  const std::optional<SimulatedDevice> wanted = simulated_device_at(group.location);
  if (!wanted)
    throw_user_error("group '{}' is on {}; stages run on cpu:0 and on simulated devices", group.name,
                     to_string(group.location));
  for (const std::shared_ptr<OpenDevice>& device : placed.devices) {
    if (device->device() == *wanted) return device;
    if (device->device().number == wanted->number)
      throw_user_error("{} and {} are one device with two sets of numbers; give one of them another number",
                       to_string(device->device()), to_string(*wanted));
  }
  return placed.devices.emplace_back(std::make_shared<OpenDevice>(*wanted));
}

void place_stage(StageSpec& stage, const std::shared_ptr<OpenDevice>& device) {
  if (stage.replicas.size() > 1)
    throw_user_error("stage '{}' has {} replicas on {}, which runs one call at a time; give it one", stage.name,
                     stage.replicas.size(), name_of(device->device()));
  try {
    stage.replicas[0] = make_simulated_stage(std::move(stage.replicas[0]), device);
  } catch (const UserError& error) {
    throw UserError(fmt::format("stage '{}': {}", stage.name, error.message()));
  }
}

}  // namespace

PlacedStages place_stages(const artifact::PipelinePlan& plan, PipelineSpec& spec) {
  HEADRACE_CHECK(plan.stages.size() == spec.stages.size(), "a plan of {} stages for a spec of {}", plan.stages.size(),
                 spec.stages.size());
  PlacedStages placed;
  for (size_t i = 0; i < plan.stages.size(); ++i) {
    const artifact::PipelineGroup& group = plan.groups.at(static_cast<size_t>(plan.stages[i].group));
    if (group.location != artifact::Location{}) place_stage(spec.stages[i], require_device(placed, group));
  }
  if (!placed.devices.empty()) placed.transfers = add_transfers(spec);
  return placed;
}

int64_t transfer_ns(const PlacedStages& placed, const Transfer& transfer) {
  const auto device = std::find_if(placed.devices.begin(), placed.devices.end(),
                                   [&](const auto& one) { return one->location() == transfer.device; });
  return transfer.nbytes < 0 ? 0 : transfer_ns((*device)->device(), transfer.nbytes);
}

}  // namespace headrace::devices
