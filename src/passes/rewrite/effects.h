// Which expressions of a module do more than give a value: a pass that drops, repeats or moves operands asks before.
#pragma once

#include <unordered_set>

#include "relay/expr.h"

namespace headrace::passes {

class Effects {
 public:
  // As if nothing had any.
  Effects() = default;
  // Reading and making a reference count too when `reads`: what depends on when it is evaluated.
  explicit Effects(const IRModule& module, bool reads = false);
  // Evaluating `expr`, a node of the module's functions, may write a reference, call a stateful op, or call something
  // that is not known. Making a function has no effect, whatever its body does. Linear in the module, once.
  bool of(const Expr& expr) const { return effectful_.contains(expr.object()); }
  // No expression has any.
  bool empty() const { return effectful_.empty(); }

 private:
  std::unordered_set<const Object*> effectful_;
};

// A module whose bodies have their effects in order (relay/place_lets.h, bind_effects): a pass that drops or moves what
// has none of `effects`, or puts lets around operands, keeps the order of all others.
struct InOrder {
  IRModule module;
  Effects effects;  // of its nodes; reading and making a reference count
  // Those of them that are more than reading.
  Effects writes() const { return effects.empty() ? Effects() : Effects(module); }
};
// The module itself where nothing had to be bound. Typed if it was.
InOrder in_order(const IRModule& module);

}  // namespace headrace::passes
