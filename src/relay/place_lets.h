// Binds nodes of a graph by lets, each in the innermost scope that holds all its uses.
//
// Placement also defines when a node is evaluated, which matters for effects. A node that two branches or two closures
// share is evaluated once, before the `if` or the functions; a node that only one of them uses is evaluated inside it.
// The interpreter binds the nodes that cross a branch before it runs a program, and the normal forms compute the same.
//
// How it works: scopes.h computes the scope tree and the innermost common scope of all uses of each node. One walk in
// post order then rebuilds the nodes. A node to be bound is replaced by a new variable and appended to the list of lets
// of its scope; when the walk finishes the node that opens a scope, the list becomes a chain of lets around the scope's
// result. Post order is the order of evaluation, so operands are bound before their users without any sorting, and the
// walk needs no recursion and linear time.
//
// Effects restrict the choice. Binding a node moves it, with its operands, in front of the rest of its scope. So once a
// node with effects is bound, every node with effects that came before it in that scope is bound, too (keep_order).
#pragma once

#include <functional>

#include "relay/expr.h"

namespace headrace::relay {

enum class Bind : uint8_t {
  // Binds every operation: administrative normal form.
  everything,
  // Constants, too.
  everything_and_constants,
  // Binds values used in another function, branch or clause than the one that computes them: basic block normal form.
  // Also binds nodes with effects that are shared between a let in braces and its surroundings, or that must be
  // evaluated before another bound node.
  across_branches,
};

// Returns `body` with the nodes bound that `bind` selects. Operands are bound before their users, in the order of
// evaluation. When everything is bound, a let that is an operand joins the chain around it. Bodies of functions that
// passes do not enter (relay/function_attrs.h) stay as they are. Preserves results and the order of effects.
Expr place_lets(const Expr& body, Bind bind);

// Returns `body` with lets that alone determine the order of its effects. Call before removing or hoisting operands, or
// putting lets around them: it binds every shared effectful node, so that later rewrites cannot change evaluation
// order. (Without such a let a shared node is evaluated at its first use, or before the braces that use it, and
// removing that use moves the effect.)
//
// `has_effect` tells for each expression, users included, whether it has or observes an effect. Where such an
// expression has two users, or is a let in braces, every expression with an effect of its own is bound in the order of
// evaluation. Returns `body` itself where there is no such expression.
Expr bind_effects(const Expr& body, const std::function<bool(const Expr&)>& has_effect);

}  // namespace headrace::relay
