// Which values no clause of a match covers.
#pragma once

#include "ir/module.h"
#include "relay/expr.h"

namespace headrace::relay {

inline constexpr size_t kMaxUnmatchedCases = 10;

// Patterns that together with the clauses cover every value of the data, in the order of the constructors' definitions,
// the first kMaxUnmatchedCases of them; none when the clauses cover all. `module` has the data types. UserError where
// the patterns are too many or too wide to tell.
std::vector<Pattern> unmatched_cases(const MatchNode& match, const IRModule& module);

// "Cons(_, Nil)": a pattern as unmatched_cases gives it.
std::string case_text(const Pattern& pattern);

}  // namespace headrace::relay
