// Decision: which backend computes each call of a program, with reasons and costs. Placement (place.h) makes regions of
// it, and rows with its reasons. This one goes by the order of a list; that of placement/by_cost.h takes the plan of
// least cost, and that of plan_file/plan_decision.h what people write.
//
//   backends ccompiler, other:   add(nn.softmax(%x), %y)   ->   nn.softmax: other; add: ccompiler
#pragma once

#include <functional>
#include <unordered_map>

#include "partition/extract.h"
#include "partition/plan_cost.h"
#include "partition/rules.h"

namespace headrace::partition {

// A call of a program that placement has made regions in.
struct PlacedCall {
  PlacedCall(const relay::CallNode& one) : PlacedCall(one, one) {}  // implicit, for calls that have not changed
  PlacedCall(const relay::CallNode& made, const relay::CallNode& before) : now(made), own(before) {}

  const relay::CallNode& now;
  // The call that became it, of the module that was decided on or inside of one of its composite functions; `now`
  // where there is none, since a backend's hook made it.
  const relay::CallNode& own;
};

// A decision is made when it is constructed, and does not change.
class Decision {
 public:
  virtual ~Decision() = default;
  Decision(const Decision&) = delete;
  Decision& operator=(const Decision&) = delete;

  // Returns the typed module that was decided on: a split of the program.
  const IRModule& module() const { return module_; }
  // Returns the backends that labels() may name, in the order of their priority.
  const Backends& backends() const { return backends_; }
  // Returns the backend of each call of module() (for_each_decided_call) that is not native.
  const Labels& labels() const { return labels_; }
  // Returns the matches that backends refused, by the calls of module() and those inside of its composite functions,
  // where they are known.
  const PatternRefusals& refusals() const { return refusals_; }
  // Returns the costs by which it was made; nothing where costs do not decide.
  const std::optional<PlanCost>& cost() const { return cost_; }

  // Returns why a call of an op or of a composite function is on `backend`, which may be native.
  virtual Verdict why(const PlacedCall& call, const std::string& backend) const = 0;
  // Returns why a call of module() is on `backend`, as a plan of this decision says it.
  virtual Verdict why_in_plan(const relay::CallNode& call, const std::string& backend) const {
    return why(call, backend);
  }
  // Returns the seconds of a call natively and on each backend that takes it; nothing where costs do not decide.
  virtual std::vector<LabelSeconds> costs_of(const PlacedCall& call) const {
    (void)call;
    return {};
  }
  // Returns what another split of the program with these labels costs, by the costs of this decision; nothing where
  // costs do not decide.
  virtual std::optional<PlanCost> cost_of(const IRModule& split, const Labels& labels) const {
    (void)split, (void)labels;
    return {};
  }
  // Returns whether the backend of that number in backends() takes a call, and why not. A decision by order does not
  // ask it again about a call that it decided on.
  Verdict verdict_on(const PlacedCall& call, size_t backend) const;

 protected:
  Decision(IRModule module, Backends backends) : module_(std::move(module)), backends_(std::move(backends)) {}

  // Returns why no backend takes a call, with the reason of the first.
  Verdict why_native(const PlacedCall& call) const;

  IRModule module_;
  Backends backends_;
  Labels labels_ = {};
  PatternRefusals refusals_ = {};
  std::optional<PlanCost> cost_ = {};
  // Verdicts of the first backends on calls of the module, where the decision asked for them.
  std::unordered_map<const Object*, std::vector<Verdict>> verdicts_ = {};
};

// Each call goes to the first backend of a list that takes it.
class OrderDecision : public Decision {
 public:
  OrderDecision(const IRModule& module, Backends backends, PatternRefusals refusals = {});
  Verdict why(const PlacedCall& call, const std::string& backend) const override;
};

// Calls `visit` with each call of main that can be on a backend of its own, in the order of evaluation: calls of ops
// and of composite functions, outside of functions that passes do not enter.
void for_each_decided_call(const IRModule& module, const std::function<void(const relay::CallNode&)>& visit);

// Calls `visit` with those of them that a region can hold.
void for_each_placeable(const IRModule& module, const std::function<void(const relay::CallNode&)>& visit);

// Returns where a call stands in the model, or the name of its op or composite function where that is not known.
std::string place_of(const relay::CallNode& call);
// Returns place_of() without the folder of a file: a plan is the same wherever the file lies.
std::string short_place_of(const relay::CallNode& call);
// Returns the name of the op, or of the composite function, that is called.
std::string kind_of(const relay::CallNode& call);

// Returns why no region can hold the call; empty when one can.
std::string why_in_no_region(const relay::CallNode& call);

// Returns why the backend cannot have the call; empty when it can.
std::string refusal_of(const Backend& backend, const relay::CallNode& call);

// Returns the backend of the list that has this name or alias; null where none has.
const Backend* find_in(const Backends& backends, const std::string& name);

}  // namespace headrace::partition
