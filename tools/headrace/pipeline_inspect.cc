// headrace pipeline inspect: what the file of a pipeline holds, without running it.
#include "base/count_of.h"
#include "artifact/artifact_file.h"
#include "base/descriptor.h"
#include "devices/simulated_device.h"
#include "driver/output_file.h"
#include "driver/pipeline_memory.h"
#include "executors/pipeline/port.h"
#include "object/array.h"
#include "plan/pipeline/table.h"
#include "tensor/ndarray.h"
#include "tools/headrace/file_uses.h"
#include "tools/headrace/output.h"
#include "tools/headrace/pipeline_stream.h"
#include "tools/headrace/pipeline_verbs.h"
#include "tools/headrace/shown_text.h"
#include "tools/headrace/usage.h"
#include "tools/html/page.h"

namespace headrace::tools {

namespace {

using artifact::PipelinePlan;
using artifact::PipelinePort;
using artifact::PipelineSource;
using artifact::PipelineStage;

Array<Value> ports_of(const std::vector<PipelinePort>& ports) {
  Array<Value> list;
  for (const PipelinePort& port : ports)
    list.push_back(
        Value(Report{{"name", Value(port.name())},
                     {"dtype", port.is_any ? Value() : Value(port.spec.dtype.to_string())},
                     {"shape", port.is_any ? Value() : Value(Shape(port.spec.shape.begin(), port.spec.shape.end()))}}));
  return list;
}

// "input x", "detect.boxes", "parameter weights.w"
std::string text_of(const PipelinePlan& plan, const PipelineSource& source) {
  switch (source.kind) {
    case PipelineSource::Kind::input:
      return fmt::format("input {}", plan.inputs[source.index].name());
    case PipelineSource::Kind::param:
      return fmt::format("parameter {}.{}", plan.params[source.index].group, plan.params[source.index].port.name());
    case PipelineSource::Kind::stage:
      break;
  }
  const PipelineStage& stage = plan.stages[source.index];
  return fmt::format("{}.{}", stage.name, stage.outputs[source.port].name());
}

// From and to, of each connection.
std::vector<std::pair<std::string, std::string>> connections_of(const PipelinePlan& plan) {
  std::vector<std::pair<std::string, std::string>> list;
  for (const PipelineStage& stage : plan.stages) {
    for (size_t i = 0; i < stage.sources.size(); ++i)
      list.emplace_back(text_of(plan, stage.sources[i]), fmt::format("{}.{}", stage.name, stage.inputs[i].name()));
  }
  for (const artifact::PipelineOutput& output : plan.outputs)
    list.emplace_back(text_of(plan, output.source), fmt::format("output {}", output.name));
  return list;
}

// How the stage takes several requests in one call; null for one that takes one at a time.
Value batch_of(const PipelinePlan& plan, const PipelineStage& stage) {
  if (!stage.batch) return {};
  const artifact::PipelineBatch& batch = *stage.batch;
  Array<Value> others;
  for (const artifact::PipelineProgram& other : batch.others)
    others.push_back(Value(Report{{"model", Value(plan.models[static_cast<size_t>(other.model)].name)},
                                  {"program", Value(other.program)}}));
  return Value(Report{{"max_batch", Value(int64_t{batch.max_batch})},
                      {"max_delay_seconds", Value(batch.max_delay_seconds)},
                      {"retry_alone", Value(batch.retry_alone)},
                      {"any_rows", Value(batch.any_rows)},
                      {"others", Value(others)}});
}

std::string isolation_of(const PipelineStage& stage) {
  return stage.isolation == artifact::PipelineIsolation::process ? "process" : "thread";
}

// A pipeline's file, and the memory of each stage and simulated device; none for a plan whose devices cannot be made
// here.
struct Inspected {
  artifact::ArtifactFile file;
  std::vector<driver::StageMemory> memory = {};
  std::vector<driver::DeviceMemory> devices = {};

  const PipelinePlan& plan() const { return *file.manifest.pipeline; }
  // Returns the bytes of a stage; nothing for a function, whose memory is unknown.
  std::optional<int64_t> memory_of(size_t stage) const {
    if (memory.empty() || plan().stages[stage].model < 0) return {};
    return memory[stage].total();
  }
};

Inspected read_pipeline(const std::string& path) {
  const Descriptor descriptor = Descriptor::open(path).value_or_throw();
  Inspected made{.file = artifact::read_artifact_file(descriptor.number(), path).value_or_throw()};
  if (!made.file.manifest.pipeline)
    throw_user_error("'{}' has no pipeline: it is a model, which headrace inspect shows", path);
  std::vector<artifact::ArtifactFile> models;
  for (const artifact::PipelineModel& model : made.plan().models) {
    const artifact::ElfSection& section = *made.file.elf.find(model.section);
    const artifact::FilePart part(descriptor.number(), section.offset, section.nbytes);
    models.push_back(artifact::read_artifact_file(part, fmt::format("{}: {}", path, model.name)).value_or_throw());
  }
  std::vector<const artifact::Manifest*> manifests;
  for (const artifact::ArtifactFile& model : models) manifests.push_back(&model.manifest);
  try {
    made.memory = driver::memory_of_stages(made.plan(), manifests);
    made.devices = driver::memory_of_devices(made.plan(), manifests);
  } catch (const UserError&) {
    // The plan has a device that no program here can make; the file can be listed all the same.
  }
  return made;
}

Array<Value> stages_of(const Inspected& inspected) {
  const PipelinePlan& plan = inspected.plan();
  Array<Value> list;
  for (size_t i = 0; i < plan.stages.size(); ++i) {
    const PipelineStage& stage = plan.stages[i];
    const std::optional<int64_t> memory = inspected.memory_of(i);
    const artifact::PipelineGroup& group = plan.groups[static_cast<size_t>(stage.group)];
    const bool is_function = stage.model < 0;
    list.push_back(
        Value(Report{{"name", Value(stage.name)},
                     {"backend", Value(stage.backend)},
                     {"model", is_function ? Value() : Value(plan.models[static_cast<size_t>(stage.model)].name)},
                     {"program", is_function ? Value() : Value(stage.program)},
                     {"function", is_function ? Value(stage.function) : Value()},
                     {"inputs", Value(ports_of(stage.inputs))},
                     {"outputs", Value(ports_of(stage.outputs))},
                     {"group", Value(group.name)},
                     {"device", Value(devices::place_text(group.location))},
                     {"cpus", Value(Shape(group.cpus.begin(), group.cpus.end()))},
                     {"replicas", Value(int64_t{stage.replicas})},
                     {"threads", Value(int64_t{stage.threads})},
                     {"memory_bytes", memory ? Value(*memory) : Value()},
                     {"time_limit_seconds", Value(stage.time_limit_seconds)},
                     {"batch", batch_of(plan, stage)},
                     {"isolation", Value(isolation_of(stage))},
                     {"pure", Value(stage.is_pure)}}));
  }
  return list;
}

Report report_of(const std::string& path, const Inspected& inspected) {
  const artifact::ArtifactFile& file = inspected.file;
  const PipelinePlan& plan = inspected.plan();
  Array<Value> models, connections, params, devices;
  for (const artifact::PipelineModel& model : plan.models)
    models.push_back(
        Value(Report{{"name", Value(model.name)}, {"bytes", Value(file.elf.find(model.section)->nbytes)}}));
  for (const auto& [from, to] : connections_of(plan))
    connections.push_back(Value(Report{{"from", Value(from)}, {"to", Value(to)}}));
  for (const auto& [device, nbytes] : inspected.devices)
    devices.push_back(Value(Report{{"device", Value(devices::to_string(device))},
                                   {"memory_bytes", Value(nbytes)},
                                   {"limit_bytes", device.memory_bytes == 0 ? Value() : Value(device.memory_bytes)}}));
  for (const artifact::PipelineParam& param : plan.params)
    params.push_back(Value(Report{
        {"group", Value(param.group)}, {"name", Value(param.port.name())}, {"has_value", Value(param.weight >= 0)}}));
  return {{"file", Value(path)},
          {"bytes", Value(file.nbytes)},
          {"max_inflight", Value(int64_t{plan.max_inflight})},
          {"models", Value(models)},
          {"inputs", Value(ports_of(plan.inputs))},
          {"stages", Value(stages_of(inspected))},
          {"devices", Value(devices)},
          {"connections", Value(connections)},
          {"parameters", Value(params)}};
}

std::vector<std::vector<std::string>> stage_rows(const Inspected& inspected) {
  const PipelinePlan& plan = inspected.plan();
  std::vector<std::vector<std::string>> rows{
      {"stage", "runs", "isolation", "group", "device", "cpus", "replicas", "threads", "batch", "memory"}};
  for (size_t i = 0; i < plan.stages.size(); ++i) {
    const PipelineStage& stage = plan.stages[i];
    const artifact::PipelineGroup& group = plan.groups[static_cast<size_t>(stage.group)];
    const std::string runs =
        stage.model < 0 ? "function " + stage.function
                        : fmt::format("{} of {}", stage.program, plan.models[static_cast<size_t>(stage.model)].name);
    const std::optional<int64_t> memory = inspected.memory_of(i);
    rows.push_back({stage.name, runs, isolation_of(stage) + (stage.is_pure ? ", pure" : ""), group.name,
                    devices::place_text(group.location),
                    group.cpus.empty() ? "any" : fmt::format("{}", fmt::join(group.cpus, ",")),
                    std::to_string(stage.replicas), stage.model < 0 ? "-" : std::to_string(stage.threads),
                    stage.batch ? std::to_string(stage.batch->max_batch) : "-",
                    memory ? plan::format_bytes(*memory) : "-"});
  }
  return rows;
}

std::vector<std::vector<std::string>> device_rows(const Inspected& inspected) {
  std::vector<std::vector<std::string>> rows{{"device", "memory", "of"}};
  for (const auto& [device, nbytes] : inspected.devices)
    rows.push_back({devices::name_of(device), plan::format_bytes(nbytes),
                    device.memory_bytes == 0 ? "no limit" : plan::format_bytes(device.memory_bytes)});
  return rows;
}

void print_report(const std::string& path, const Inspected& inspected) {
  const artifact::ArtifactFile& file = inspected.file;
  const PipelinePlan& plan = inspected.plan();
  print_out("{}: {}, {}, at most {} at once\n\n", shown(path), show_bytes(file.nbytes),
            count_of(std::ssize(plan.stages), "stage"), count_of(plan.max_inflight, "request"));
  std::cout << to_table(stage_rows(inspected)) << "\n";
  if (!inspected.devices.empty()) std::cout << to_table(device_rows(inspected)) << "\n";
  for (const PipelinePort& port : plan.inputs)
    print_out("input {}: {}\n", shown(port.name()), executors::pipeline::type_text(port));
  for (const auto& [from, to] : connections_of(plan)) print_out("{} -> {}\n", shown(from), shown(to));
  std::vector<std::vector<std::string>> rows{{"model", "size"}};
  for (const artifact::PipelineModel& model : plan.models)
    rows.push_back({model.name, show_bytes(file.elf.find(model.section)->nbytes)});
  if (!plan.models.empty()) std::cout << "\n" << to_table(rows);
}

struct PipelinePage {
  std::string path, page;
};

int inspect_pipeline(const PipelinePage& state, const Common& common) {
  const std::string& path = state.path;
  refuse_model_for_stream(path);
  FileUses uses;
  uses.add_inputs("the pipeline", {path});
  uses.add_output("--html", state.page);
  uses.check();
  const Inspected inspected = read_pipeline(path);
  if (!state.page.empty())
    driver::write_text(
        state.page, html::make_page(html::pipeline_page(), shown(path), to_compact_json(report_of(path, inspected))));
  if (common.json) {
    std::cout << to_json(report_of(path, inspected));
  } else {
    print_report(path, inspected);
  }
  return HR_OK;
}

}  // namespace

Verb add_pipeline_inspect(CLI::App& pipeline, const Common& common) {
  auto state = std::make_shared<PipelinePage>();
  CLI::App* verb = pipeline.add_subcommand("inspect", "Show the stages of a pipeline's file, without running it");
  verb->add_option("file", state->path, "A pipeline, as pipeline split or save in Python writes it")
      ->required()
      ->type_name("FILE");
  takes_path(verb->add_option("--html", state->page, "A file for a page that draws the stages and their connections"),
             "FILE");
  verb->footer("Example: headrace pipeline inspect pipe.so --html pipe.html");
  return [state, &common] { return inspect_pipeline(*state, common); };
}

}  // namespace headrace::tools
