#include "plan/pipeline/narrow_ranges.h"

#include <algorithm>
#include <bit>

#include "plan/pipeline/limits.h"

namespace headrace::plan {

RangeNarrower::RangeNarrower(const SplitGraph& graph)
    : graph_(graph),
      dependencies_(graph),
      times_(least_transfer_times(graph)),
      stages_(graph.devices.num_devices),
      overlaps_(any_overlaps(graph)) {}

bool RangeNarrower::narrow(int64_t period_ns, StageRanges& ranges) {
  period_ns_ = period_ns;
  ranges_ = &ranges;
  do {
    changed_ = false;
    if (!follow_edges() || !follow_readers()) return false;
    if (!changed_ && (!fill_rows() || !fill_stages())) return false;
  } while (changed_);
  return true;
}

// Returns false when the unit has no stage left. The ends of a range are not barred.
bool RangeNarrower::set_first(int32_t unit, int32_t stage) {
  int8_t& first = ranges_->first[as_index(unit)];
  stage = std::max<int32_t>(stage, first);
  while (stage <= ranges_->last[as_index(unit)] && ranges_->is_barred(unit, stage)) ++stage;
  changed_ = changed_ || stage != first;
  first = static_cast<int8_t>(stage);
  return stage <= ranges_->last[as_index(unit)];
}

bool RangeNarrower::set_last(int32_t unit, int32_t stage) {
  int8_t& last = ranges_->last[as_index(unit)];
  stage = std::min<int32_t>(stage, last);
  while (stage >= ranges_->first[as_index(unit)] && ranges_->is_barred(unit, stage)) --stage;
  changed_ = changed_ || stage != last;
  last = static_cast<int8_t>(stage);
  return stage >= ranges_->first[as_index(unit)];
}

bool RangeNarrower::bar(int32_t unit, int32_t stage) {
  ranges_->barred[as_index(unit)] |= static_cast<uint8_t>(1U << static_cast<uint32_t>(stage));
  changed_ = true;
  return set_first(unit, 0) && set_last(unit, stages_ - 1);
}

// Units have topological numbers.
bool RangeNarrower::follow_edges() {
  steps_ += 2 * graph_.num_units;
  for (int32_t unit = 0; unit < graph_.num_units; ++unit) {
    int32_t first = 0;
    for (const int32_t tensor : graph_.inputs[as_index(unit)])
      first = std::max<int32_t>(first, ranges_->first[as_index(graph_.tensor_producer[as_index(tensor)])]);
    if (!set_first(unit, first)) return false;
  }
  for (int32_t unit = graph_.num_units; unit-- > 0;) {
    int32_t last = stages_ - 1;
    for (const int32_t tensor : graph_.outputs[as_index(unit)]) {
      for (const int32_t consumer : graph_.tensor_consumers[as_index(tensor)])
        last = std::min<int32_t>(last, ranges_->last[as_index(consumer)]);
    }
    if (!set_last(unit, last)) return false;
  }
  return true;
}

bool RangeNarrower::follow_readers() {
  for (size_t tensor = 0; tensor < times_.size(); ++tensor) {
    for (uint32_t left = ranges_->read_in[tensor]; left != 0; left &= left - 1) {
      const int32_t stage = std::countr_zero(left);
      int32_t reader = -1, count = 0;
      for (const int32_t consumer : graph_.tensor_consumers[tensor]) {
        if (!ranges_->may_have(consumer, stage)) continue;
        reader = consumer;
        ++count;
      }
      if (count == 0 || !set_last(graph_.tensor_producer[tensor], stage)) return false;
      if (count == 1 && (!set_first(reader, stage) || !set_last(reader, stage))) return false;
    }
  }
  return true;
}

bool RangeNarrower::fill_rows() {
  for (int32_t low = 0; low < stages_; ++low) {
    for (int32_t high = low; high < stages_; ++high) {
      if (!fill_row(low, high)) return false;
    }
  }
  return true;
}

// Asks which units could have the lowest or the highest stage of a row.
bool RangeNarrower::fill_row(int32_t low, int32_t high) {
  int64_t left = (period_ns_ - 1) * (high - low + 1);
  UnitSet may_join_below(graph_.num_units), may_join_above(graph_.num_units);
  int64_t below = 0, above = 0;  // compute of these
  for (int32_t unit = 0; unit < graph_.num_units; ++unit) {
    const bool is_not_below = ranges_->first[as_index(unit)] >= low;
    const bool is_not_above = ranges_->last[as_index(unit)] <= high;
    if (is_not_below && is_not_above) left -= graph_.fastest(unit);
    if (is_not_below && !is_not_above) {
      may_join_below.add(unit);
      below += graph_.fastest(unit);
    }
    if (!is_not_below && is_not_above) {
      may_join_above.add(unit);
      above += graph_.fastest(unit);
    }
  }
  steps_ += graph_.num_units;
  if (left < 0) return false;
  if (below > left && !raise_firsts(high, may_join_below, left)) return false;
  return above <= left || lower_lasts(low, may_join_above, left);
}

// Returns the compute of those that both sets have.
int64_t RangeNarrower::compute_of(const UnitSet& one, const UnitSet& other) {
  int64_t sum = 0;
  one.each_of_both(other, [&](int32_t unit) {
    sum += graph_.fastest(unit);
    ++steps_;
  });
  return sum;
}

// Units that depend on a unit above the row are above it, too.
bool RangeNarrower::raise_firsts(int32_t high, const UnitSet& may_join, int64_t left) {
  const auto is_above = [&](int32_t tensor) {
    return ranges_->first[as_index(graph_.tensor_producer[as_index(tensor)])] > high;
  };
  for (int32_t unit = 0; unit < graph_.num_units; ++unit) {
    if (ranges_->first[as_index(unit)] > high || ranges_->last[as_index(unit)] <= high) continue;
    const auto inputs = graph_.inputs[as_index(unit)];
    if (std::none_of(inputs.begin(), inputs.end(), is_above) &&
        (dependencies_.before_ns[as_index(unit)] <= left ||
         compute_of(dependencies_.before[as_index(unit)], may_join) <= left))
      continue;
    if (!set_first(unit, high + 1)) return false;
  }
  return true;
}

bool RangeNarrower::lower_lasts(int32_t low, const UnitSet& may_join, int64_t left) {
  const auto is_below = [&](int32_t tensor) {
    const auto consumers = graph_.tensor_consumers[as_index(tensor)];
    return std::any_of(consumers.begin(), consumers.end(),
                       [&](int32_t one) { return ranges_->last[as_index(one)] < low; });
  };
  for (int32_t unit = graph_.num_units; unit-- > 0;) {
    if (ranges_->last[as_index(unit)] < low || ranges_->first[as_index(unit)] >= low) continue;
    const auto outputs = graph_.outputs[as_index(unit)];
    if (std::none_of(outputs.begin(), outputs.end(), is_below) &&
        (dependencies_.after_ns[as_index(unit)] <= left ||
         compute_of(dependencies_.after[as_index(unit)], may_join) <= left))
      continue;
    if (!set_last(unit, low - 1)) return false;
  }
  return true;
}

// Loads that are sure before the stages are filled stay sure while units lose stages.
bool RangeNarrower::fill_stages() {
  cases_ = all_cases(graph_, *ranges_);
  const SureLoads loads = sure_loads(graph_, *ranges_, cases_, times_);
  for (int32_t stage = 0; stage < stages_; ++stage) {
    if (!has_room(loads, stage, 0, 0)) return false;
  }
  steps_ += graph_.num_units * stages_ + 2 * static_cast<int64_t>(times_.size());
  return bar_long_units(loads) && keep_long_tensors(loads);
}

bool RangeNarrower::has_room(const SureLoads& loads, int32_t stage, int64_t compute_ns, int64_t transfers_ns) const {
  const int64_t compute = loads.compute[as_index(stage)] + compute_ns;
  const int64_t transfers = loads.transfers[as_index(stage)] + transfers_ns;
  return (overlaps_ ? std::max(compute, transfers) : compute + transfers) < period_ns_;
}

// Returns the transfers that a unit adds to those that its stage has for sure.
int64_t RangeNarrower::added_transfers(int32_t unit, int32_t stage) const {
  int64_t sum = 0;
  for (const int32_t tensor : graph_.inputs[as_index(unit)]) {
    const TensorCase& one = cases_[as_index(tensor)];
    if (one.producer_last < stage && !one.is_read_in(stage)) sum += times_[as_index(tensor)];
  }
  for (const int32_t tensor : graph_.outputs[as_index(unit)]) {
    if (cases_[as_index(tensor)].reader_first > stage) sum += times_[as_index(tensor)];
  }
  return sum;
}

// Bars stages that have no room for a unit.
bool RangeNarrower::bar_long_units(const SureLoads& loads) {
  for (int32_t unit = 0; unit < graph_.num_units; ++unit) {
    const int32_t first = ranges_->first[as_index(unit)], last = ranges_->last[as_index(unit)];
    for (int32_t stage = first; stage <= last && first < last; ++stage) {
      if (!ranges_->may_have(unit, stage)) continue;
      if (has_room(loads, stage, graph_.fastest(unit), added_transfers(unit, stage))) continue;
      if (!bar(unit, stage)) return false;
    }
  }
  return true;
}

// Keeps the consumers of a tensor in its producer's stage when that has no room to send it.
bool RangeNarrower::keep_long_tensors(const SureLoads& loads) {
  for (size_t tensor = 0; tensor < times_.size(); ++tensor) {
    const TensorCase& one = cases_[tensor];
    const int32_t stage = one.producer_first;
    if (stage != one.producer_last || one.reader_first > stage || one.reader_last == stage) continue;
    if (has_room(loads, stage, 0, times_[tensor])) continue;
    for (const int32_t consumer : graph_.tensor_consumers[tensor]) {
      if (!set_last(consumer, stage)) return false;
    }
  }
  return true;
}

}  // namespace headrace::plan
