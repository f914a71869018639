// OpCosts: the seconds that each call of a program takes natively and on each of some backends.
#pragma once

#include "partition/rules.h"

namespace headrace::partition {

// The machine that a plan is for.
struct CostModel {
  cost::Machine machine = {};
  int threads = 1;
};

// One way to compute a call.
struct LabelSeconds {
  std::string label;  // "native", or the name of a backend
  double seconds = 0;
};

class OpCosts {
 public:
  OpCosts(Backends backends, CostModel model) : backends_(std::move(backends)), model_(std::move(model)) {}

  const Backends& backends() const { return backends_; }
  // Returns the costs of a typed call of an op or of a composite function: first natively, then on each backend that
  // takes it, in the order of the list. UserError for a backend whose cost is not a number of seconds from 0 to 1000.
  std::vector<LabelSeconds> of(const relay::CallNode& call) const;

 private:
  Backends backends_;
  CostModel model_;
};

// Returns "1.2 us" for 1.2e-6.
std::string show_cost(double seconds);

}  // namespace headrace::partition
