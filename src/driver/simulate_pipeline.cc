#include "driver/simulate_pipeline.h"

#include <map>

#include "devices/place_stages.h"
#include "executors/pipeline/plan_spec.h"
#include "executors/pipeline/slots.h"

namespace headrace::driver {

namespace {

using executors::StageEdge;
using executors::pipeline::PipelineSpec;
using executors::pipeline::Source;

// Returns the edges between the stages of a spec, by the place of each in `order`.
std::vector<StageEdge> edges_of(const PipelineSpec& spec, const std::vector<size_t>& order) {
  std::vector<int32_t> place(order.size());
  for (size_t i = 0; i < order.size(); ++i) place[order[i]] = static_cast<int32_t>(i);
  std::vector<StageEdge> edges;
  for (const size_t stage : order) {
    for (const Source& source : spec.stages[stage].inputs) {
      if (source.kind == Source::Kind::stage) edges.push_back({place[source.index], place[stage]});
    }
  }
  return edges;
}

}  // namespace

plan::PipelineModel model_of_pipeline(const artifact::PipelinePlan& plan, const plan::SplitPlan& split) {
  PipelineSpec spec = executors::pipeline::spec_of_plan(plan, &executors::pipeline::make_ports_only);
  const devices::PlacedStages placed = devices::place_stages(plan, spec);
  std::vector<int64_t> times;
  for (const plan::SplitStage& stage : split.stages) times.push_back(stage.compute_ns);
  times.resize(spec.stages.size());
  for (const devices::Transfer& transfer : placed.transfers) times[transfer.stage] = transfer_ns(placed, transfer);
  return model_of_spec(spec, plan.max_inflight, times);
}

plan::PipelineModel model_of_spec(const PipelineSpec& spec, int32_t max_inflight, std::span<const int64_t> stage_ns) {
  plan::PipelineModel model{.max_inflight = max_inflight};
  for (const executors::pipeline::GroupSpec& group : spec.groups) model.groups.push_back({.name = group.name});
  const std::vector<size_t> order = check_spec(spec);
  for (const size_t index : order) {
    const executors::pipeline::StageSpec& stage = spec.stages[index];
    const auto replicas = static_cast<int32_t>(stage.replicas.size());
    if (model.groups[stage.group].name.empty()) model.groups[stage.group].name = stage.name;
    model.groups[stage.group].servers = std::max(model.groups[stage.group].servers, replicas);
    model.stages.push_back({.name = stage.name,
                            .group = static_cast<int32_t>(stage.group),
                            .replicas = replicas,
                            .service_ns = {stage_ns[index]}});
  }
  const std::vector<StageEdge> edges = edges_of(spec, order);
  const std::vector<int32_t> slots = executors::slots_of_edges(static_cast<int32_t>(order.size()), edges);
  for (size_t i = 0; i < edges.size(); ++i) {
    const int32_t more = model.stages[static_cast<size_t>(edges[i].producer)].replicas +
                         model.stages[static_cast<size_t>(edges[i].consumer)].replicas - 2;
    model.edges.push_back({edges[i].producer, edges[i].consumer, slots[i] + more});
  }
  return model;
}

}  // namespace headrace::driver
