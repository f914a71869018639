// Finds the values that no clause of a match covers.
#pragma once

#include "ir/module.h"
#include "relay/expr.h"

namespace headrace::relay {

inline constexpr size_t kMaxUnmatchedCases = 10;

// Returns patterns of values that no clause covers, in the order of the constructors' definitions; empty when the
// clauses cover every value. Returns at most kMaxUnmatchedCases of them. `module` defines the algebraic data types.
// UserError for a match that is too large to check: too many clauses, or constructors of too many fields.
std::vector<Pattern> unmatched_cases(const MatchNode& match, const IRModule& module);

// Returns the text of a pattern from unmatched_cases: "Cons(_, Nil)".
std::string case_text(const Pattern& pattern);

}  // namespace headrace::relay
