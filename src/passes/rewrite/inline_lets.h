// Lets that become their values.
#pragma once

#include <functional>

#include "passes/rewrite/effects.h"
#include "relay/expr.h"

namespace headrace::passes {

// Replaces variables of lets by their values:
//
//   let %a = exp(%x);       ->   add(exp(%x), exp(%x))      one node, used twice
//   add(%a, %a)
//
// `effects` are those of a module in order (effects.h). Inlines the lets for which `may_go` is true, except: a value
// with an effect, which must stay in its place; a value that uses its own variable; a variable whose written type may
// be the only source of a constructor's or generic function's type arguments; and a variable used in a function whose
// body passes leave as it is (relay::is_entered).
Expr inline_lets(const Expr& body, const Effects& effects, const std::function<bool(const relay::LetNode&)>& may_go);

}  // namespace headrace::passes
