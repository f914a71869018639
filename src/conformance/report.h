// Reports of the kit as texts and tables, for the programs that print them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "conformance/check.h"
#include "partition/rules.h"

namespace headrace::conformance {

using Rows = std::vector<std::vector<std::string>>;

// Returns the pass matrix: a heading, then a row for each op or pattern with a case that the backend claims or
// fails, with the cases that it claims, the checks that were made, and the result.
Rows matrix_of(const std::vector<CaseReport>& reports);

// Returns a line for each finding and each warning, "FAIL CASE [CHECK]: MESSAGE" and "WARN ...", and after the findings
// of a case the lines of its program.
std::vector<std::string> failures_of(const std::vector<CaseReport>& reports);

// Returns the line that ends a report: "convs: 12 of 400 cases claimed, 150 checks, all passed, 1 warning". Where
// nothing is claimed, it has the refusal that most cases have.
std::string summary_of(const std::string& backend, const std::vector<CaseReport>& reports);

// Returns the names of the backend's patterns without a claimed case: the kit says nothing about them.
std::vector<std::string> unchecked_patterns(const std::string& backend, const std::vector<CaseReport>& reports);

// Counts the cases of one op that a backend takes, among all of that op.
struct Claims {
  int64_t taken = 0, all = 0;
};

// Returns "-", "yes" or "3 of 12".
std::string to_text(const Claims& claims);

// Returns, for each op that one of the backends takes in some case, what each says to all cases of the op.
std::map<std::string, std::vector<Claims>> claims_of(const partition::Backends& backends);

}  // namespace headrace::conformance
