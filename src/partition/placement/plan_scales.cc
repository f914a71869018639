#include "partition/placement/plan_scales.h"

#include <algorithm>

#include "partition/place.h"

namespace headrace::partition {

namespace {

constexpr double kLeastSeconds = 1e-12;  // costs are counted in picoseconds

PlanScale scale_of(const std::string& label, double measured, double sum) {
  const double fitted = sum < kLeastSeconds ? 1 : measured / sum;
  return {.label = label, .factor = std::clamp(fitted, kLeastScale, kMostScale), .fitted = fitted};
}

}  // namespace

std::vector<PlanScale> fit_scales(const CostProblem& problem, const std::vector<std::vector<int32_t>>& alone,
                                  const OpCosts& costs) {
  if (!costs.has_whole_plans()) return {};
  std::vector<PlanScale> scales{
      scale_of(kNative, *costs.whole({}), problem.seconds_by_backend(problem.first_of({0})).front())};
  for (size_t i = 0; i < alone.size(); ++i) {
    const auto& backend = costs.backends()[i];
    const std::vector<double> sums = problem.seconds_by_backend(alone[i]);
    const double native = sums.front() * scales.front().factor;
    scales.push_back(scale_of(std::string(backend->name()), *costs.whole({backend}) - native, sums[i + 1]));
  }
  return scales;
}

}  // namespace headrace::partition
