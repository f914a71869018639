// Lets that become their values.
#pragma once

#include <functional>

#include "passes/rewrite/effects.h"
#include "relay/expr.h"

namespace headrace::passes {

//   let %a = exp(%x);       ->   add(exp(%x), exp(%x))      one node, used twice
//   add(%a, %a)
//
// `effects` are of a module whose effects are in order. Those that `may_go` says, but for: a value with an effect,
// which is evaluated where it stands; a value that holds its own variable; a variable whose written type may be all
// that says what a constructor or a generic function is of; and one that stands in a function whose body passes leave
// as it is (relay::is_entered).
Expr inline_lets(const Expr& body, const Effects& effects, const std::function<bool(const relay::LetNode&)>& may_go);

}  // namespace headrace::passes
