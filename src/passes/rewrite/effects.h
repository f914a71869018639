// Computes which expressions of a module have side effects. A pass that drops, repeats or moves operands asks first.
//
// How it works: a node has an effect of its own when it writes a reference, calls a stateful op, or calls a function
// that is not known (and, if asked, when it reads or makes a reference). Effects then flow along two kinds of edges,
// from a node to its users and from a function's body to the calls of that function, until nothing changes. A function
// literal stops the flow, because making a function runs nothing. Each node is marked at most once, so the flow is
// linear and handles recursion. A module without references and stateful ops, as most models are, costs one walk.
#pragma once

#include <unordered_set>

#include "relay/expr.h"

namespace headrace::passes {

class Effects {
 public:
  // Makes the effects of a module in which no expression has any.
  Effects() = default;
  // Computes the effects of a module. With `reads`, reading and making a reference count, too, because their results
  // depend on when they are evaluated.
  explicit Effects(const IRModule& module, bool reads = false);
  // Returns whether evaluating `expr`, a node of the module's functions, may write a reference, call a stateful op, or
  // call something unknown. Making a function has no effect, whatever its body does. The constructor does the work,
  // linear in the module.
  bool of(const Expr& expr) const { return effectful_.contains(expr.object()); }
  // Returns whether no expression has an effect.
  bool empty() const { return effectful_.empty(); }

 private:
  std::unordered_set<const Object*> effectful_;
};

// A module in which the lets alone determine the order of effects (bind_effects in relay/place_lets.h). A pass may then
// drop or move expressions without `effects`, or put lets around operands, and the order of all effects stays.
struct InOrder {
  IRModule module;
  Effects effects;  // effects of its nodes; reading and making a reference count
  // Returns the effects that do more than read or make a reference.
  Effects writes() const { return effects.empty() ? Effects() : Effects(module); }
};
// Returns the module itself where nothing had to be bound. The result is typed if the module was.
InOrder in_order(const IRModule& module);

}  // namespace headrace::passes
