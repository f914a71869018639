#include "partition/by_cost.h"

#include <algorithm>
#include <cmath>
#include <list>
#include <map>
#include <numeric>

#include "partition/compiler_functions.h"
#include "partition/cost_problem.h"
#include "partition/place.h"
#include "relay/infer/infer_type.h"

namespace headrace::partition {

namespace {

constexpr int kRounds = 3;

// The best plan of one split.
struct Found {
  const CostProblem* problem = nullptr;
  std::vector<int32_t> labels;
  int64_t cost = 0;
};

class Search {
 public:
  Search(const IRModule& module, const OpCosts& costs) : backends_(costs.backends()) {
    std::map<const Object*, const CostProblem*> known;
    std::vector<const CostProblem*> problems;
    for (const IRModule& split : splits_of(module, backends_)) {
      const auto [it, is_new] = known.try_emplace(split.object(), nullptr);
      if (is_new) it->second = &problems_.emplace_back(split, costs);
      problems.push_back(it->second);
    }
    whole_ = problems[1];
    alone_.assign(problems.begin() + 2, problems.end());
    plan_.source = costs.source(module->lookup("main").cast<relay::FunctionNode>()->body);
    choose_unit();
  }

  CostedModule best() {
    try_plan(*whole_, whole_->first_of({0}), kNative);
    std::vector<int32_t> order(backends_.size());
    std::iota(order.begin(), order.end(), 1);
    try_plan(*whole_, whole_->first_of(order), kListOrder);
    for (size_t i = 0; i < backends_.size(); ++i)
      try_plan(*alone_[i], alone_[i]->first_of({order[i]}), std::string(backends_[i]->name()));
    for (CostProblem& problem : problems_) solve(problem);
    plan_.seconds = static_cast<double>(best_.cost) / per_second_;
    plan_.lower_bound = static_cast<double>(bound_) / per_second_;
    return {.ruled = extracted(), .plan = plan_};
  }

 private:
  // Takes picoseconds, or larger units where their sums could pass the range of label costs.
  void choose_unit() {
    constexpr double kMaxSum = 0x1p58;
    double most = 0;
    for (const CostProblem& problem : problems_) most = std::max(most, problem.most_seconds());
    per_second_ = std::min(1e12, kMaxSum / std::max(most, 1e-12));
    for (CostProblem& problem : problems_) problem.set_unit(per_second_);
  }

  int64_t keep(const CostProblem& problem, std::vector<int32_t> labels) {
    const int64_t cost = problem.cost_of(labels);
    if (best_.problem == nullptr || cost < best_.cost) best_ = {&problem, std::move(labels), cost};
    return cost;
  }

  void try_plan(const CostProblem& problem, std::vector<int32_t> labels, const std::string& name) {
    const int64_t cost = keep(problem, std::move(labels));
    plan_.others.push_back({name, static_cast<double>(cost) / per_second_});
  }

  void solve(CostProblem& problem) {
    for (int round = 1; round <= kRounds; ++round) {
      const graph::Labelling found = problem.solve();
      if (round == 1) bound_ = std::min(bound_, found.lower_bound);
      keep(problem, found.labels);
      if (!problem.add_borders(found.labels)) return;
    }
  }

  // The functions of the regions. Pieces outside of them are native, and ops again.
  RuledModule extracted() const {
    const CostProblem& problem = *best_.problem;
    const Partitioned partitioned = partition_by_labels(problem.module(), problem.backends_of(best_.labels));
    std::vector<std::string> pieces;
    for (const auto& backend : backends_) {
      for (const CompositePattern& pattern : backend->patterns()) pieces.push_back(pattern.name);
    }
    RuledModule ruled{.module = relay::infer_type(inline_composites(partitioned.module, pieces)), .regions = {}};
    for (const ExtractedRegion& region : partitioned.regions) ruled.regions.push_back(region.name);
    return ruled;
  }

  const Backends& backends_;
  std::list<CostProblem> problems_;
  const CostProblem* whole_ = nullptr;
  std::vector<const CostProblem*> alone_;  // by backend
  double per_second_ = 0;
  int64_t bound_ = INT64_MAX;
  Found best_;
  PlanCost plan_;
};

}  // namespace

std::vector<IRModule> splits_of(const IRModule& module, const Backends& backends) {
  const IRModule whole = compose(module, backends);
  std::vector<IRModule> splits{module, whole};
  for (const auto& backend : backends) {
    if (whole == module || backend->patterns().empty()) {
      splits.push_back(module);
    } else {
      splits.push_back(backends.size() == 1 ? whole : compose(module, {backend}));
    }
  }
  return splits;
}

CostedModule place_by_cost(const IRModule& module, const OpCosts& costs) { return Search(module, costs).best(); }

}  // namespace headrace::partition
