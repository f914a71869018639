// A plan is a row of borders, each of which has a downset below it. For each unit and each border that may lie on
// either side of it, a node of the network says whether the unit is below. Weighted compute is a sum over nodes. A
// tensor from stage i that stage j reads last takes at least
//
//   time * (transfers[i] + transfers[j]) + the same for each other stage that reads it for sure,
//
// which a cut cannot count as it is: a tensor that crosses two borders does not pay for a stage between them. Each
// border gets a weight instead, so that for no i and j the weights of the borders between add up to more.
#include "plan/pipeline/weighted_cut.h"

#include <algorithm>

namespace headrace::plan {

WeightedCut::WeightedCut(const SplitGraph& graph) : graph_(graph), times_(least_transfer_times(graph)) {}

int64_t WeightedCut::least_sum(const StageRanges& ranges, const StageWeights& weights, BorderChoice choice,
                               int64_t limit) {
  ranges_ = &ranges;
  weights_ = &weights;
  choice_ = choice;
  constant_ = 0;
  known_weights_.clear();
  number_nodes();
  CutNetwork network(first_node_.back());
  for (int32_t unit = 0; unit < graph_.num_units; ++unit) add_unit(network, unit);
  for (size_t tensor = 0; tensor < times_.size(); ++tensor) add_tensor(network, tensor);
  steps_ += graph_.num_units + static_cast<int64_t>(times_.size());
  if (constant_ >= limit) return limit;
  const int64_t sum = constant_ + network.min_cut({}, {}, limit - constant_);
  steps_ += network.steps();
  if (sum < limit) read_stages(network);
  return sum;
}

void WeightedCut::number_nodes() {
  first_node_.assign(1, 0);
  for (int32_t unit = 0; unit < graph_.num_units; ++unit)
    first_node_.push_back(first_node_.back() + ranges_->last[as_index(unit)] - ranges_->first[as_index(unit)]);
}

int32_t WeightedCut::node_of(int32_t unit, int32_t border) const {
  if (border > ranges_->last[as_index(unit)]) return kBelow;
  if (border <= ranges_->first[as_index(unit)]) return kAbove;
  return first_node_[as_index(unit)] + border - ranges_->first[as_index(unit)] - 1;
}

void WeightedCut::add_unit(CutNetwork& network, int32_t unit) {
  const int32_t first = ranges_->first[as_index(unit)], last = ranges_->last[as_index(unit)];
  const int64_t time = graph_.fastest(unit);
  const auto weight = [&](int32_t stage) { return weights_->compute[as_index(stage)]; };
  constant_ += time * weight(last);
  for (int32_t border = first + 1; border <= last; ++border) {
    const int32_t node = node_of(unit, border);
    if (border < last) network.add_arc(node, node + 1, kUncuttable, ranges_->may_have(unit, border) ? 0 : kUncuttable);
    const int64_t more_below = time * (weight(border - 1) - weight(border));
    if (more_below > 0) network.add_cost(node, more_below);
    if (more_below >= 0) continue;
    constant_ += more_below;
    network.add_cost_outside(node, -more_below);
  }
}

// Returns the weight of 1 ns of transfers, when the producer's stage and the last reader's are these.
int64_t WeightedCut::cost_of(const TensorCase& one, int32_t from, int32_t last_reader) const {
  int64_t cost = 0;
  for (int32_t stage = from + 1; stage <= last_reader; ++stage) {
    if (stage == last_reader || one.is_read_in(stage))
      cost += weights_->transfers[as_index(from)] + weights_->transfers[as_index(stage)];
  }
  return cost;
}

// Raises the weights of these borders by equal steps; those that cannot be raised any more stay behind.
void WeightedCut::raise_together(const TensorCase& one, std::vector<int32_t> raised, BorderWeights& made) const {
  while (!raised.empty()) {
    int64_t step = INT64_MAX;
    int32_t tight_from = 0, tight_to = 0;
    for (int32_t from = one.producer_first; from <= one.producer_last; ++from) {
      for (int32_t to = std::max(from + 1, one.reader_first); to <= one.reader_last; ++to) {
        int64_t left = cost_of(one, from, to), count = 0;
        for (int32_t border = from + 1; border <= to; ++border) left -= made[as_index(border)];
        for (const int32_t border : raised) count += border > from && border <= to ? 1 : 0;
        if (count == 0 || left / count >= step) continue;
        step = left / count;
        tight_from = from;
        tight_to = to;
      }
    }
    if (step == INT64_MAX) return;  // no plan has tensors across these borders
    for (const int32_t border : raised) made[as_index(border)] += step;
    std::erase_if(raised, [&](int32_t border) { return border > tight_from && border <= tight_to; });
  }
}

WeightedCut::BorderWeights WeightedCut::make_weights(const TensorCase& one) const {
  BorderWeights made{};
  std::vector<int32_t> sure, others;  // borders that the tensor crosses in every plan come first
  for (int32_t border = one.producer_first + 1; border <= one.reader_last; ++border)
    (border > one.producer_last && border <= one.reader_first ? sure : others).push_back(border);
  raise_together(one, sure, made);
  if (choice_ == BorderChoice::all_alike) {
    raise_together(one, others, made);
    return made;
  }
  if (choice_ == BorderChoice::highest_first) std::reverse(others.begin(), others.end());
  for (const int32_t border : others) raise_together(one, {border}, made);
  return made;
}

const WeightedCut::BorderWeights& WeightedCut::border_weights(const TensorCase& one) {
  const int64_t key = one.key();
  for (const auto& [known_key, weights] : known_weights_) {
    if (known_key == key) return weights;
  }
  return known_weights_.emplace_back(key, make_weights(one)).second;
}

void WeightedCut::add_tensor(CutNetwork& network, size_t tensor) {
  const int32_t producer = graph_.tensor_producer[tensor];
  const TensorCase one = case_of(graph_, *ranges_, tensor);
  const BorderWeights weights = border_weights(one);
  for (int32_t border = one.producer_first + 1; border <= one.reader_last; ++border) {
    const int32_t from = node_of(producer, border);
    for (const int32_t consumer : graph_.tensor_consumers[tensor]) {
      const int32_t to = node_of(consumer, border);
      if (from >= 0 && to >= 0) network.add_arc(to, from, kUncuttable);
    }
    add_crossing(network, tensor, border, border <= one.reader_first, times_[tensor] * weights[as_index(border)]);
  }
}

// Adds the cost of plans in which the producer is below the border and some consumer is above it.
void WeightedCut::add_crossing(CutNetwork& network, size_t tensor, int32_t border, bool is_read_above, int64_t cost) {
  const int32_t producer = node_of(graph_.tensor_producer[tensor], border);
  if (producer == kAbove || cost == 0) return;
  if (is_read_above) {
    if (producer == kBelow) constant_ += cost;
    if (producer >= 0) network.add_cost(producer, cost);
    return;
  }
  std::vector<int32_t> open;  // consumers that may be above the border
  for (const int32_t consumer : graph_.tensor_consumers[tensor]) {
    const int32_t node = node_of(consumer, border);
    if (node >= 0) open.push_back(node);
  }
  if (open.empty()) return;
  const int32_t below = open.size() == 1 ? open.front() : network.add_node();
  if (producer == kBelow) network.add_cost_outside(below, cost);
  if (producer >= 0) network.add_arc(producer, below, cost);
  if (open.size() == 1) return;
  for (const int32_t node : open) network.add_arc(below, node, kUncuttable);
}

void WeightedCut::read_stages(const CutNetwork& network) {
  stage_of_unit_.clear();
  for (int32_t unit = 0; unit < graph_.num_units; ++unit) {
    int32_t stage = ranges_->first[as_index(unit)];
    while (stage < ranges_->last[as_index(unit)] && !network.is_inside(node_of(unit, stage + 1))) ++stage;
    stage_of_unit_.push_back(stage);
  }
}

}  // namespace headrace::plan
