// Takes stages away from units that cannot have them in a plan of a short period.
#pragma once

#include "plan/pipeline/stage_ranges.h"
#include "plan/pipeline/unit_sets.h"

namespace headrace::plan {

class RangeNarrower {
 public:
  // Keeps a reference to the graph.
  explicit RangeNarrower(const SplitGraph& graph);

  // Narrows the ranges to those of plans with a period below `period_ns`:
  //
  //   a consumer's stage is not below its producer's;
  //   a tensor that is read in a stage has a consumer there, and no producer above it;
  //   for each row of stages: the units that must lie in it compute less than the period times these stages, also when
  //   a unit has the first (last) stage of its range, so that all that it depends on (depends on it) is there or below
  //   (above);
  //   for each stage: what it computes and transfers for sure, with what one more unit adds for sure.
  //
  // Returns false when no such plan is left; the ranges then mean nothing. Stages have no replicas.
  bool narrow(int64_t period_ns, StageRanges& ranges);

  const Dependencies& dependencies() const { return dependencies_; }
  const std::vector<int64_t>& transfer_times() const { return times_; }
  // Returns how many units all calls have looked at.
  int64_t steps() const { return steps_; }

 private:
  bool set_first(int32_t unit, int32_t stage);
  bool set_last(int32_t unit, int32_t stage);
  bool bar(int32_t unit, int32_t stage);
  bool follow_edges();
  bool follow_readers();
  bool fill_rows();
  bool fill_row(int32_t low, int32_t high);
  int64_t compute_of(const UnitSet& one, const UnitSet& other);
  bool raise_firsts(int32_t high, const UnitSet& may_join, int64_t left);
  bool lower_lasts(int32_t low, const UnitSet& may_join, int64_t left);
  bool fill_stages();
  bool has_room(const SureLoads& loads, int32_t stage, int64_t compute_ns, int64_t transfers_ns) const;
  int64_t added_transfers(int32_t unit, int32_t stage) const;
  bool bar_long_units(const SureLoads& loads);
  bool keep_long_tensors(const SureLoads& loads);

  const SplitGraph& graph_;
  const Dependencies dependencies_;
  const std::vector<int64_t> times_;  // by tensor: the least of a transfer at either end
  const int32_t stages_;
  const bool overlaps_;
  int64_t period_ns_ = 0;
  StageRanges* ranges_ = nullptr;
  std::vector<TensorCase> cases_;  // when the stages were filled last
  bool changed_ = false;
  int64_t steps_ = 0;
};

}  // namespace headrace::plan
