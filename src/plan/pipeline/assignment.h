// A split under way: the stage of each unit and the devices of each stage, with its costs by the definition in split.h.
#pragma once

#include "plan/pipeline/split_graph.h"

namespace headrace::plan {

struct StageDevices {
  int32_t device_class = 0;
  int32_t replicas = 1;
};

struct Assignment {
  std::vector<int32_t> stage_of_unit;
  std::vector<StageDevices> stages;
  int64_t period_ns = kNever;
};

struct StageCost {
  int64_t compute_ns = 0;
  int64_t in_ns = 0;
  int64_t out_ns = 0;
  int64_t memory_bytes = 0;
};

// The slots of the tensors between the stages of an assignment, those of replicas included. For two stages that no
// tensor joins, which a unit that moves may change, it has those that a path through all stages between them would
// need.
class BorderSlots {
 public:
  BorderSlots(const SplitGraph& graph, const Assignment& assignment);

  // Returns the slots of a tensor: the most that one of its edges needs.
  int64_t of(int32_t from, std::span<const int32_t> readers) const;

 private:
  int32_t& between(size_t from, size_t to) { return slots_[from * num_stages_ + to]; }

  size_t num_stages_;
  std::vector<int32_t> slots_;  // [producer's stage * number of stages + reader's stage]
};

// Returns the cost of each stage. Linear.
std::vector<StageCost> stage_costs(const SplitGraph& graph, const Assignment& assignment, const BorderSlots& slots);
std::vector<StageCost> stage_costs(const SplitGraph& graph, const Assignment& assignment);

// Returns the time of a stage for one request, and the time divided by the replicas, rounded up. kNever for units that
// cannot run there; the period is also kNever for a stage without the memory.
int64_t stage_time(const SplitGraph& graph, StageDevices stage, const StageCost& cost);
int64_t stage_period(const SplitGraph& graph, StageDevices stage, const StageCost& cost);

// Sets period_ns to the greatest period.
void set_period(const SplitGraph& graph, Assignment& assignment);

// Returns the distinct stages among the units' that are not `left_out`, ascending, in `made`.
void collect_stages(std::span<const int32_t> units, const std::vector<int32_t>& stage_of_unit, int32_t left_out,
                    std::vector<int32_t>& made);

}  // namespace headrace::plan
