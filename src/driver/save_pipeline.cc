#include "driver/save_pipeline.h"

#include <algorithm>

#include "artifact/artifact_file.h"
#include "base/memory_file.h"
#include "driver/link_artifact.h"
#include "driver/output_file.h"
#include "driver/target.h"
#include "executors/pipeline/plan_spec.h"

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
  }
  content.plan.models = std::move(models);
  content.models = std::move(bytes);
}

std::vector<PipelinePort> ports_of(const std::vector<artifact::TensorSpec>& specs) {
  std::vector<PipelinePort> ports;
  for (const artifact::TensorSpec& spec : specs) ports.push_back({.spec = spec});
  return ports;
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

// Fills in the ports of stages that run programs.
void complete_stage(PipelineStage& stage, const artifact::Manifest& manifest) {
  if (stage.program.empty() && !manifest.programs.empty()) stage.program = manifest.programs[0].name;
  const artifact::Program* program = artifact::find_program(manifest, stage.program);
  if (program == nullptr)
    throw_user_error("stage '{}' runs the program '{}', which its model does not have", stage.name, stage.program);
  stage.inputs = ports_of(program->inputs);
  stage.outputs = ports_of(program->outputs);
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

SavedPipeline save_pipeline(PipelineContent content, const std::string& path) {
  join_models(content);
  const std::vector<artifact::Manifest> manifests = read_manifests(content);
  PipelinePlan& plan = content.plan;
  for (PipelineStage& stage : plan.stages) {
    if (stage.threads < 0) throw_user_error("stage '{}' has {} threads; give 0 or more", stage.name, stage.threads);
    if (stage.model >= 0) complete_stage(stage, manifests.at(static_cast<size_t>(stage.model)));
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
