// Walks over expressions with an explicit stack: a graph of 10^5 nodes in a chain needs no more stack than one node.
//
// Evaluation order of the children: a call's callee, then its arguments; a let's value, variable, body; a function's
// parameters, then its body; an if's condition, true branch, false branch; a match's data, then each clause's pattern
// variables and right-hand side. Scopes are entered: function bodies, branches and clauses are visited too.
// A shared node is visited once. Types, attributes, ops' own fields and constructors' types are not children.
#pragma once

#include <functional>

#include "relay/expr.h"

namespace headrace::relay {

// Returns the direct children of `expr` in evaluation order, binders included.
std::vector<Expr> children_of(const Expr& expr);

// Returns the variables that a pattern binds, left to right.
std::vector<Var> pattern_vars(const Pattern& pattern);

// Calls `visit` once for every node reachable from `root`, children first.
void post_order(const Expr& root, const std::function<void(const Expr&)>& visit);

// Visits in post order, but a node for which `enter` is false is visited without its children (unless they are reached
// in another way).
void post_order(const Expr& root, const std::function<bool(const Expr&)>& enter,
                const std::function<void(const Expr&)>& visit);

// Returns `expr` with other children, in the order of children_of; `expr` itself when all are the same. A binder
// (parameter, let variable, pattern variable) stays as it is where its replacement is not a Var. Span, attributes, type
// arguments and declared types stay.
Expr with_children(const Expr& expr, const std::vector<Expr>& children);

// Rebuilds `root` from its leaves: `rewrite(before, after)` gets each node once, as it was and with its children
// rewritten (the same pointer when none changed), and gives what replaces it. The result is `root` itself when nothing
// changed. An inlined let variable: map the Var to its value and the Let to its body.
Expr rewrite_post_order(const Expr& root, const std::function<Expr(const Expr& before, const Expr& after)>& rewrite);

// Rewrites with `enter`: a node for which it is false is passed to `rewrite` with nothing below it rewritten, except
// that nodes shared with its surroundings, such as captured variables, are replaced.
Expr rewrite_post_order(const Expr& root, const std::function<bool(const Expr&)>& enter,
                        const std::function<Expr(const Expr& before, const Expr& after)>& rewrite);

// Returns the variables that occur in `expr` and are bound outside of it, in order of first occurrence.
std::vector<Var> free_vars(const Expr& expr);
// Returns all variables that occur in `expr`, binders included, in order of first occurrence.
std::vector<Var> all_vars(const Expr& expr);

}  // namespace headrace::relay
