#include "driver/save_pipeline.h"

#include <algorithm>
#include <filesystem>

#include "artifact/artifact_file.h"
#include "base/memory_file.h"
#include "driver/link_artifact.h"
#include "driver/output_file.h"
#include "driver/target.h"
#include "executors/pipeline/batch_ports.h"
#include "executors/pipeline/plan_spec.h"
#include "load/load_module.h"

namespace headrace::driver {

namespace {

using artifact::PipelinePlan;
using artifact::PipelinePort;
using artifact::PipelineStage;

// Joins models of equal bytes.
void join_models(PipelineContent& content) {
  std::vector<int32_t> joined;
  std::vector<artifact::PipelineModel> models;
  std::vector<std::string> bytes;
  for (size_t i = 0; i < content.models.size(); ++i) {
    const auto known = std::find(bytes.begin(), bytes.end(), content.models[i]);
    joined.push_back(static_cast<int32_t>(known - bytes.begin()));
    if (known != bytes.end()) continue;
    bytes.push_back(std::move(content.models[i]));
    models.push_back(content.plan.models[i]);
  }
  for (PipelineStage& stage : content.plan.stages) {
    if (stage.model >= 0) stage.model = joined.at(static_cast<size_t>(stage.model));
    if (!stage.batch) continue;
    for (artifact::PipelineProgram& other : stage.batch->others)
      other.model = joined.at(static_cast<size_t>(other.model));
  }
  content.plan.models = std::move(models);
  content.models = std::move(bytes);
}

std::vector<artifact::Manifest> read_manifests(const PipelineContent& content) {
  std::vector<artifact::Manifest> manifests;
  for (size_t i = 0; i < content.models.size(); ++i) {
    const std::string& name = content.plan.models[i].name;
    const Descriptor file =
        make_memory_file(fmt::format("'{}'", name), std::as_bytes(std::span(content.models[i]))).value_or_throw();
    manifests.push_back(artifact::read_artifact_file(file.number(), name).value_or_throw().manifest);
    if (const std::optional<artifact::SideFile>& side = manifests.back().side_file)
      throw_user_error(
          "the model '{}' has its weights in '{}' beside it, and the file of a pipeline holds its models whole; split "
          "the model into stages whose weights are below 1.5 GB",
          name, side->name);
  }
  return manifests;
}

// Returns the program of a model, whose name is filled in where the model's first one is meant.
const artifact::Program& find_program(const PipelineStage& stage, std::string& name,
                                      const artifact::Manifest& manifest) {
  if (name.empty() && !manifest.programs.empty()) name = manifest.programs[0].name;
  const artifact::Program* program = artifact::find_program(manifest, name);
  if (program == nullptr)
    throw_user_error("stage '{}' runs the program '{}', which its model does not have", stage.name, name);
  return *program;
}

// Fills in the ports of a stage that runs programs for batches.
void complete_batch(PipelineStage& stage, const std::vector<artifact::Manifest>& manifests) {
  using executors::pipeline::BatchProgram;
  artifact::PipelineBatch& batch = *stage.batch;
  const auto& own = find_program(stage, stage.program, manifests.at(static_cast<size_t>(stage.model)));
  std::vector<BatchProgram> programs{{.inputs = own.inputs, .outputs = own.outputs}};
  for (artifact::PipelineProgram& other : batch.others) {
    const auto& program = find_program(stage, other.program, manifests.at(static_cast<size_t>(other.model)));
    programs.push_back({.inputs = program.inputs, .outputs = program.outputs});
  }
  const executors::pipeline::BatchPorts ports = executors::pipeline::batch_ports(programs, batch.any_rows);
  stage.inputs = ports.inputs;
  stage.outputs = ports.outputs;
  const int64_t largest = *std::max_element(ports.batches.begin(), ports.batches.end());
  if (!batch.any_rows && batch.max_batch > largest)
    throw_user_error("max_batch of stage '{}' is {}, and the largest batch of its programs is {}", stage.name,
                     batch.max_batch, largest);
  for (size_t i = 0; i < ports.has_rows.size() && i < stage.sources.size(); ++i) {
    if (!ports.has_rows[i] && stage.sources[i].kind != artifact::PipelineSource::Kind::param)
      throw_user_error("input '{}' of stage '{}' has no batch as its first dimension; connect it to a parameter",
                       ports.inputs[i].name(), stage.name);
  }
}

// Fills in the ports of stages that run programs.
void complete_stage(PipelineStage& stage, const std::vector<artifact::Manifest>& manifests) {
  if (stage.batch) {
    complete_batch(stage, manifests);
    return;
  }
  const auto& program = find_program(stage, stage.program, manifests.at(static_cast<size_t>(stage.model)));
  stage.inputs = stage_ports(program.inputs);
  stage.outputs = stage_ports(program.outputs);
}

// Puts the first values among the weights.
void add_first_values(PipelinePlan& plan, const std::vector<NDArray>& values, plan::WeightTable& weights) {
  for (size_t i = 0; i < values.size(); ++i) {
    artifact::PipelineParam& param = plan.params.at(i);
    if (!values[i]) continue;
    const artifact::TensorSpec& spec = param.port.spec;
    const Shape& shape = values[i].shape();
    if (!param.port.is_any && (values[i].dtype() != spec.dtype || Shape(spec.shape.begin(), spec.shape.end()) != shape))
      throw_user_error(
          "the first value of parameter '{}' of group '{}' is {} ({}), and the stages that read it take {} "
          "({})",
          param.port.name(), param.group, values[i].dtype().to_string(), fmt::join(shape, ", "), spec.dtype.to_string(),
          fmt::join(spec.shape, ", "));
    param.weight = weights.add(values[i].to_dense());
  }
}

}  // namespace

std::vector<PipelinePort> stage_ports(const std::vector<artifact::TensorSpec>& specs) {
  std::vector<PipelinePort> ports;
  for (const artifact::TensorSpec& spec : specs) ports.push_back({.spec = spec});
  return ports;
}

void check_pipeline_name(const std::string& path) {
  if (load::format_of(path, "") != "so")
    throw_user_error("cannot write '{}': a pipeline is a shared object; give it a name that ends in .so, as {}.so",
                     path, std::filesystem::path(path).stem().string());
}

SavedPipeline save_pipeline(PipelineContent content, const std::string& path) {
  check_pipeline_name(path);
  join_models(content);
  const std::vector<artifact::Manifest> manifests = read_manifests(content);
  PipelinePlan& plan = content.plan;
  for (PipelineStage& stage : plan.stages) {
    if (stage.threads < 0) throw_user_error("stage '{}' has {} threads; give 0 or more", stage.name, stage.threads);
    if (stage.model >= 0) complete_stage(stage, manifests);
  }
  for (size_t i = 0; i < plan.models.size(); ++i)
    plan.models[i].section = fmt::format("{}model.{}", artifact::kBlobSectionPrefix, i);
  executors::pipeline::check_spec(executors::pipeline::spec_of_plan(plan, &executors::pipeline::make_ports_only));
  const codegen::NativeCompiler compiler = codegen::NativeCompiler::load();
  // The only code of the file tells bare clients that it needs the runtime: any x86-64 processor can.
  CompiledCode code;
  code.target = choose_target(compiler, llvm_target("x86-64", ""));
  add_first_values(plan, content.first_values, code.weights);
  if (code.weights.nbytes() > kWeightsLimitBytes)
    throw_user_error("the first values of the parameters are {} bytes, and the file of a pipeline takes {} of them",
                     code.weights.nbytes(), kWeightsLimitBytes);
  code.pipeline = plan;
  code.models = std::move(content.models);
  OutputFile file(path, FileKind::kProgram);
  LinkedArtifact linked = link_artifact(code, file, kWeightsLimitBytes, {});
  return {.plan = *std::move(linked.manifest.pipeline), .nbytes = linked.nbytes};
}

}  // namespace headrace::driver
