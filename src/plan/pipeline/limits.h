// The least times that bounds are made of, over all devices.
#pragma once

#include <algorithm>

#include "plan/pipeline/cut_network.h"
#include "plan/pipeline/split_graph.h"

namespace headrace::plan {

struct LeastTransfer {
  int64_t in_ns = 0;
  int64_t out_ns = 0;
};

// Returns the least times that a transfer between two stages takes at its ends, or some long time that is shorter.
inline LeastTransfer least_transfer(const SplitGraph& graph, int64_t bytes) {
  LeastTransfer least{kUncuttable / 64, kUncuttable / 64};
  for (size_t i = 0; i < graph.num_classes(); ++i) {
    least.in_ns = std::min(least.in_ns, graph.devices.least_in_ns(i, bytes));
    least.out_ns = std::min(least.out_ns, graph.devices.least_out_ns(i, bytes));
  }
  return least;
}

inline bool any_overlaps(const SplitGraph& graph) {
  return std::any_of(graph.devices.classes.begin(), graph.devices.classes.end(),
                     [](const DeviceClass& one) { return one.overlaps; });
}

// Returns the most replicas that a stage can have.
inline int64_t most_replicas(const SplitGraph& graph) {
  size_t most = 1;
  for (const DeviceClass& one : graph.devices.classes) most = std::max(most, one.devices.size());
  return std::min<int64_t>(graph.max_replicas, static_cast<int64_t>(most));
}

}  // namespace headrace::plan
