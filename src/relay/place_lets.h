// Binding the nodes of a graph by lets, each in the innermost scope that holds all its uses.
//
// This is also when a node is evaluated, which shows where it has effects: what two branches or two closures share is
// evaluated once, before the `if` or the functions; what one of them uses, inside it. So the interpreter runs a program
// with what crosses a branch bound, and the normal forms compute what it does.
#pragma once

#include <functional>

#include "relay/expr.h"

namespace headrace::relay {

enum class Bind : uint8_t {
  everything,       // every operation: administrative normal form
  across_branches,  // what is used by an inner function, branch or clause, or by several: basic block normal form;
                    // and, of what has effects or sees them, what a let in braces shares with what is around it,
                    // and what must be evaluated before another that is bound
};

// `body` with those of its nodes bound that `bind` says. Operands are bound before their users, in the order of
// evaluation; a let that is an operand becomes part of the enclosing chain when everything is bound. The bodies of
// functions that no walk enters (relay/function_attrs.h) stay as they are. Keeps what is computed, and the order of
// effects.
Expr place_lets(const Expr& body, Bind bind);

// `body` with the order of its effects in its lets alone, for who drops operands or lets, or puts lets around operands:
// else a node that is shared is evaluated where its first use is, or before the braces that its uses are in and beside,
// and that moves. Where an expression of which `has_effect` (an effect, or seeing one; its users too) has two users or
// is a let in braces, all that has one of itself is bound, in the order of evaluation, so that what is made of it has
// none. `body` itself where there is no such expression.
Expr bind_effects(const Expr& body, const std::function<bool(const Expr&)>& has_effect);

}  // namespace headrace::relay
