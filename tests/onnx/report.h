// Writes the results of the ONNX cases as a page of text.
#pragma once

#include "run_case.h"

namespace headrace::onnx_test {

struct Totals {
  size_t cases = 0, passed_static = 0, passed_bound = 0, interpreted = 0, refused = 0, failed = 0;
  size_t passed() const { return passed_static + passed_bound; }
};

Totals count(const std::vector<CaseResult>& results);
// Returns a line a suite and one for all, the refusals by reason, and the failures.
std::string summary(const std::vector<CaseResult>& results);
// Returns a line for each operator whose row says that one Relay op computes it, although it becomes several in its
// simplest case.
std::vector<std::string> form_mistakes(const std::vector<CaseResult>& results);
// Returns the page docs/onnx-support.md.
std::string support_page(const std::vector<CaseResult>& results);
// Returns the page docs/onnx-new-opsets.md, of the cases that make_node_cases.py writes.
std::string new_opsets_page(const std::vector<CaseResult>& results);

}  // namespace headrace::onnx_test
