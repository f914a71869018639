// The profile of a model's steps: where the time of a run goes, and how near each step is to what the machine allows.
#pragma once

#include <string>

#include "tools/headrace/fallback_option.h"
#include "tools/headrace/input_options.h"
#include "tools/headrace/options.h"

namespace headrace::tools {

struct StepProfileOptions {
  int threads = 1;
  int rounds = 30;
  InputOptions inputs;
  FallbackOption fallback = {};
  int most = 0;            // print only so many steps, those that take longest; 0: all, in their order
  std::string trace = {};  // a file for a Chrome trace of a run; empty: none
};

// Runs the model, whose steps are timed in rounds of their own, and prints for each step the median of its times, its
// share of all, operations and bytes a second, and the share of the limit: the least time that the probed machine
// allows (cost/limits.h) by the time taken. A report in JSON has `more`, too. The result is an exit code.
int profile_steps(const ModelOptions& model, const StepProfileOptions& options, const Common& common,
                  const Report& more = {});

}  // namespace headrace::tools
