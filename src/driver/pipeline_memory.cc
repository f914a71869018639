#include "driver/pipeline_memory.h"

#include <algorithm>
#include <map>
#include <set>

#include "artifact/tensor_extent.h"
#include "artifact/weight_ends.h"
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

// Returns the bytes of a stage's programs.
int64_t program_bytes(const PipelinePlan& plan, const PipelineStage& stage,
                      std::span<const Manifest* const> manifests) {
  std::vector<artifact::PipelineProgram> names{{.model = stage.model, .program = stage.program}};
  if (stage.batch) names.insert(names.end(), stage.batch->others.begin(), stage.batch->others.end());
  std::vector<const artifact::Program*> programs;
  std::map<int32_t, std::vector<int64_t>> weights;  // of each model: the bytes of each weight
  int64_t bytes = 0;
  for (const auto& [model, name] : names) {
    const Manifest& manifest = *manifests[static_cast<size_t>(model)];
    const artifact::Program* program = artifact::find_program(manifest, name);
    HEADRACE_CHECK(program != nullptr, "stage '{}' runs the program '{}', which there is not", stage.name, name);
    programs.push_back(program);
    artifact::raise_weight_ends(*program, weights[model]);
    bytes += arena_bytes(program->memory) + program->memory.workspace_bytes * threads_of(plan, stage, manifest);
  }
  for (const auto& [model, of_model] : weights) {
    for (const int64_t nbytes : of_model) bytes += nbytes;
  }
  return bytes + (stage.batch ? batch_bytes(programs, stage.batch->any_rows) : 0);
}

// Returns the bytes of the slots of an output that is in the memory of its port.
int64_t slot_bytes(const executors::pipeline::Port& port, size_t num_slots) {
  if (port.is_any) return 0;
  const int64_t nbytes = nbytes_of(port.spec);
  const bool is_host = port.spec.location.device == cpu();
  return static_cast<int64_t>(num_slots) * (is_host ? nbytes : devices::tensor_memory(nbytes));
}

// Returns the bytes of the slots at the ends of a stage; each output that it reads counts once.
int64_t slot_bytes(const PipelineSpec& spec, size_t stage, const std::vector<std::vector<size_t>>& slots) {
  int64_t bytes = 0;
  const auto of_output = [&](size_t producer, size_t port) {
    return slot_bytes(spec.stages[producer].replicas[0]->outputs()[port], slots[producer][port]);
  };
  for (size_t port = 0; port < slots[stage].size(); ++port) bytes += of_output(stage, port);
  std::set<std::pair<size_t, size_t>> read;
  for (const Source& source : spec.stages[stage].inputs) {
    if (source.kind == Source::Kind::stage && read.emplace(source.index, source.port).second)
      bytes += of_output(source.index, source.port);
  }
  return bytes;
}

}  // namespace

std::vector<StageMemory> memory_of_stages(const PipelinePlan& plan, std::span<const Manifest* const> manifests) {
  PipelineSpec spec = executors::pipeline::spec_of_plan(plan, &executors::pipeline::make_ports_only);
  static_cast<void>(devices::place_stages(plan, spec));
  const auto slots = executors::pipeline::slots_of_outputs(spec, executors::pipeline::check_spec(spec),
                                                           static_cast<size_t>(plan.max_inflight));
  std::vector<StageMemory> memory(plan.stages.size());
  for (size_t i = 0; i < memory.size(); ++i) {
    if (plan.stages[i].model >= 0) memory[i].program_bytes = program_bytes(plan, plan.stages[i], manifests);
    memory[i].slot_bytes = slot_bytes(spec, i, slots);
  }
  return memory;
}

}  // namespace headrace::driver
