// PlanCost: seconds of a placement of a program, and of others that it is compared with.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace headrace::partition {

// One way to compute a call.
struct LabelSeconds {
  std::string label;  // "native", or the name of a backend
  double seconds = 0;
};

// The factor of the costs of one place (placement/plan_scales.h).
struct PlanScale {
  std::string label;  // "native", or the name of a backend
  double factor = 1;  // for its seconds
  double fitted = 1;  // the factor before it was limited to bounds

  bool is_limited() const { return factor != fitted; }
};

struct PlanCost {
  // By which tables of costs know the plan: one of simple_plans(), or one by cost. Empty for plans that are not chosen
  // by costs alone.
  std::string name = {};
  double seconds = 0;
  double lower_bound = 0;  // no plan costs less
  std::string source;      // where the costs of calls are from, as a phrase: "estimated by the sizes of tensors"
  // The costs of other plans: "native", each backend by its name, and kListOrder.
  std::vector<LabelSeconds> others;
  // The seconds that the plan of least cost took when it was tried; nothing when it was not.
  std::optional<double> tried = {};
  // The seconds of a cheaper plan that was not taken: since it was tried and took too long, or since it saves too
  // little (OpCosts::least_saving).
  std::optional<double> passed_over = {};
  // The factors of the costs of native code and of each backend. Empty: no whole plans were measured.
  std::vector<PlanScale> scales = {};

  double gap() const { return seconds - lower_bound; }
};

}  // namespace headrace::partition
