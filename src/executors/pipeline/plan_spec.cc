#include "executors/pipeline/plan_spec.h"

#include "base/error.h"

namespace headrace::executors::pipeline {
namespace {

class PortsOnly final : public StageCode {
 public:
  explicit PortsOnly(const artifact::PipelineStage& stage)
      : inputs_(stage.inputs), outputs_(stage.outputs), has_batch_(stage.batch.has_value()) {}

  const std::vector<Port>& inputs() const override { return inputs_; }
  const std::vector<Port>& outputs() const override { return outputs_; }
  int32_t most_in_batch() const override { return has_batch_ ? artifact::kMostInBatch : 0; }
  Ref<ErrorObj> run(std::span<const Value* const>, std::span<Value>) noexcept override {
    Ref<ErrorObj> error = make_object<ErrorObj>();
    error->kind = "InternalError";
    error->message = "a stage that has ports only was run";
    return error;
  }

 private:
  std::vector<Port> inputs_, outputs_;
  bool has_batch_;
};

void check_same(const std::string& stage, std::string_view what, const std::vector<Port>& planned,
                const std::vector<Port>& found) {
  if (planned.size() != found.size())
    throw_user_error("stage '{}' has {} {}s by the pipeline's plan, and its program has {}", stage, planned.size(),
                     what, found.size());
  for (size_t i = 0; i < planned.size(); ++i) {
    if (planned[i].name() != found[i].name() || planned[i].is_any != found[i].is_any || !fits(planned[i], found[i]))
      throw_user_error("{} {} of stage '{}' is '{}', {}, by the pipeline's plan, and '{}', {}, in its program", what, i,
                       stage, planned[i].name(), type_text(planned[i]), found[i].name(), type_text(found[i]));
  }
}

}  // namespace

std::shared_ptr<StageCode> make_ports_only(const artifact::PipelineStage& stage) {
  return std::make_shared<PortsOnly>(stage);
}

PipelineSpec spec_of_plan(const artifact::PipelinePlan& plan, const MakeCode& make_code) {
  PipelineSpec spec{.inputs = plan.inputs};
  for (const artifact::PipelineStage& stage : plan.stages) {
    StageSpec made{
        .name = stage.name,
        .backend = stage.backend,
        .inputs = stage.sources,
        .group = static_cast<size_t>(stage.group),
        .time_limit_seconds = stage.isolation == artifact::PipelineIsolation::process ? 0 : stage.time_limit_seconds,
        .batch = stage.batch};
    for (int32_t i = 0; i < stage.replicas; ++i) {
      made.replicas.push_back(make_code(stage));
      check_same(stage.name, "input", stage.inputs, made.replicas.back()->inputs());
      check_same(stage.name, "output", stage.outputs, made.replicas.back()->outputs());
    }
    spec.stages.push_back(std::move(made));
  }
  for (const artifact::PipelineOutput& output : plan.outputs)
    spec.outputs.push_back({.name = output.name, .source = output.source});
  for (const artifact::PipelineParam& param : plan.params)
    spec.params.push_back({.group = param.group, .port = param.port});
  for (const artifact::PipelineGroup& group : plan.groups)
    spec.groups.push_back({.name = group.name, .cpus = group.cpus});
  return spec;
}

}  // namespace headrace::executors::pipeline
