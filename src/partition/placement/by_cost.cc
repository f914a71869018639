#include "partition/placement/by_cost.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "partition/place.h"
#include "partition/placement/plan_search.h"

namespace headrace::partition {

namespace {

// A plan that was tried is taken if it saves this share of the fastest plan made without costs: two times of one plan
// differ by about 1 %, and the fewer regions are the simpler plan.
constexpr double kLeastSavingOfTried = 0.02;

int32_t label_of(size_t backend) { return static_cast<int32_t>(backend) + 1; }

// Returns the labels of the backends of a list in its order.
std::vector<int32_t> list_order(const Backends& backends) {
  std::vector<int32_t> order(backends.size());
  std::iota(order.begin(), order.end(), label_of(0));
  return order;
}

// Scales all costs. Does nothing where no whole plans were measured.
void scale_by(CostProblem& problem, const std::vector<PlanScale>& scales) {
  std::vector<double> factors;
  for (const PlanScale& scale : scales) factors.push_back(scale.factor);
  if (!factors.empty()) problem.scale(factors);
}

class Search {
 public:
  Search(const IRModule& module, const OpCosts& costs)
      : costs_(costs),
        backends_(costs.backends()),
        problem_(std::make_shared<CostProblem>(find_instances(module, costs.backends()), costs)) {
    native_ = problem_->first_of({kNativeLabel});
    list_ = problem_->first_of(list_order(backends_), problem_->instances().of_list);
    for (size_t i = 0; i < backends_.size(); ++i) {
      const auto& of_backend = problem_->instances().of_backend;
      alone_.push_back(
          problem_->first_of({label_of(i)}, i < of_backend.size() ? of_backend[i] : std::vector<int32_t>()));
    }
    std::vector<const relay::CallNode*> matches;
    for (const Instance& one : problem_->instances().all) matches.push_back(one.call.as<relay::CallNode>());
    plan_.source = costs.source(module, matches);
    use_whole_plans();
    problem_->choose_unit();
  }

  CostChoice best() {
    add_simple(native_, {}, kNative);
    add_simple(list_, backends_, kListOrder);
    for (size_t i = 0; i < backends_.size(); ++i)
      add_simple(alone_[i], {backends_[i]}, std::string(backends_[i]->name()));
    FoundPlan found = find_plan(*problem_, best_.cost);
    bound_ = std::min(bound_, found.lower_bound);
    add_least(std::move(found.labels));
    plan_.seconds = problem_->seconds_of_units(best_.cost);
    plan_.lower_bound = problem_->seconds_of_units(bound_);
    plan_.name = best_.name;
    return {.problem = problem_, .labels = best_.labels, .split = problem_->split_of(best_.labels), .plan = plan_};
  }

 private:
  struct Found {
    std::vector<int32_t> labels;
    int64_t cost = INT64_MAX;
    std::string name;
  };

  // Scales all costs to the whole plans that were measured. These plans cost what they took, also where a factor is
  // limited; the order of the list has no factor of its own.
  void use_whole_plans() {
    plan_.scales = fit_scales(*problem_, alone_, costs_);
    if (plan_.scales.empty()) return;
    scale_by(*problem_, plan_.scales);
    if (const auto seconds = costs_.whole(backends_)) problem_->set_measured(list_, *seconds);
    for (size_t i = 0; i < backends_.size(); ++i) problem_->set_measured(alone_[i], *costs_.whole({backends_[i]}));
    problem_->set_measured(native_, *costs_.whole({}));
  }

  // Adds one of the plans that are made without costs.
  void add_simple(const std::vector<int32_t>& labels, const Backends& list, const std::string& shown) {
    const int64_t cost = problem_->cost_of(labels);
    if (cost < best_.cost) best_ = {labels, cost, plan_name(list)};
    bound_ = std::min(bound_, cost);  // one that was measured may cost less than the label problem has it
    plan_.others.push_back({shown, problem_->seconds_of_units(cost)});
  }

  // Takes the plan of least cost if it saves enough of the best of those.
  void add_least(std::vector<int32_t> labels) {
    const int64_t promised = problem_->cost_of(labels);
    if (promised >= best_.cost) return;
    std::string name = tried_plan_name(backends_, problem_->hash_of(labels));
    plan_.tried = costs_.tried(name);
    if (plan_.tried) problem_->set_measured(labels, *plan_.tried);
    const int64_t cost = problem_->cost_of(labels);
    const double saving = plan_.tried ? kLeastSavingOfTried : costs_.least_saving();
    if (static_cast<double>(cost) <= static_cast<double>(best_.cost) * (1 - saving)) {
      best_ = {std::move(labels), cost, std::move(name)};
    } else {
      plan_.passed_over = problem_->seconds_of_units(promised);
    }
  }

  const OpCosts& costs_;
  const Backends& backends_;
  std::shared_ptr<CostProblem> problem_;
  std::vector<int32_t> native_, list_;       // labels of plans made without costs
  std::vector<std::vector<int32_t>> alone_;  // by backend
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
  const InstanceSet set = find_instances(module, backends);
  std::vector<IRModule> splits{set.module};
  std::vector<bool> is_known(set.all.size(), false);
  const auto number = [&](const Instance& one) { return static_cast<size_t>(&one - set.all.data()); };
  const auto add = [&](const std::vector<int32_t>& some) {
    if (some.empty()) return;
    for (const int32_t i : some) is_known[static_cast<size_t>(i)] = true;
    splits.push_back(with_instances_where(set, [&](const Instance& one) {
      return std::binary_search(some.begin(), some.end(), static_cast<int32_t>(number(one)));
    }));
  };
  add(set.of_list);
  for (const auto& alone : set.of_backend) add(alone);
  while (std::find(is_known.begin(), is_known.end(), false) != is_known.end()) {
    splits.push_back(with_instances_where(set, [&](const Instance& one) {
      const bool is_new = !is_known[number(one)];
      is_known[number(one)] = true;
      return is_new;
    }));
  }
  return splits;
}

CostDecision::CostDecision(const IRModule& module, OpCosts costs)
    : Decision({}, costs.backends()), costs_(std::move(costs)), choice_(Search(module, costs_).best()) {
  module_ = choice_.split.module;
  labels_ = choice_.problem->backends_of(choice_.split, choice_.labels);
  cost_ = choice_.plan;
  const InstanceSet& instances = choice_.problem->instances();
  split_ = read_composition(instances.module, choice_.split.module);
  refusals_ = instances.refusals.of_split(instances.module, choice_.split.module);
  for (const Instance& one : instances.all) {
    for (const Expr& part : one.parts) {
      if (const auto* call = part.as<relay::CallNode>(); call != nullptr && call->as_op() != nullptr)
        instances_of_[call].push_back(&one);
    }
  }
}

PlanCost CostDecision::plan_of(const IRModule& split, const Labels& labels) const {
  PlanCost plan = choice_.plan;
  plan.name.clear();
  plan.seconds = split == choice_.split.module
                     ? choice_.problem->seconds_of(choice_.problem->labels_of(choice_.split, labels))
                     : seconds_of_other(split, labels);
  plan.lower_bound = std::min(plan.lower_bound, plan.seconds);
  return plan;
}

// Native code and the order of the list cost what they took as wholes, where these were measured.
double CostDecision::seconds_of_other(const IRModule& split, const Labels& labels) const {
  CostProblem problem(split, costs_);
  const std::vector<int32_t> native = problem.first_of({kNativeLabel});
  if (!choice_.plan.scales.empty()) {
    scale_by(problem, choice_.plan.scales);
    if (const auto seconds = costs_.whole({})) problem.set_measured(native, *seconds);
    if (const auto seconds = costs_.whole(backends()))
      problem.set_measured(problem.first_of(list_order(backends())), *seconds);
  }
  problem.choose_unit();
  return problem.seconds_of(problem.labels_of(problem.split_of(native), labels));
}

const CostProblem::Join* CostDecision::join_of(const PlacedCall& call, const std::string& label) const {
  const Expr plain = split_.plain_of(ref(&call.own));
  const auto* before = plain.as<relay::CallNode>();
  const bool is_piece = call.own.as_op() == nullptr && (before == nullptr || before->as_op() != nullptr);
  return choice_.problem->join_of(plain, is_piece, label, choice_.labels);
}

std::vector<LabelSeconds> CostDecision::costs_of(const PlacedCall& call) const {
  std::vector<LabelSeconds> costs = costs_.of(call.now);
  for (LabelSeconds& one : costs) {
    for (const PlanScale& scale : choice_.plan.scales) {
      if (scale.label == one.label) one.seconds *= scale.factor;
    }
    if (const CostProblem::Join* join = join_of(call, one.label))
      one.seconds = std::max(one.seconds - join->seconds_saved, 0.0);
  }
  return costs;
}

// Returns "the plan of least cost runs it here: 1.2 us by x, 3 us natively", the place that was chosen first. A plan
// that was taken though another costs less says so.
std::string CostDecision::least_cost(const PlacedCall& call, const std::string& chosen,
                                     std::vector<LabelSeconds> costs) const {
  const auto first =
      std::find_if(costs.begin(), costs.end(), [&](const LabelSeconds& one) { return one.label == chosen; });
  if (first != costs.end()) std::rotate(costs.begin(), first, first + 1);
  std::string text = "the plan of least cost runs it here:";
  if (choice_.plan.passed_over)
    text = fmt::format("the plan runs it here, since a cheaper one {}:",
                       choice_.plan.tried ? "took longer when it was tried" : "saves too little");
  for (const LabelSeconds& one : costs)
    text += fmt::format("{} {} {}", &one == costs.data() ? "" : ",", show_cost(one.seconds),
                        where_of(one.label, join_of(call, one.label)));
  return text;
}

// Returns "; the pattern own.both, which takes it, costs 2 us by own" for each instance that has an op, which the plan
// leaves to native code.
std::string CostDecision::costs_of_patterns(const PlacedCall& call) const {
  const auto found = instances_of_.find(split_.plain_of(ref(&call.own)).object());
  if (call.own.as_op() == nullptr || found == instances_of_.end()) return "";
  std::set<std::string> texts;
  for (const Instance* one : found->second) {
    for (const LabelSeconds& cost : costs_.of(*one->call.as<relay::CallNode>())) {
      if (cost.label != kNative)
        texts.insert(fmt::format("; the pattern {}, which takes it, costs {} by {}", one->name(),
                                 show_cost(cost.seconds), cost.label));
    }
  }
  return fmt::format("{}", fmt::join(texts, ""));
}

Verdict CostDecision::why(const PlacedCall& call, const std::string& backend) const {
  std::vector<LabelSeconds> costs = costs_of(call);
  const std::string patterns = backend == kNative ? costs_of_patterns(call) : "";
  if (backend == kNative && ((costs.size() == 1 && patterns.empty()) || !why_in_no_region(call.now).empty()))
    return why_native(call);
  std::string message = least_cost(call, backend, std::move(costs)) + patterns;
  if (call.now.as_op() == nullptr) message += fmt::format(", for all that its pattern {} matches", kind_of(call.now));
  return {.reason = HR_REASON_PLACE_BY_COST, .message = std::move(message)};
}

}  // namespace headrace::partition
