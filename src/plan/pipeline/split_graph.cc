#include "plan/pipeline/split_graph.h"

#include <algorithm>

namespace headrace::plan {
namespace {

// Appends to `made` the groups of a list, ascending, each once, without `left_out`. Returns false, and appends nothing,
// when there are none.
bool append_groups(std::span<const int32_t> units, std::span<const int32_t> group, int32_t left_out, Lists& made) {
  const auto begin = static_cast<std::ptrdiff_t>(made.items.size());
  for (const int32_t unit : units) {
    const int32_t one = group[static_cast<size_t>(unit)];
    if (one != left_out) made.items.push_back(one);
  }
  std::sort(made.items.begin() + begin, made.items.end());
  made.items.erase(std::unique(made.items.begin() + begin, made.items.end()), made.items.end());
  if (static_cast<std::ptrdiff_t>(made.items.size()) == begin) return false;
  made.close();
  return true;
}

}  // namespace

int64_t SplitGraph::fastest(int32_t unit) const {
  const auto begin = compute_ns.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(unit) * num_classes());
  return *std::min_element(begin, begin + static_cast<std::ptrdiff_t>(num_classes()));
}

void index_units(SplitGraph& graph) {
  const auto count = static_cast<size_t>(graph.num_units);
  Lists producers;
  for (const int32_t producer : graph.tensor_producer) {
    producers.items.push_back(producer);
    producers.close();
  }
  graph.outputs = inverse(producers, count);
  graph.inputs = inverse(graph.tensor_consumers, count);
  graph.shared_of_unit = inverse(graph.shared_consumers, count);
  if (graph.buffers.written.empty()) {
    graph.buffers.written.assign(count, -1);
    graph.buffers.holds.assign(count, false);
  }
  graph.buffers.index(count);
}

SplitGraph group_units(const SplitGraph& graph, std::span<const int32_t> group, int32_t num_groups) {
  SplitGraph made{.num_units = num_groups, .devices = graph.devices, .max_replicas = graph.max_replicas};
  const size_t classes = graph.num_classes(), groups = static_cast<size_t>(num_groups);
  made.compute_ns.assign(groups * classes, 0);
  made.constant_bytes.assign(groups, 0);
  made.working_bytes = working_memory(graph.buffers, graph.working_bytes, group, groups);
  for (size_t unit = 0; unit < group.size(); ++unit) {
    const auto to = static_cast<size_t>(group[unit]);
    for (size_t i = 0; i < classes; ++i) {
      int64_t& sum = made.compute_ns[to * classes + i];
      sum = std::min(kNever, sum + graph.compute_ns[unit * classes + i]);
    }
    made.constant_bytes[to] += graph.constant_bytes[unit];
  }
  for (size_t tensor = 0; tensor < graph.tensor_bytes.size(); ++tensor) {
    const int32_t producer = group[static_cast<size_t>(graph.tensor_producer[tensor])];
    if (!append_groups(graph.tensor_consumers[tensor], group, producer, made.tensor_consumers)) continue;
    made.tensor_producer.push_back(producer);
    made.tensor_bytes.push_back(graph.tensor_bytes[tensor]);
  }
  for (size_t shared = 0; shared < graph.shared_bytes.size(); ++shared) {
    append_groups(graph.shared_consumers[shared], group, -1, made.shared_consumers);
    if (made.shared_consumers[made.shared_consumers.size() - 1].size() > 1) {
      made.shared_bytes.push_back(graph.shared_bytes[shared]);
      continue;
    }
    made.constant_bytes[static_cast<size_t>(made.shared_consumers.items.back())] += graph.shared_bytes[shared];
    made.shared_consumers.items.pop_back();
    made.shared_consumers.begins.pop_back();
  }
  index_units(made);
  return made;
}

}  // namespace headrace::plan
