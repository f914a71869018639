// Operators that no case of the suites has as its only node: what the importer makes of them.
#pragma once

#include "run_case.h"

namespace headrace::onnx_test {

// Returns one result for each such operator, with its Relay ops; `one` is null. Throws the importer's errors.
std::vector<CaseResult> other_operators();

}  // namespace headrace::onnx_test
