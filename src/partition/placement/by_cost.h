// Placement by cost: of all ways to spread the calls of a program over the native code and some backends, takes one
// whose calls and regions together cost least.
//
//   cost = seconds of each call where it runs (partition/placement/op_costs.h)
//        - what native code saves where the kernel of an operand computes a call, both native (FuseOps), and what a
//          backend saves in such a way within a region (Backend::saved)
//        + kBorderSeconds for each region and each value that it takes from outside and that is not a constant
//        + the changes of layout of each value that leaves a region or enters one: of the backends
//          (Backend::border), and of native code where a convolution makes the value or reads it
//
// Several consumers in one region share a border, and so do those in native code. Copies between devices would be paid
// in the same way; there is one device today, so they are free. The choice is a label problem (graph/labels.h), solved
// exactly unless the program is very entangled. It does not see that some calls with one label cannot be one region,
// since a path leaves and enters again, or nothing connects them. plan_search.h says how a plan is found that
// counts the borders of such regions: the best one where its bounded work suffices, as for nearly all programs of up
// to 65,536 plans. The lower bound holds for all plans.
//
// The space of plans: each call is native, or on a backend that takes it, or one of those that an instance of a
// backend's pattern computes (partition/instances.h). Each instance is taken by itself, whole or not at all: every
// match of each pattern, also one inside of a larger one, and what the whole list and each backend alone match one
// after another; of matches that share a call at most eight of each backend beside these. Layouts are no part of a
// plan: native code chooses its own later, and its border costs assume them. The lower bound holds for all plans of
// this space, which has the plans of the order of the list, of any single backend, and of native code alone; these are
// computed, too, and no plan that is taken costs more than one of them. Where costs are measured, the cheapest of those
// is taken unless the plan of least cost saves enough (OpCosts::least_saving): what single calls take does not add up
// to what a network takes. Where those plans were measured as wholes, they cost what they took, and all costs are
// scaled to that (plan_scales.h). Where the plan of least cost itself was tried, it costs what it took, and
// is taken if that is less than all of them.
#pragma once

#include "partition/decision.h"
#include "partition/plan_cost.h"
#include "partition/placement/plan_scales.h"

namespace headrace::partition {

// Calling a region and handing a value over: an estimate, not measured for a backend.
inline constexpr double kBorderSeconds = 1e-6;

// The name of the plan of the order of the list; no backend can have it.
inline constexpr const char* kListOrder = "list order";

// Returns splits of the main of a typed module into calls, in which each call that a plan can have stands: without
// instances, by the patterns of the whole list, by those of each backend alone, and with all other instances.
std::vector<IRModule> splits_of(const IRModule& module, const Backends& backends);

// The best plan of a module.
struct CostChoice {
  std::shared_ptr<const CostProblem> problem;
  std::vector<int32_t> labels;  // by node of the problem
  CostProblem::Split split;     // the program with the instances that the plan takes
  PlanCost plan;
};

// Each call goes where the plan of least cost has it.
class CostDecision : public Decision {
 public:
  // Finds the plan for the main of a typed module. module() has the instances that the plan takes as calls. UserError
  // as OpCosts::of. Deterministic; no recursion.
  CostDecision(const IRModule& module, OpCosts costs);

  const PlanCost& plan() const { return *cost_; }
  // Returns the plan in which the calls of a split of the program, as module() or another one, are on these backends,
  // which take them.
  PlanCost plan_of(const IRModule& split, const Labels& labels) const;

  std::optional<PlanCost> cost_of(const IRModule& split, const Labels& labels) const override {
    return plan_of(split, labels);
  }
  Verdict why(const PlacedCall& call, const std::string& backend) const override;
  // Seconds are those in the kernel or the region of an operand, where the plan has one that computes the call as well.
  std::vector<LabelSeconds> costs_of(const PlacedCall& call) const override;

 private:
  double seconds_of_other(const IRModule& split, const Labels& labels) const;
  const CostProblem::Join* join_of(const PlacedCall& call, const std::string& label) const;
  std::string costs_of_patterns(const PlacedCall& call) const;
  std::string least_cost(const PlacedCall& call, const std::string& chosen, std::vector<LabelSeconds> costs) const;

  OpCosts costs_;
  CostChoice choice_;  // whose program is module(), and whose plan is cost()
  Composition split_;  // the program as the plan has it
  std::unordered_map<const Object*, std::vector<const Instance*>> instances_of_;  // by the program's calls of ops
};

}  // namespace headrace::partition
