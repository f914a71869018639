// Deciders: who says which backend computes each call of a program. Placement (place.h) makes regions of what a decider
// says, and rows with its reasons. This one goes by the order of a list; that of placement/by_cost.h takes the plan of
// least cost, and that of plan_file/plan_decider.h what people write.
//
//   backends ccompiler, other:   add(nn.softmax(%x), %y)   ->   nn.softmax: other; add: ccompiler
#pragma once

#include <functional>

#include "partition/extract.h"
#include "partition/rules.h"

namespace headrace::partition {

// One way to compute a call.
struct LabelSeconds {
  std::string label;  // "native", or the name of a backend
  double seconds = 0;
};

// A call of a program that placement has made regions in.
struct PlacedCall {
  PlacedCall(const relay::CallNode& one) : PlacedCall(one, one) {}  // implicit, for calls that have not changed
  PlacedCall(const relay::CallNode& made, const relay::CallNode& before) : now(made), own(before) {}

  const relay::CallNode& now;
  // The call that became it, of the module that decide() got or inside of one of its composite functions; `now` where
  // there is none, since a backend's hook made it.
  const relay::CallNode& own;
};

class Decider {
 public:
  virtual ~Decider() = default;
  // Returns the backends that decide() may name.
  virtual const Backends& backends() const = 0;
  // Returns the backend of each call of a typed module (for_each_decided_call) that is not native.
  virtual Labels decide(const IRModule& module) = 0;
  // Returns why a call of an op or of a composite function is on `backend`, which may be native.
  virtual Verdict why(const PlacedCall& call, const std::string& backend) const = 0;
  // Returns why a call of the module that decide() got is on `backend`, as a plan of these decisions says it.
  virtual Verdict why_in_plan(const relay::CallNode& call, const std::string& backend) const {
    return why(call, backend);
  }
  // Returns the seconds of a call natively and on each backend that takes it; nothing where costs do not decide.
  virtual std::vector<LabelSeconds> costs_of(const PlacedCall& call) const {
    (void)call;
    return {};
  }

  // Matches that backends refused, by the calls of the module that decide() gets and those inside of its composite
  // functions, where they are known: why() says so.
  PatternRefusals refusals = {};
};

// Each call goes to the first backend of a list that takes it.
class OrderDecider : public Decider {
 public:
  explicit OrderDecider(Backends backends) : backends_(std::move(backends)) {}
  const Backends& backends() const override { return backends_; }
  Labels decide(const IRModule& module) override;
  Verdict why(const PlacedCall& call, const std::string& backend) const override;

 private:
  Backends backends_;
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
