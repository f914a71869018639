#include "driver/pipeline_memory.h"

#include <algorithm>
#include <map>

#include "artifact/tensor_extent.h"
#include "base/error.h"
#include "devices/place_stages.h"
#include "executors/pipeline/batch_ports.h"
#include "executors/pipeline/channel_slots.h"
#include "executors/pipeline/plan_spec.h"
#include "runtime/processors.h"

namespace headrace::driver {

namespace {

using artifact::Manifest;
using artifact::PipelinePlan;
using artifact::PipelineStage;
using artifact::TensorSpec;
using executors::pipeline::PipelineSpec;
using executors::pipeline::Source;

int64_t nbytes_of(const TensorSpec& spec) { return artifact::tensor_nbytes(spec.dtype, spec.shape).value_or(0); }

// Returns the bytes of the tensors in which a stage gathers the rows of its inputs, and gets those of its outputs.
int64_t batch_bytes(std::span<const artifact::Program* const> programs, bool any_rows) {
  std::vector<executors::pipeline::BatchProgram> types;
  for (const artifact::Program* program : programs)
    types.push_back({.inputs = program->inputs, .outputs = program->outputs});
  const executors::pipeline::BatchPorts ports = executors::pipeline::batch_ports(types, any_rows);
  int64_t bytes = 0;
  for (const auto& [inputs, outputs] : types) {
    for (size_t i = 0; i < inputs.size(); ++i) bytes += ports.has_rows[i] ? nbytes_of(inputs[i]) : 0;
    for (const TensorSpec& output : outputs) bytes += nbytes_of(output);
  }
  return bytes;
}

// Returns the threads of the programs of a stage, as the loader of its file chooses them.
int64_t threads_of(const PipelinePlan& plan, const PipelineStage& stage, const Manifest& manifest) {
  if (stage.threads > 0) return stage.threads;
  const std::vector<int32_t>& cpus = plan.groups[static_cast<size_t>(stage.group)].cpus;
  if (!cpus.empty()) return static_cast<int64_t>(cpus.size());
  return manifest.default_threads > 0 ? manifest.default_threads : runtime::num_processors();
}

// Raises ends[i] to the bytes of weight i that the program's views reach, for each weight that it reads.
void raise_weight_ends(const artifact::Program& program, std::map<int64_t, int64_t>& ends) {
  for (const artifact::Entry& entry : program.graph.entries) {
    if (entry.place != artifact::Place::kWeight) continue;
    const int64_t nbytes = artifact::view_nbytes(entry.dtype, entry.shape, entry.strides).value_or(0);
    int64_t& end = ends[entry.index];
    end = std::max(end, entry.byte_offset + nbytes);
  }
}

// The programs of one stage, or of all stages that share a memory.
class ProgramMemory {
 public:
  ProgramMemory(const PipelinePlan& plan, std::span<const Manifest* const> manifests)
      : plan_(plan), manifests_(manifests) {}

  // Adds the programs of a stage, as their executors count them when they are loaded; nothing for a function.
  void add(const PipelineStage& stage) {
    if (stage.model < 0) return;
    std::vector<artifact::PipelineProgram> names{{.model = stage.model, .program = stage.program}};
    if (stage.batch) names.insert(names.end(), stage.batch->others.begin(), stage.batch->others.end());
    std::vector<const artifact::Program*> programs;
    for (const auto& [model, name] : names) {
      const Manifest& manifest = *manifests_[static_cast<size_t>(model)];
      const artifact::Program* program = artifact::find_program(manifest, name);
      HEADRACE_CHECK(program != nullptr, "stage '{}' runs the program '{}', which there is not", stage.name, name);
      programs.push_back(program);
      raise_weight_ends(*program, weights_[model]);
      working_bytes_ +=
          arena_bytes(program->memory) + program->memory.workspace_bytes * threads_of(plan_, stage, manifest);
    }
    if (stage.batch) working_bytes_ += batch_bytes(programs, stage.batch->any_rows);
  }

  int64_t total() const {
    int64_t bytes = working_bytes_;
    for (const auto& [model, of_model] : weights_) {
      for (const auto& [weight, nbytes] : of_model) bytes += nbytes;
    }
    return bytes;
  }

 private:
  const PipelinePlan& plan_;
  std::span<const Manifest* const> manifests_;
  std::map<int32_t, std::map<int64_t, int64_t>> weights_ = {};  // for each model: the bytes of each weight
  int64_t working_bytes_ = 0;
};

// The slots of outputs that stages read, by the number of the stage and of its output.
using OutputSlots = std::map<std::pair<size_t, size_t>, size_t>;

OutputSlots slots_of_outputs(const PipelineSpec& spec, size_t max_inflight) {
  const std::vector<size_t> order = executors::pipeline::check_spec(spec);
  const std::vector<size_t> needed = executors::pipeline::slots_of_inputs(spec, order, max_inflight);
  OutputSlots slots;
  auto next = needed.begin();
  for (const size_t stage : order) {
    for (const Source& source : spec.stages[stage].inputs) {
      if (source.kind != Source::Kind::stage) continue;
      size_t& most = slots[{source.index, source.port}];
      most = std::max(most, *next++);
    }
  }
  return slots;
}

// Returns the bytes of an output's slots, in the memory of its port.
int64_t slot_bytes(const executors::pipeline::Port& port, size_t num_slots) {
  if (port.is_any) return 0;
  const int64_t nbytes = nbytes_of(port.spec);
  const bool is_host = port.spec.location.device == cpu();
  return static_cast<int64_t>(num_slots) * (is_host ? nbytes : devices::tensor_memory(nbytes));
}

// Returns the bytes of the slots at both ends of a stage; each output that it reads counts once.
int64_t slot_bytes(const PipelineSpec& spec, size_t stage, const OutputSlots& slots) {
  const std::vector<Source>& inputs = spec.stages[stage].inputs;
  int64_t bytes = 0;
  for (const auto& [output, num_slots] : slots) {
    const auto& [producer, port] = output;
    const bool is_read = std::any_of(inputs.begin(), inputs.end(), [&](const Source& source) {
      return source.kind == Source::Kind::stage && std::pair(source.index, source.port) == output;
    });
    if (is_read || producer == stage)
      bytes += slot_bytes(spec.stages[producer].replicas[0]->outputs()[port], num_slots);
  }
  return bytes;
}

}  // namespace

std::vector<StageMemory> memory_of_stages(const PipelinePlan& plan, std::span<const Manifest* const> manifests) {
  PipelineSpec spec = executors::pipeline::spec_of_plan(plan, &executors::pipeline::make_ports_only);
  static_cast<void>(devices::place_stages(plan, spec));
  const OutputSlots slots = slots_of_outputs(spec, static_cast<size_t>(plan.max_inflight));
  std::vector<StageMemory> memory;
  for (size_t i = 0; i < plan.stages.size(); ++i) {
    ProgramMemory programs(plan, manifests);
    programs.add(plan.stages[i]);
    memory.push_back({.program_bytes = programs.total(), .slot_bytes = slot_bytes(spec, i, slots)});
  }
  return memory;
}

std::vector<DeviceMemory> memory_of_devices(const PipelinePlan& plan, std::span<const Manifest* const> manifests) {
  PipelineSpec spec = executors::pipeline::spec_of_plan(plan, &executors::pipeline::make_ports_only);
  const devices::PlacedStages placed = devices::place_stages(plan, spec);
  const OutputSlots slots = slots_of_outputs(spec, static_cast<size_t>(plan.max_inflight));
  std::vector<DeviceMemory> memory;
  for (const std::shared_ptr<devices::OpenDevice>& device : placed.devices) {
    int64_t nbytes = 0;
    ProgramMemory shared(plan, manifests);
    for (const PipelineStage& stage : plan.stages) {
      const artifact::Location& location = plan.groups[static_cast<size_t>(stage.group)].location;
      if (location != devices::plan_location(device->device())) continue;
      ProgramMemory own(plan, manifests);
      const bool has_process = stage.isolation == artifact::PipelineIsolation::process;
      (has_process ? own : shared).add(stage);
      nbytes += own.total();
    }
    nbytes += shared.total();
    for (const auto& [output, num_slots] : slots) {
      const executors::pipeline::Port& port = spec.stages[output.first].replicas[0]->outputs()[output.second];
      if (!port.is_any && port.spec.location == device->location()) nbytes += slot_bytes(port, num_slots);
    }
    memory.push_back({.device = device->device(), .nbytes = nbytes});
  }
  return memory;
}

}  // namespace headrace::driver
