// Checks of a backend in a process of its own, so that a crash, an endless loop or an exit is one finding among others.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "conformance/check.h"

namespace headrace::conformance {

struct CheckRequest {
  std::vector<Case> cases;
  // Starts a child process that calls run_child for the same cases with `first` and the descriptor `report`, and whose
  // standard output is the descriptor `output`. Returns its id. Throws UserError where the system gives none.
  std::function<pid_t(size_t first, int report, int output)> start;
  double timeout_seconds = 60;                      // for one case
  std::function<void(size_t index)> progress = {};  // called before each case; what it throws ends the checks
};

// Runs the cases in children, each of which goes on where the last one ended. A case during which the child ends has
// the finding `crash`, `exit` or `hang`; one during which it writes to its standard output has `output`.
std::vector<CaseReport> run_isolated(const CheckRequest& request);

// Checks the cases from `first` on and reports to the descriptor `report`. Called in a child.
void run_child(const std::string& backend, const std::vector<Case>& cases, size_t first, int report);

}  // namespace headrace::conformance
