// The numbers of a timed step beside its time, and traces of runs whose steps were timed.
#pragma once

#include <optional>
#include <span>
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

// A run with one number of threads.
struct TraceLane {
  std::string name;                  // "2 threads"
  std::vector<double> seconds = {};  // by step
  std::vector<Report> args = {};     // shown by a viewer for each step
};

// Returns the steps of each run, one after another from 0 on, as a trace that Chrome and Perfetto show, with a lane for
// each run.
std::string trace_of(const artifact::GraphProgram& graph, std::span<const TraceLane> lanes);

}  // namespace headrace::tools
