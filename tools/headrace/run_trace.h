// Traces of runs: a lane for each thread, with the steps of the model and the parts of their loops.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "artifact/manifest.h"
#include "executors/executor.h"
#include "executors/part_times.h"
#include "tools/headrace/output.h"

namespace headrace::tools {

// One run.
struct TracedRun {
  int threads = 1;
  std::vector<uint64_t> step_nanoseconds = {};
  std::vector<executors::PartTime> parts = {};  // none with one thread, whose steps are all that it does
  size_t num_lost = 0;                          // parts that were too many to record
  std::vector<Report> args = {};                // by step, for a viewer to show
};

// Runs the program a few times and returns the fastest of these runs, without `args`.
TracedRun trace_run(executors::Executor& executor);

// Returns a trace that Chrome and Perfetto show. Each run is a process, with a lane for each of its threads. The steps
// are in the lane of thread 0, which runs the program, and the parts of their parallel loops in the lane of the thread
// that ran them. `about` is for the trace's otherData.
std::string trace_of(const artifact::GraphProgram& graph, std::span<const TracedRun> runs, Report about = {});

}  // namespace headrace::tools
