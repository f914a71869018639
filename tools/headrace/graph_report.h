// Graphs as reports: of a placed program, and of the steps of a compiled one. Both have the same keys where they mean
// the same, so that one page draws both (docs/cli-json.md).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "artifact/manifest.h"
#include "partition/program_graph.h"
#include "tools/headrace/verbs.h"

namespace headrace::tools {

Report graph_report(const partition::ProgramGraph& graph, const std::vector<artifact::Placement>& placement);

// The times of a program's steps as they were measured.
struct MeasuredSteps {
  std::vector<double> seconds = {};                   // one for each step; empty: unknown
  std::map<std::string, std::string> fallbacks = {};  // why regions ran natively in these times
};

Report graph_report(const artifact::Program& program, const artifact::Manifest& manifest,
                    const MeasuredSteps& measured);

// Reads the times of steps from the output of `headrace bench --steps --json`: those of its first number of threads.
// UserError for a file of another form, and for times of other steps than the program's.
MeasuredSteps read_step_times(const std::string& path, const artifact::Program& program);

}  // namespace headrace::tools
