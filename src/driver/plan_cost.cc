#include "driver/plan_cost.h"

#include <algorithm>
#include <numeric>

#include "partition/cost_problem.h"

namespace headrace::driver {

namespace {

// Native code and the order of the list cost what they took as wholes, where these were measured.
void use_whole_plans(partition::CostProblem& problem, const partition::OpCosts& costs) {
  if (const auto seconds = costs.whole({})) problem.set_measured(problem.first_of({partition::kNativeLabel}), *seconds);
  std::vector<int32_t> order(costs.backends().size());
  std::iota(order.begin(), order.end(), partition::kNativeLabel + 1);
  if (const auto seconds = costs.whole(costs.backends())) problem.set_measured(problem.first_of(order), *seconds);
}

}  // namespace

double seconds_of(const Placing& placing, const partition::OpCosts& costs, const partition::PlanCost& plan) {
  constexpr double kPicoseconds = 1e12, kMaxSum = 0x1p58;  // a unit in which sums stay in the range of label costs
  partition::CostProblem problem(placing.module, costs);
  std::vector<double> factors;
  for (const partition::PlanScale& scale : plan.scales) factors.push_back(scale.factor);
  if (!factors.empty()) {
    problem.scale(factors);
    use_whole_plans(problem, costs);
  }
  problem.set_unit(std::min(kPicoseconds, kMaxSum / std::max(problem.most_seconds(), 1 / kPicoseconds)));
  const auto split = problem.split_of(problem.first_of({partition::kNativeLabel}));  // the program as it is
  return problem.seconds_of(problem.labels_of(split, placing.decider->decide(placing.module)));
}

partition::PlanCost cost_of(const IRModule& canonical, const Placing& placing, const CompileOptions& options) {
  if (!placing.costs_hash.empty() && options.costs.empty())
    throw_user_error("the plan was made by measured costs; give their file by --costs");
  const partition::OpCosts costs =
      op_costs(placing.backends, options, options.costs.empty() ? "" : model_hash(canonical));
  partition::PlanCost plan = partition::CostDecider(canonical, costs).plan();
  plan.seconds = seconds_of(placing, costs, plan);
  plan.lower_bound = std::min(plan.lower_bound, plan.seconds);
  return plan;
}

}  // namespace headrace::driver
