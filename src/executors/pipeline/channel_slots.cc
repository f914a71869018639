#include "executors/pipeline/channel_slots.h"

#include <algorithm>

#include "executors/pipeline/slots.h"

namespace headrace::executors::pipeline {

std::vector<size_t> slots_of_inputs(const PipelineSpec& spec, const std::vector<size_t>& order, size_t max_inflight) {
  std::vector<int32_t> place(order.size()), batches;
  std::vector<StageEdge> edges;
  for (size_t i = 0; i < order.size(); ++i) {
    const StageSpec& stage = spec.stages[order[i]];
    place[order[i]] = static_cast<int32_t>(i);
    batches.push_back(
        stage.batch ? static_cast<int32_t>(std::min(static_cast<size_t>(stage.batch->max_batch), max_inflight)) : 1);
    for (const Source& source : stage.inputs) {
      if (source.kind == Source::Kind::stage) edges.push_back({place[source.index], place[order[i]]});
    }
  }
  const std::vector<int32_t> needed = slots_of_edges(static_cast<int32_t>(order.size()), edges);
  const std::vector<int32_t> factors = batches_of_edges(batches, edges);
  std::vector<size_t> slots;
  for (size_t i = 0; i < edges.size(); ++i) {
    const auto producer = static_cast<size_t>(edges[i].producer), consumer = static_cast<size_t>(edges[i].consumer);
    const size_t makers = spec.stages[order[producer]].replicas.size();
    const size_t readers = spec.stages[order[consumer]].replicas.size();
    const size_t wanted = static_cast<size_t>(needed[i]) * static_cast<size_t>(factors[i]) +
                          (makers - 1) * static_cast<size_t>(batches[producer]) +
                          (readers - 1) * static_cast<size_t>(batches[consumer]);
    slots.push_back(std::min(wanted, max_inflight + makers));
  }
  return slots;
}

}  // namespace headrace::executors::pipeline
