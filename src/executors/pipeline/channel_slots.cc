#include "executors/pipeline/channel_slots.h"

#include <algorithm>

#include "executors/pipeline/slots.h"

namespace headrace::executors::pipeline {
namespace {

// Returns the requests of one call of the stage.
size_t requests_of_call(const StageSpec& stage, size_t max_inflight) {
  return stage.batch ? std::min(static_cast<size_t>(stage.batch->max_batch), max_inflight) : 1;
}

}  // namespace

std::vector<std::vector<size_t>> slots_of_outputs(const PipelineSpec& spec, const std::vector<size_t>& order,
                                                  size_t max_inflight) {
  std::vector<int32_t> place(order.size()), batches(order.size());
  std::vector<std::vector<size_t>> slots(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const StageSpec& stage = spec.stages[order[i]];
    place[order[i]] = static_cast<int32_t>(i);
    batches[i] = static_cast<int32_t>(requests_of_call(stage, max_inflight));
    slots[order[i]].resize(stage.replicas[0]->outputs().size());
  }
  const auto each_edge = [&](const auto& visit) {
    for (const size_t consumer : order) {
      for (const Source& source : spec.stages[consumer].inputs) {
        if (source.kind == Source::Kind::stage) visit(source, consumer);
      }
    }
  };
  std::vector<StageEdge> edges;
  each_edge([&](const Source& source, size_t consumer) { edges.push_back({place[source.index], place[consumer]}); });
  const std::vector<int32_t> needed = slots_of_edges(static_cast<int32_t>(order.size()), edges);
  const std::vector<int32_t> factors = batches_of_edges(batches, edges);
  const auto of_replicas = [&](size_t stage) {
    return (spec.stages[stage].replicas.size() - 1) * requests_of_call(spec.stages[stage], max_inflight);
  };
  size_t edge = 0;
  each_edge([&](const Source& source, size_t consumer) {
    const auto of_edge = static_cast<size_t>(needed[edge]) * static_cast<size_t>(factors[edge]);
    const size_t most = max_inflight + spec.stages[source.index].replicas.size();
    size_t& of_output = slots[source.index][source.port];
    of_output = std::max(of_output, std::min(of_edge + of_replicas(source.index) + of_replicas(consumer), most));
    ++edge;
  });
  return slots;
}

}  // namespace headrace::executors::pipeline
