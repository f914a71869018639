// The numbers of a timed step beside its time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "artifact/manifest.h"
#include "cost/limits.h"
#include "tools/headrace/output.h"

namespace headrace::tools {

// How long each limit of the machine is probed.
inline constexpr double kProbeSeconds = 0.1;

struct StepFigures {
  const artifact::Step& step;
  double bytes = 0;
  std::optional<double> gflops;  // nothing if the number of operations is not known
  double gigabytes = 0;
  cost::LeastTime least;
  double share_of_limit = 0;
};

// `seconds`: the time of the step, above 0.
StepFigures figures_of(const artifact::GraphProgram& graph, const cost::Limits& limits, size_t step, double seconds);

// Adds the keys operations, bytes, bound and share_of_limit.
void add_figures(Report& report, const StepFigures& figures);

// "64 % of FMA"
std::string limit_text(const StepFigures& figures);

}  // namespace headrace::tools
