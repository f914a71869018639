// The least weighted sum of what all stages take, where it is known for each unit which stages may have it.
#pragma once

#include "plan/pipeline/cut_network.h"
#include "plan/pipeline/stage_ranges.h"

namespace headrace::plan {

// Weights of the compute and of the transfers of each stage. Their sum over both is kWeightSum.
inline constexpr int64_t kWeightSum = 65'536;
struct StageWeights {
  std::array<int64_t, kMaxCutStages> compute{}, transfers{};
};

// Which borders a tensor that may cross several of them is weighted at.
enum class BorderChoice : uint8_t { all_alike, lowest_first, highest_first };

class WeightedCut {
 public:
  // Keeps a reference to the graph. Stages take the least times over all devices.
  explicit WeightedCut(const SplitGraph& graph);

  // Returns a value that the weighted sum is not below, for any plan in which each unit has a stage of its range;
  // `limit` when it is that or more. Memory counts for nothing. A minimum cut; adds its arcs to steps().
  int64_t least_sum(const StageRanges& ranges, const StageWeights& weights, BorderChoice choice, int64_t limit);
  // Returns the stage of each unit in the plan that the cut shows; call after a sum below its limit.
  const std::vector<int32_t>& stages() const { return stage_of_unit_; }
  int64_t steps() const { return steps_; }

 private:
  using BorderWeights = std::array<int64_t, kMaxCutStages>;  // by the stage above the border; 0 has none

  // Returns the node that is inside when the unit lies below the border; kBelow or kAbove when that is known.
  static constexpr int32_t kBelow = -1, kAbove = -2;
  int32_t node_of(int32_t unit, int32_t border) const;
  void number_nodes();
  void add_unit(CutNetwork& network, int32_t unit);
  const BorderWeights& border_weights(const TensorCase& one);
  BorderWeights make_weights(const TensorCase& one) const;
  int64_t cost_of(const TensorCase& one, int32_t from, int32_t last_reader) const;
  void raise_together(const TensorCase& one, std::vector<int32_t> raised, BorderWeights& made) const;
  void add_tensor(CutNetwork& network, size_t tensor);
  void add_crossing(CutNetwork& network, size_t tensor, int32_t border, bool is_read_above, int64_t cost);
  void read_stages(const CutNetwork& network);

  const SplitGraph& graph_;
  std::vector<int64_t> times_;  // by tensor: what a transfer takes at either end
  const StageRanges* ranges_ = nullptr;
  const StageWeights* weights_ = nullptr;
  BorderChoice choice_ = BorderChoice::all_alike;
  std::vector<int32_t> first_node_;  // by unit
  std::vector<std::pair<int64_t, BorderWeights>> known_weights_;
  int64_t constant_ = 0;  // the part of the sum that is the same for all plans
  std::vector<int32_t> stage_of_unit_;
  int64_t steps_ = 0;
};

}  // namespace headrace::plan
