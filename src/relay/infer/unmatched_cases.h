// Which values no clause of a match covers.
#pragma once

#include "ir/module.h"
#include "relay/expr.h"

namespace headrace::relay {

inline constexpr size_t kMaxUnmatchedCases = 10;

// Returns patterns that, together with the clauses, cover every value of the data: the first kMaxUnmatchedCases of them
// in the order of the constructors' definitions, none when the clauses cover all. `module` has the data types.
// UserError where there are too many patterns or they are too wide to decide.
std::vector<Pattern> unmatched_cases(const MatchNode& match, const IRModule& module);

// Returns the text of a pattern from unmatched_cases: "Cons(_, Nil)".
std::string case_text(const Pattern& pattern);

}  // namespace headrace::relay
