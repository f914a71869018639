// PlanDecision: a decision by a plan, which people write (plan.h).
#pragma once

#include "partition/decision.h"
#include "partition/plan_file/plan_names.h"

namespace headrace::partition {

// Returns the plan of a decision on a split of the program whose names these are. An op that several calls of the split
// compute has the row of the first one. The caller adds the model's hash and inputs.
Plan make_plan(const PlanNames& names, const Decision& decision);

// Returns a plan of the program whose names these are, in which all its ops are native.
Plan make_native_plan(const PlanNames& names, const Backends& backends);

// Throws UserError at the place in `plan` that is out of date: another version of a backend, another model, with what
// changed, or other measured costs. `now` is any plan of the model and of backends of these names as they are; its
// costs are compared if it has any.
void check_is_current(const Plan& plan, const Plan& now);

// Each call goes where a plan says.
class PlanDecision : public Decision {
 public:
  // `module`: the split that the plan has rows for (plan_pieces.h) of the program whose names these are. UserError at
  // the row for an op that the module does not have, or that its backend does not take, with the reason; and for an op
  // that the plan leaves out.
  PlanDecision(const IRModule& module, Plan plan, Backends backends, const PlanNames& names,
               PatternRefusals refusals = {});
  Verdict why(const PlacedCall& call, const std::string& backend) const override;
  Verdict why_in_plan(const relay::CallNode& call, const std::string& backend) const override;

 private:
  void check_names(const std::vector<NamedCall>& calls) const;
  void check_is_no_part(const PlannedOp& row) const;
  void check_row(const PlannedOp& row, const relay::CallNode& call) const;

  Plan plan_;
  std::unordered_map<const Object*, size_t> rows_;  // by the calls of the module
};

}  // namespace headrace::partition
