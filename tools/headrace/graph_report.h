// Graphs as reports: of a placed program, and of the steps of a compiled one. Both have the same keys where they mean
// the same, so that one page draws both (docs/cli-json.md).
#pragma once

#include <optional>

#include "artifact/manifest.h"
#include "partition/program_graph.h"
#include "tools/headrace/verbs.h"

namespace headrace::tools {

Report graph_report(const partition::ProgramGraph& graph, const std::vector<artifact::Placement>& placement);

// `seconds` has the time of each step; empty: unknown.
Report graph_report(const artifact::Program& program, const artifact::Manifest& manifest,
                    const std::vector<double>& seconds);

// Reads the times of steps from the output of `headrace bench --steps --json`: those of its first number of threads.
// UserError for a file of another form, and for times of other steps than the program's.
std::vector<double> read_step_times(const std::string& path, const artifact::Program& program);

}  // namespace headrace::tools
