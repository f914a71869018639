#include "partition/placement/plan_search.h"

#include <algorithm>
#include <queue>

#include "partition/placement/region_moves.h"

namespace headrace::partition {

namespace {

constexpr int kRounds = 3;  // the first one adds no borders

int64_t operations_of(const graph::LabelProblem& problem, const graph::Labelling& found) {
  return found.operations + problem.num_nodes * kNodeOperations;
}

// The sets of labels of step 2, best first.
class LabelSets {
 public:
  // `first` has the labels of least cost of all. A plan that costs `known` is there already.
  LabelSets(const CostProblem& problem, const FoundPlan& first, int64_t known)
      : problem_(problem),
        labels_(problem.label_problem()),
        calls_(problem.undecided_calls()),
        best_(first),
        known_(known) {
    push({.bound = first.lower_bound, .labels = first.labels});
  }

  // Ends before it takes more operations than `most`, of which one label problem takes about `each`. Returns the best
  // plan, and a lower bound of all.
  FoundPlan search(int64_t most, int64_t each) {
    while (!open_.empty() && open_.top().bound < limit()) {
      if (most - operations_ < each * static_cast<int64_t>(calls_.size())) break;
      const LabelSet set = open_.top();
      open_.pop();
      take(set.labels);
      divide(set);
    }
    best_.lower_bound = std::min(limit(), open_.empty() ? INT64_MAX : open_.top().bound);
    return best_;
  }

 private:
  // The labels that begin with those of `labels` for the first `fixed` calls, and do not have these at the next one.
  struct LabelSet {
    int64_t bound = 0;
    std::vector<int32_t> labels = {};  // those of least cost in the set
    size_t fixed = 0;
    std::vector<int32_t> without = {};
    int64_t number = 0;
  };
  struct Later {
    bool operator()(const LabelSet& a, const LabelSet& b) const {
      return std::pair(a.bound, a.number) > std::pair(b.bound, b.number);
    }
  };

  // Where calls may not be native, labels of least cost may take instances in part; these are no plan.
  void take(const std::vector<int32_t>& labels) {
    if (!problem_.is_plan(labels)) return;
    const int64_t cost = problem_.cost_of(labels);
    if (cost < best_.cost) best_ = {labels, cost, 0};
  }

  int64_t limit() const { return std::min(best_.cost, known_); }
  void push(LabelSet set) {
    set.number = next_number_++;
    open_.push(std::move(set));
  }
  graph::LabelCost& cost_at(size_t call, int32_t label) {
    const auto labels = static_cast<size_t>(labels_.num_labels);
    return labels_.costs[static_cast<size_t>(calls_[call]) * labels + static_cast<size_t>(label)];
  }
  int32_t label_of(const LabelSet& set, size_t call) const { return set.labels[static_cast<size_t>(calls_[call])]; }

  // Divides the set without its best labels: by the first call whose label is another one.
  void divide(const LabelSet& set) {
    const std::vector<graph::LabelCost> costs = labels_.costs;
    for (size_t call = 0; call < calls_.size(); ++call) {
      const int32_t own = label_of(set, call);
      if (call >= set.fixed) {
        std::vector<int32_t> without = call == set.fixed ? set.without : std::vector<int32_t>();
        without.push_back(own);
        push_without(call, std::move(without));
      }
      for (int32_t label = 0; label < labels_.num_labels; ++label) {
        if (label != own) cost_at(call, label) = graph::kForbidden;
      }
    }
    labels_.costs = costs;
  }

  // Adds the set of labels that do not have these at a call, if it has others; calls before have one label each.
  void push_without(size_t call, std::vector<int32_t> without) {
    std::vector<graph::LabelCost> costs;
    for (int32_t label = 0; label < labels_.num_labels; ++label) costs.push_back(cost_at(call, label));
    for (const int32_t label : without) cost_at(call, label) = graph::kForbidden;
    bool is_allowed = false;
    for (int32_t label = 0; label < labels_.num_labels; ++label)
      is_allowed |= cost_at(call, label) != graph::kForbidden;
    if (is_allowed) {
      graph::Labelling found = graph::find_labels(labels_);
      operations_ += operations_of(labels_, found);
      found.labels.resize(best_.labels.size());
      if (found.lower_bound < limit())
        push({.bound = found.lower_bound, .labels = std::move(found.labels), .fixed = call, .without = without});
    }
    for (int32_t label = 0; label < labels_.num_labels; ++label)
      cost_at(call, label) = costs[static_cast<size_t>(label)];
  }

  const CostProblem& problem_;
  graph::LabelProblem labels_;
  std::vector<int32_t> calls_;
  FoundPlan best_;
  int64_t known_;
  int64_t next_number_ = 0, operations_ = 0;
  std::priority_queue<LabelSet, std::vector<LabelSet>, Later> open_;
};

// Step 2. Problems that elimination does not solve are not searched, unless they are small.
FoundPlan search_sets(const CostProblem& problem, const FoundPlan& first, const graph::Labelling& labels, int64_t known,
                      const SearchLimits& limits) {
  const bool is_small = problem.num_plans(limits.small_plans + 1) <= limits.small_plans;
  if (!is_small && labels.method != graph::LabelMethod::elimination) return first;
  const int64_t most = is_small ? limits.small_operations : limits.operations;
  return LabelSets(problem, first, known).search(most, operations_of(problem.label_problem(), labels));
}

void add_borders_in_rounds(CostProblem& problem, FoundPlan& best, std::vector<int32_t> labels) {
  for (int round = 1; round < kRounds && problem.add_borders(labels); ++round) {
    labels = problem.solve().labels;
    const int64_t cost = problem.cost_of(labels);
    if (cost < best.cost) best = {labels, cost, best.lower_bound};
  }
}

}  // namespace

FoundPlan find_plan(CostProblem& problem, int64_t known, const SearchLimits& limits) {
  const graph::Labelling first = problem.solve();
  const int64_t cost = problem.cost_of(first.labels);
  FoundPlan best{first.labels, cost, first.lower_bound};
  if (std::min(cost, known) <= first.lower_bound) return best;
  best = search_sets(problem, best, first, known, limits);
  if (std::min(best.cost, known) <= best.lower_bound) return best;
  add_borders_in_rounds(problem, best, first.labels);
  const int64_t plans = limits.moved_nodes / std::max(problem.label_problem().num_nodes, 1);
  best.cost = move_regions(problem, best.labels, std::max(plans, limits.least_moves));
  return best;
}

}  // namespace headrace::partition
