// PlanDecider: what a plan says, which people write (plan.h).
#pragma once

#include "partition/decider.h"
#include "partition/plan.h"

namespace headrace::partition {

// A call that a plan has a row for.
struct NamedCall {
  const relay::CallNode* call;
  std::string name;  // its place in the model, without the folder of a file; alone of its kind
  std::string kind;
};
// Returns the calls that a decider decides on, in the order of evaluation.
std::vector<NamedCall> named_calls(const IRModule& module);

// Returns the plan of what `decider` says of the module. The caller adds the model's hash and inputs.
Plan make_plan(const IRModule& module, const Backends& backends, Decider& decider);

// Returns whether the plan has a row for each call of the module, and no other rows.
bool has_rows_of(const Plan& plan, const IRModule& module);

// Returns the module with the pieces broken up that the plan has no row for (break_up.h).
IRModule without_pieces_beside(const Plan& plan, const IRModule& module);

// Throws UserError at the place in `plan` that is out of date: another version of a backend, another model, with what
// changed, or other measured costs. `now` is any plan of the model and of backends of these names as they are; its
// costs are compared if it has any.
void check_is_current(const Plan& plan, const Plan& now);

// Each call goes where a plan says. decide() throws UserError at the row for an op that the module does not have, or
// that its backend does not take, with the reason; and for an op that the plan leaves out.
class PlanDecider : public Decider {
 public:
  PlanDecider(Plan plan, Backends backends) : plan_(std::move(plan)), backends_(std::move(backends)) {}
  const Backends& backends() const override { return backends_; }
  Labels decide(const IRModule& module) override;
  Verdict why(const relay::CallNode& call, const std::string& backend) const override;
  Verdict why_in_plan(const relay::CallNode& call, const std::string& backend) const override;

 private:
  void check_names(const std::vector<NamedCall>& calls) const;
  void check_row(const PlannedOp& row, const relay::CallNode& call) const;

  Plan plan_;
  Backends backends_;
  std::unordered_map<const Object*, size_t> rows_;  // by the call that decide() met
};

}  // namespace headrace::partition
