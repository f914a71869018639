// OpCosts: the seconds that each call of a program takes natively and on each of some backends.
#pragma once

#include "cost/machine.h"
#include "partition/decision.h"
#include "partition/placement/cost_table.h"

namespace headrace::partition {

// The machine that a plan is for.
struct CostModel {
  cost::Machine machine = {};
  int threads = 1;
  std::shared_ptr<const CostTable> measured = {};  // null: all costs are estimates
  std::string model = {};                          // the hash by which `measured` knows whole plans; empty: no plans
  // The plan of least cost is wanted whatever it saves, also where one was tried (driver/profile.h).
  bool is_trial = false;
};

class OpCosts {
 public:
  // UserError for measured costs, of calls or of whole plans, of another version of a backend, or of Headrace.
  OpCosts(Backends backends, CostModel model);

  const Backends& backends() const { return backends_; }
  // Returns the costs of a typed call of an op or of a composite function: first natively, then on each backend that
  // takes it, in the order of the list: measured ones where there are, else those of the backend or the estimate of
  // native code. Where native code was measured and a backend was not, the backend's estimate is for a machine as fast
  // as the measured one: it is multiplied by what native code took, by what it was estimated to take. A composite
  // function costs natively what its ops cost as they are joined to kernels. A backend was measured with a region of
  // the one call, and a native convolution in a program by itself, so of their seconds the share that borders have by
  // the estimates is left out. UserError for a backend whose cost is not a number of seconds from 0 to 1000.
  std::vector<LabelSeconds> of(const relay::CallNode& call) const;
  // Returns the seconds that the call of an op costs less natively where the kernel of `producer` computes it, an
  // operand that nothing else uses: an estimate, as a share of the call's measured seconds where there are any.
  double saved(const relay::CallNode& producer, const relay::CallNode& call) const;
  // Returns the seconds that a call costs less on a backend whose region also computes `producers`, as
  // Backend::saved() has it: an estimate, as a share of the call's measured seconds where there are any.
  double saved(const partition::Backend& backend, const relay::CallNode& call,
               const std::vector<const relay::CallNode*>& producers) const;
  // Returns the seconds that a value of this type takes to enter or to leave a region of a backend: 0 where the backend
  // says NaN or a number below 0, and at most 1000.
  double border(const partition::Backend& backend, const Type& type) const;
  // Returns the seconds that native code takes to change the layout of a value of this type: what it does at a region's
  // border where convolutions work in blocks of channels. 0 for what is not a tensor of four axes or more.
  double native_border(const Type& type) const;
  // Returns the seconds that the model takes natively (no backends), or placed by the order of a list of backends;
  // nothing when that was not measured.
  std::optional<double> whole(const Backends& list) const;
  // Returns the seconds that the plan of that name took when it was tried; nothing when it was not.
  std::optional<double> tried(const std::string& plan) const;
  // Returns whether native code alone and each backend alone were measured as whole plans.
  bool has_whole_plans() const;
  // Returns the share of the cheapest plan made without costs that a plan which mixes places must save to be taken.
  double least_saving() const;
  // Returns where the costs of the calls of a typed module, and of calls of these matches of patterns in it, come from,
  // as a phrase.
  std::string source(const IRModule& module, const std::vector<const relay::CallNode*>& matches) const;

 private:
  void check_versions() const;
  const MeasuredCost* find_plan(const std::string& plan) const;
  std::optional<double> measured(const relay::CallNode& call, const std::string& label) const;
  double native(const relay::CallNode& call) const;
  double native_by_estimate(const relay::CallNode& call) const;
  double on_backend(const partition::Backend& backend, const relay::CallNode& call) const;

  Backends backends_;
  CostModel model_;
};

// Returns the plans that are made without costs, as lists in whose order calls are placed: none for native code alone,
// each backend by itself, and then all of them, if there are several.
std::vector<Backends> simple_plans(const Backends& backends);

// Return what a table of costs calls the plan of the order of these backends and its version: "native" and the version
// of Headrace for none, else "onednn,ccompiler" and "2, oneDNN 2.6.3,1".
std::string plan_name(const Backends& list);
std::string plan_version(const Backends& list);

// Returns what a table calls a plan of least cost over these backends, which has plan_version() of them: "onednn by
// cost 1f0c...". The hash is of its placement.
std::string tried_plan_name(const Backends& list, const std::string& hash);

// Removes the costs, of calls and of whole plans, by other versions of native code and of these backends.
void drop_other_versions(CostTable& table, const Backends& backends);

// Returns "1.2 us" for 1.2e-6.
std::string show_cost(double seconds);

}  // namespace headrace::partition
