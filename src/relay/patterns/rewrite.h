// Rewrites an expression with callbacks: each is asked for what replaces the places that its pattern matches.
#pragma once

#include "relay/patterns/groups.h"

namespace headrace::relay {

// The expressions that the nodes of a pattern stand for, by node: several expressions for a node that repeats.
using PatternMatches = Map<DFPattern, Array<Expr>>;

struct PatternCallback {
  std::string name = {};  // for messages
  DFPattern pattern = {};
  // Gives what replaces a match: `before` is its root as it was, `after` the root with its operands rewritten,
  // `matches` what the pattern's nodes stand for after rewriting.
  std::function<Expr(const Expr& before, const Expr& after, const PatternMatches& matches)> replace = {};
  bool require_type = false;  // the program is typed before each round
  bool rewrite_once = false;  // it takes part in the first round only
};

// Rounds after which a rewrite must have come to rest.
inline constexpr size_t kMaxRewriteRounds = 100;

// Rewrites in rounds, in each of which every callback sees the program once, until a round changes nothing. Returns
// `expr` itself when nothing changed. `module` holds the functions that the expression calls.
// UserError that names a callback: it gives no expression; or the program does not come to rest within
// kMaxRewriteRounds, or grows beyond bounds. What a callback throws passes through.
Expr rewrite_patterns(const std::vector<PatternCallback>& callbacks, const Expr& expr, const IRModule& module = {});

}  // namespace headrace::relay
