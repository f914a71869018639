// Checks of a backend in a process of its own, so that a crash, an endless loop or an exit is one finding among others.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "conformance/check.h"

namespace headrace::tools {

struct CheckRequest {
  std::string backend;
  std::vector<std::string> arguments;               // of this program's verb, from which the child knows the backend
  std::vector<conformance::Case> cases;             // the child makes the same ones
  double timeout_seconds = 60;                      // for one case
  std::function<void(size_t index)> progress = {};  // called before each case
};

// Runs the cases in children, each of which goes on where the last one ended. A case during which the child ends has
// the finding `crash`, `exit` or `hang`; one during which it writes to its standard output has `output`.
std::vector<conformance::CaseReport> run_isolated(const CheckRequest& request);

// What such a child does: checks the cases from `first` on and reports to the descriptor `report`.
void run_child(const std::string& backend, const std::vector<conformance::Case>& cases, size_t first, int report);

}  // namespace headrace::tools
