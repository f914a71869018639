// The calls with which the ops themselves are tested (ops/tests/op_cases.txt), as cases. A test fails for an op of the
// registry without such a call, so these cases cover every op. Inner header of this room.
#pragma once

#include <string_view>
#include <vector>

#include "conformance/cases.h"

namespace headrace::conformance {

// Returns the calls of op_cases.txt without their results and without those that are errors.
std::string_view given_text();

// Returns the cases of given_text(): every call of a single op, and calls of several ops for an op that has no other.
// The first case of each op gets all checks, the others the brief ones.
std::vector<Case> given_cases();

// Returns why no backend is asked about the op, so that it has no case; empty for all other ops.
std::string_view why_no_case(std::string_view op);

}  // namespace headrace::conformance
