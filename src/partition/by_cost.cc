#include "partition/by_cost.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "partition/place.h"
#include "partition/plan_search.h"

namespace headrace::partition {

namespace {

// The best plan of one split.
struct Found {
  std::shared_ptr<const CostProblem> problem;
  std::vector<int32_t> labels;
  int64_t cost = 0;
};

class Search {
 public:
  Search(const IRModule& module, const OpCosts& costs)
      : backends_(costs.backends()), least_saving_(costs.least_saving()) {
    std::map<const Object*, std::shared_ptr<CostProblem>> known;
    std::vector<std::shared_ptr<CostProblem>> problems;
    for (const IRModule& split : splits_of(module, backends_)) {
      const auto [it, is_new] = known.try_emplace(split.object(), nullptr);
      if (is_new) it->second = problems_.emplace_back(std::make_shared<CostProblem>(split, costs));
      problems.push_back(it->second);
    }
    plain_ = problems[0];
    whole_ = problems[1];
    alone_.assign(problems.begin() + 2, problems.end());
    plan_.source = costs.source(module);
    use_whole_plans(costs);
    choose_unit();
  }

  CostChoice best() {
    try_plan(plain_, plain_->first_of({0}), kNative);
    try_plan(whole_, whole_->first_of(list_order()), kListOrder);
    for (size_t i = 0; i < backends_.size(); ++i)
      try_plan(alone_[i], alone_[i]->first_of({label_of(i)}), std::string(backends_[i]->name()));
    const Found without_costs = best_;
    for (const auto& problem : problems_) solve(problem);
    pass_over_small_savings(without_costs);
    plan_.seconds = static_cast<double>(best_.cost) / per_second_;
    plan_.lower_bound = static_cast<double>(bound_) / per_second_;
    return {.problem = best_.problem, .labels = best_.problem->backends_of(best_.labels), .plan = plan_};
  }

 private:
  static int32_t label_of(size_t backend) { return static_cast<int32_t>(backend) + 1; }
  std::vector<int32_t> list_order() const {
    std::vector<int32_t> order(backends_.size());
    std::iota(order.begin(), order.end(), label_of(0));
    return order;
  }

  // Scales all costs to the whole plans that were measured. These plans cost what they took, also where a factor is
  // limited; the order of the list has no factor of its own.
  void use_whole_plans(const OpCosts& costs) {
    plan_.scales = fit_scales(*plain_, alone_, costs);
    if (plan_.scales.empty()) return;
    std::vector<double> factors;
    for (const PlanScale& scale : plan_.scales) factors.push_back(scale.factor);
    for (const auto& problem : problems_) {
      problem->scale(factors);
      problem->set_measured(problem->first_of({0}), *costs.whole({}));
    }
    if (const auto seconds = costs.whole(backends_)) whole_->set_measured(whole_->first_of(list_order()), *seconds);
    for (size_t i = 0; i < backends_.size(); ++i)
      alone_[i]->set_measured(alone_[i]->first_of({label_of(i)}), *costs.whole({backends_[i]}));
  }

  // Takes picoseconds, or larger units where their sums could pass the range of label costs.
  void choose_unit() {
    constexpr double kMaxSum = 0x1p58;
    double most = 0;
    for (const auto& problem : problems_) most = std::max(most, problem->most_seconds());
    per_second_ = std::min(1e12, kMaxSum / std::max(most, 1e-12));
    for (const auto& problem : problems_) problem->set_unit(per_second_);
  }

  int64_t keep(const std::shared_ptr<const CostProblem>& problem, std::vector<int32_t> labels) {
    const int64_t cost = problem->cost_of(labels);
    if (best_.problem == nullptr || cost < best_.cost) best_ = {problem, std::move(labels), cost};
    return cost;
  }

  void try_plan(const std::shared_ptr<const CostProblem>& problem, std::vector<int32_t> labels,
                const std::string& name) {
    const int64_t cost = keep(problem, std::move(labels));
    bound_ = std::min(bound_, cost);  // one that was measured may cost less than the label problem has it
    plan_.others.push_back({name, static_cast<double>(cost) / per_second_});
  }

  void solve(const std::shared_ptr<CostProblem>& problem) {
    FoundPlan found = find_plan(*problem, best_.cost);
    bound_ = std::min(bound_, found.lower_bound);
    keep(problem, std::move(found.labels));
  }

  void pass_over_small_savings(const Found& without_costs) {
    const auto enough = static_cast<double>(without_costs.cost) * (1 - least_saving_);
    if (best_.cost == without_costs.cost || static_cast<double>(best_.cost) <= enough) return;
    plan_.passed_over = static_cast<double>(best_.cost) / per_second_;
    best_ = without_costs;
  }

  const Backends& backends_;
  double least_saving_;
  std::vector<std::shared_ptr<CostProblem>> problems_;
  std::shared_ptr<CostProblem> plain_, whole_;       // without pieces; with those of the whole list
  std::vector<std::shared_ptr<CostProblem>> alone_;  // by backend, with its pieces
  double per_second_ = 0;
  int64_t bound_ = INT64_MAX;
  Found best_;
  PlanCost plan_;
};

// Returns "natively", "by x", "natively in the kernel of y" or "by x with y": y is the kind of the operand that is
// computed together with the call.
std::string where_of(const std::string& label, const CostProblem::Join* join) {
  if (label != kNative)
    return join == nullptr ? "by " + label : fmt::format("by {} with {}", label, kind_of(*join->producers.front()));
  return join == nullptr ? "natively" : "natively in the kernel of " + kind_of(*join->producers.front());
}

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

CostDecider::CostDecider(const IRModule& module, OpCosts costs)
    : costs_(std::move(costs)), choice_(Search(module, costs_).best()) {}

const IRModule& CostDecider::module() const { return choice_.problem->module(); }

PlanCost CostDecider::plan_of(const Labels& labels) const {
  PlanCost plan = choice_.plan;
  plan.seconds = choice_.problem->seconds_of(choice_.problem->labels_of(labels));
  return plan;
}

Labels CostDecider::decide(const IRModule& module) {
  HEADRACE_CHECK(module == choice_.problem->module(), "the plan is for the split that it was made for");
  return choice_.labels;
}

std::vector<LabelSeconds> CostDecider::costs_of(const relay::CallNode& call) const {
  std::vector<LabelSeconds> costs = costs_.of(call);
  for (LabelSeconds& one : costs) {
    for (const PlanScale& scale : choice_.plan.scales) {
      if (scale.label == one.label) one.seconds *= scale.factor;
    }
    if (const CostProblem::Join* join = choice_.problem->join_of(call, one.label, choice_.labels))
      one.seconds = std::max(one.seconds - join->seconds_saved, 0.0);
  }
  return costs;
}

// Returns "the plan of least cost runs it here: 1.2 us by x, 3 us natively", the place that was chosen first. A plan
// that was taken though another costs less says so.
std::string CostDecider::least_cost(const relay::CallNode& call, const std::string& chosen,
                                    std::vector<LabelSeconds> costs) const {
  const auto first =
      std::find_if(costs.begin(), costs.end(), [&](const LabelSeconds& one) { return one.label == chosen; });
  if (first != costs.end()) std::rotate(costs.begin(), first, first + 1);
  std::string text = choice_.plan.passed_over ? "the plan runs it here, since a cheaper one saves too little:"
                                              : "the plan of least cost runs it here:";
  for (const LabelSeconds& one : costs)
    text += fmt::format("{} {} {}", &one == costs.data() ? "" : ",", show_cost(one.seconds),
                        where_of(one.label, choice_.problem->join_of(call, one.label, choice_.labels)));
  return text;
}

Verdict CostDecider::why(const relay::CallNode& call, const std::string& backend) const {
  std::vector<LabelSeconds> costs = costs_of(call);
  if (backend == kNative && (costs.size() == 1 || !why_in_no_region(call).empty()))
    return why_native(costs_.backends(), call);
  std::string message = least_cost(call, backend, std::move(costs));
  if (call.as_op() == nullptr) message += fmt::format(", for all that its pattern {} matches", kind_of(call));
  return {.reason = HR_REASON_PLACE_BY_COST, .message = std::move(message)};
}

}  // namespace headrace::partition
