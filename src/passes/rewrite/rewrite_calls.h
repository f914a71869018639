// Replaces calls of ops by the results of functions that users set on the ops.
//
// An argument with an effect, or one that depends on when it is evaluated, is bound by a let first, because the
// function may use it any number of times. Such expressions that are shared or in braces are bound before (effects.h,
// in_order). The result of a function is not rewritten again, so it may contain a call of the same op. It is copied,
// with the span of the call where it has none, because the function may keep it.
#pragma once

#include <functional>

#include "ir/module.h"
#include "relay/expr.h"

namespace headrace::passes {

// Rewrites one call, given with its current arguments and attributes; `types` are those of its arguments, then that of
// its result. Returns null to leave the call.
using CallRewriteFn = std::function<Expr(const relay::CallNode& call, const Array<Type>& types)>;

struct CallRewrites {
  std::string_view what;  // "legalisation", for messages
  std::string_view attr;  // the op's attribute that says it
  // Returns the function that rewrites the op's calls; empty for none.
  std::function<CallRewriteFn(const OpNode& op)> find;
};

// Rewrites a typed module and returns a typed one; the module itself when nothing changed. A function's result must
// have the type of the call. UserError that names the op and both types where they are known to differ, and one that
// names the ops where the program cannot be typed or a function's type changes.
IRModule rewrite_calls(const IRModule& module, const CallRewrites& rewrites);

// Returns the expression that a function of another language returned for `call`; null for None. UserError for any
// other value.
Expr given_expression(const Value& result, const relay::CallNode& call, std::string_view what);

}  // namespace headrace::passes
