#include "artifact/check_pipeline.h"

#include <set>

#include "base/error.h"

namespace headrace::artifact {
namespace {

template <typename... Args>
[[noreturn]] void broken_plan(const std::string& path, fmt::format_string<Args...> format, Args&&... args) {
  throw_user_error("the manifest is malformed: pipeline.{} {}", path, fmt::format(format, std::forward<Args>(args)...));
}

void check_group(const std::string& path, const PipelineGroup& group) {
  if (group.threads < 0) broken_plan(path + ".threads", "is {}", group.threads);
  for (const int32_t cpu : group.cpus) {
    if (cpu < 0) broken_plan(path + ".cpus", "has the processor {}", cpu);
  }
}

void check_stage(const std::string& path, const PipelinePlan& plan, const Manifest& manifest,
                 const PipelineStage& stage) {
  if (stage.program.empty() == stage.function.empty())
    broken_plan(path, "must have a program or a function, and not both");
  if (!stage.program.empty() && find_program(manifest, stage.program) == nullptr)
    broken_plan(path + ".program", "is '{}', which is no program of the file", stage.program);
  if (stage.group < 0 || stage.group >= static_cast<int64_t>(plan.groups.size()))
    broken_plan(path + ".group", "is {}, there are {} groups", stage.group, plan.groups.size());
  if (stage.replicas < 1) broken_plan(path + ".replicas", "is {}, below 1", stage.replicas);
  if (stage.max_batch < 1) broken_plan(path + ".max_batch", "is {}, below 1", stage.max_batch);
}

// Checks a port of a stage against the program that the stage runs; a function's ports are known to nobody here.
void check_port(const std::string& path, const PipelinePlan& plan, const Manifest& manifest, const PipelinePort& port,
                bool is_source) {
  if (port.stage < -1 || port.stage >= static_cast<int64_t>(plan.stages.size()))
    broken_plan(path + ".stage", "is {}, there are {} stages", port.stage, plan.stages.size());
  if (port.port < 0) broken_plan(path + ".port", "is {}", port.port);
  if (port.stage < 0) return;
  const Program* program = find_program(manifest, plan.stages[static_cast<size_t>(port.stage)].program);
  if (program == nullptr) return;
  const size_t count = is_source ? program->outputs.size() : program->inputs.size();
  if (static_cast<size_t>(port.port) >= count)
    broken_plan(path + ".port", "is {}, the program has {} {}", port.port, count, is_source ? "outputs" : "inputs");
}

void check_edges(const PipelinePlan& plan, const Manifest& manifest) {
  std::set<std::pair<int32_t, int32_t>> fed;
  for (size_t i = 0; i < plan.edges.size(); ++i) {
    const PipelineEdge& edge = plan.edges[i];
    const std::string path = fmt::format("edges[{}]", i);
    check_port(path + ".from", plan, manifest, edge.from, true);
    check_port(path + ".to", plan, manifest, edge.to, false);
    if (edge.to.stage >= 0 && edge.from.stage >= edge.to.stage)
      broken_plan(path, "leads from stage {} to stage {}, which does not come later", edge.from.stage, edge.to.stage);
    if (edge.slots < 1) broken_plan(path + ".slots", "is {}, below 1", edge.slots);
    if (!fed.emplace(edge.to.stage, edge.to.port).second) broken_plan(path + ".to", "is fed by an earlier edge");
  }
}

}  // namespace

void check_pipeline(const PipelinePlan& plan, const Manifest& manifest) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < plan.groups.size(); ++i) check_group(fmt::format("groups[{}]", i), plan.groups[i]);
  for (size_t i = 0; i < plan.stages.size(); ++i) {
    const std::string path = fmt::format("stages[{}]", i);
    check_stage(path, plan, manifest, plan.stages[i]);
    if (!names.insert(plan.stages[i].name).second)
      broken_plan(path + ".name", "is '{}', as is an earlier one's", plan.stages[i].name);
  }
  check_edges(plan, manifest);
  if (plan.max_inflight < 0) broken_plan("max_inflight", "is {}", plan.max_inflight);
}

}  // namespace headrace::artifact
