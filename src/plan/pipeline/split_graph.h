// The graph that the planner searches: nodes of the problem (split.h) that must share a stage are one unit. Units have
// topological numbers.
#pragma once

#include "plan/pipeline/device_classes.h"
#include "plan/pipeline/working_memory.h"

namespace headrace::plan {

struct SplitGraph {
  int32_t num_units = 0;
  DeviceClasses devices{};
  int32_t max_replicas = 1;
  std::vector<int64_t> compute_ns{};  // [unit * number of classes + class]; kNever where the unit cannot run
  std::vector<int64_t> constant_bytes{};
  std::vector<int64_t> working_bytes{};  // for a unit of several nodes: with the buffers that lie in it

  std::vector<int32_t> tensor_producer{};
  std::vector<int64_t> tensor_bytes{};
  Lists tensor_consumers{};   // other units than the producer, ascending, each once; no tensor without
  Lists inputs{}, outputs{};  // tensors of each unit

  BufferTable buffers{};  // between units; a unit of several nodes holds none of them

  std::vector<int64_t> shared_bytes{};  // constants that several units read
  Lists shared_consumers{};
  Lists shared_of_unit{};

  size_t num_classes() const { return devices.size(); }
  int64_t compute(int32_t unit, size_t device_class) const {
    return compute_ns[static_cast<size_t>(unit) * num_classes() + device_class];
  }
  // Returns the least compute time over all classes.
  int64_t fastest(int32_t unit) const;
};

// Fills `inputs`, `outputs`, `shared_of_unit` and the lists of buffers by unit from the other lists.
void index_units(SplitGraph& graph);

// Returns the graph of groups of units; `group` has the group of each unit, whose numbers are topological. Compute
// times and constants add up. The working memory is that of the buffers within a group: those between groups are left
// out.
SplitGraph group_units(const SplitGraph& graph, std::span<const int32_t> group, int32_t num_groups);

}  // namespace headrace::plan
