#include "artifact/check_pipeline.h"

#include <cmath>
#include <set>

#include "artifact/tensor_extent.h"
#include "base/error.h"

namespace headrace::artifact {
namespace {

using Kind = PipelineSource::Kind;

template <typename... Args>
[[noreturn]] void broken_plan(const std::string& path, fmt::format_string<Args...> format, Args&&... args) {
  throw_user_error("the manifest is malformed: pipeline.{} {}", path, fmt::format(format, std::forward<Args>(args)...));
}

void check_port(const std::string& path, const PipelinePort& port) {
  if (port.name().empty()) broken_plan(path + ".name", "is empty");
  if (port.is_any) return;
  if (!tensor_nbytes(port.spec.dtype, port.spec.shape))
    broken_plan(path + ".shape", "is [{}], which no tensor has", fmt::join(port.spec.shape, ", "));
}

void check_ports(const std::string& path, const std::vector<PipelinePort>& ports) {
  for (size_t i = 0; i < ports.size(); ++i) check_port(fmt::format("{}[{}]", path, i), ports[i]);
}

void check_group(const std::string& path, const PipelineGroup& group) {
  for (const int32_t cpu : group.cpus) {
    if (cpu < 0) broken_plan(path + ".cpus", "has the processor {}", cpu);
  }
}

void check_source(const std::string& path, const PipelinePlan& plan, const PipelineSource& source) {
  const size_t count = source.kind == Kind::input   ? plan.inputs.size()
                       : source.kind == Kind::param ? plan.params.size()
                                                    : plan.stages.size();
  if (source.index >= count) broken_plan(path + ".index", "is {}, there are {}", source.index, count);
  if (source.kind != Kind::stage) return;
  const size_t outputs = plan.stages[source.index].outputs.size();
  if (source.port >= outputs) broken_plan(path + ".port", "is {}, the stage has {} outputs", source.port, outputs);
}

void check_code(const std::string& path, const PipelinePlan& plan, const PipelineStage& stage) {
  if (stage.model < -1 || stage.model >= static_cast<int64_t>(plan.models.size()))
    broken_plan(path + ".model", "is {}, there are {} models", stage.model, plan.models.size());
  const bool has_program = stage.model >= 0;
  if (has_program == stage.program.empty() || has_program != stage.function.empty())
    broken_plan(path, "must have a model with a program, or else a function");
}

void check_batch(const std::string& path, const PipelinePlan& plan, const PipelineStage& stage) {
  const PipelineBatch& batch = *stage.batch;
  if (batch.max_batch < 1 || batch.max_batch > kMostInBatch)
    broken_plan(path + ".max_batch", "is {}, outside 1 .. {}", batch.max_batch, kMostInBatch);
  if (!std::isfinite(batch.max_delay_seconds) || batch.max_delay_seconds < 0)
    broken_plan(path + ".max_delay", "is {}", batch.max_delay_seconds);
  if (stage.model < 0 && !batch.others.empty()) broken_plan(path + ".others", "has programs, and the stage none");
  for (size_t i = 0; i < batch.others.size(); ++i) {
    const auto& [model, program] = batch.others[i];
    if (model < 0 || model >= std::ssize(plan.models))
      broken_plan(fmt::format("{}.others[{}].model", path, i), "is {}, there are {} models", model, plan.models.size());
    if (program.empty()) broken_plan(fmt::format("{}.others[{}].program", path, i), "is empty");
  }
}

void check_stage(const std::string& path, const PipelinePlan& plan, const PipelineStage& stage) {
  check_code(path, plan, stage);
  check_ports(path + ".inputs", stage.inputs);
  check_ports(path + ".outputs", stage.outputs);
  if (stage.sources.size() != stage.inputs.size())
    broken_plan(path + ".sources", "has {} entries, and the stage {} inputs", stage.sources.size(),
                stage.inputs.size());
  for (size_t i = 0; i < stage.sources.size(); ++i)
    check_source(fmt::format("{}.sources[{}]", path, i), plan, stage.sources[i]);
  if (stage.group < 0 || stage.group >= static_cast<int64_t>(plan.groups.size()))
    broken_plan(path + ".group", "is {}, there are {} groups", stage.group, plan.groups.size());
  if (stage.replicas < 1 || stage.replicas > kMostReplicas)
    broken_plan(path + ".replicas", "is {}, outside 1 .. {}", stage.replicas, kMostReplicas);
  if (stage.threads < 0) broken_plan(path + ".threads", "is {}", stage.threads);
  if (!std::isfinite(stage.time_limit_seconds) || stage.time_limit_seconds < 0)
    broken_plan(path + ".time_limit", "is {}", stage.time_limit_seconds);
  if (stage.batch.has_value()) check_batch(path + ".batch", plan, stage);
  if (stage.is_pure && stage.isolation == PipelineIsolation::thread)
    broken_plan(path + ".pure", "is true, and the stage does not run in a process of its own");
}

void check_models(const PipelinePlan& plan) {
  std::set<std::string_view> sections;
  for (size_t i = 0; i < plan.models.size(); ++i) {
    const std::string path = fmt::format("models[{}].section", i);
    const std::string& section = plan.models[i].section;
    if (!section.starts_with(kBlobSectionPrefix))
      broken_plan(path, "is '{}', which does not begin with '{}'", section, kBlobSectionPrefix);
    if (!sections.insert(section).second) broken_plan(path, "is '{}', as is an earlier one's", section);
  }
}

void check_param(const std::string& path, const Manifest& manifest, const PipelineParam& param) {
  check_port(path + ".port", param.port);
  if (param.weight < -1 || param.weight >= std::ssize(manifest.weights))
    broken_plan(path + ".weight", "is {}, there are {} weights", param.weight, manifest.weights.size());
  if (param.weight < 0) return;
  const Weight& weight = manifest.weights[static_cast<size_t>(param.weight)];
  if (!param.port.is_any && (weight.dtype != param.port.spec.dtype || weight.shape != param.port.spec.shape))
    broken_plan(path + ".weight", "is {}, which has another type than the parameter", param.weight);
}

}  // namespace

void check_pipeline(const PipelinePlan& plan, const Manifest& manifest) {
  check_models(plan);
  for (size_t i = 0; i < plan.groups.size(); ++i) check_group(fmt::format("groups[{}]", i), plan.groups[i]);
  check_ports("inputs", plan.inputs);
  for (size_t i = 0; i < plan.params.size(); ++i) check_param(fmt::format("params[{}]", i), manifest, plan.params[i]);
  std::set<std::string_view> names;
  for (size_t i = 0; i < plan.stages.size(); ++i) {
    const std::string path = fmt::format("stages[{}]", i);
    check_stage(path, plan, plan.stages[i]);
    if (!names.insert(plan.stages[i].name).second)
      broken_plan(path + ".name", "is '{}', as is an earlier one's", plan.stages[i].name);
  }
  for (size_t i = 0; i < plan.outputs.size(); ++i)
    check_source(fmt::format("outputs[{}].source", i), plan, plan.outputs[i].source);
  if (plan.max_inflight < 1 || plan.max_inflight > kMostInFlight)
    broken_plan("max_inflight", "is {}, outside 1 .. {}", plan.max_inflight, kMostInFlight);
}

}  // namespace headrace::artifact
