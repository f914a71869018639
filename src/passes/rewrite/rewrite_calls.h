// Calls of ops become what functions that users set on the ops make of them.
//
// An argument with an effect, or that depends on when it is evaluated, is bound by a let before: the function may use
// it any number of times. Such expressions that are shared or in braces are bound before (effects.h, in_order). What a
// function gives is not rewritten again, so that it may hold a call of the same op; it is copied with the span of the
// call where it has none: the function may keep what it gave.
#pragma once

#include <functional>

#include "ir/module.h"
#include "relay/expr.h"

namespace headrace::passes {

// `call` with its arguments and attributes as they are now, alone; `types` are those of its arguments, then that of its
// result. Null: the call stays.
using CallRewriteFn = std::function<Expr(const relay::CallNode& call, const Array<Type>& types)>;

struct CallRewrites {
  std::string_view what;  // "legalisation", for messages
  std::string_view attr;  // the op's attribute that says it
  // What rewrites the op's calls; empty: nothing does.
  std::function<CallRewriteFn(const OpNode& op)> find;
};

// Needs types, and gives a module that has them; the module itself when nothing changed. What a function gives must be
// what the call gives: UserError that names the op and both types where they are known to differ, and one that names
// the ops where the program has no type or a function's type changes.
IRModule rewrite_calls(const IRModule& module, const CallRewrites& rewrites);

// The expression that such a function of another language gave for `call`; null for None. UserError for anything else.
Expr given_expression(const Value& result, const relay::CallNode& call, std::string_view what);

}  // namespace headrace::passes
