// Breaks up pieces that patterns matched: their ops are calls of their own again.
//
//   fn (%a, Composite="x.exp_tan") { tan(exp(%a)) }(%x)   ->   tan(exp(%x))
#pragma once

#include <functional>
#include <set>
#include <unordered_map>

#include "partition/decision.h"

namespace headrace::partition {

struct BrokenUp {
  IRModule module;
  // Each call that for_each_decided_call() visits, by the call of the given module that became it.
  std::unordered_map<const Object*, const relay::CallNode*> now;
  // The ops of each piece that was broken up, in the order of evaluation, by its call in the given module.
  std::unordered_map<const Object*, std::vector<const relay::CallNode*>> parts;
};

// Breaks up the pieces that these calls of the main of a typed module compute. Types and places of ops stay. Uses no
// recursion.
BrokenUp break_up(const IRModule& module, const std::set<const Object*>& pieces);

// Returns the body of a typed function with these arguments in place of its parameters. Types and places stay.
// `on_call`, unless null, gets each call of the result that stands in the body, operands first.
Expr body_with(const relay::FunctionNode& function, const Array<Expr>& args,
               const std::function<void(const relay::CallNode&)>& on_call = {});

// Returns the calls of ops in the piece that a call computes, in the order of evaluation; none for another call.
std::vector<const relay::CallNode*> parts_of(const relay::CallNode& call);

}  // namespace headrace::partition
