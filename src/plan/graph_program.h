// Emits the graph program: the flat list of steps that the graph executor runs.
#pragma once

#include "artifact/manifest.h"
#include "plan/weight_table.h"
#include "relay/expr.h"

namespace headrace::plan {

struct ProgramNames {
  std::vector<std::string> inputs, outputs;  // one for each
};

// Emits the program of `module`'s main, which is in destination passing form with its memory planned. Constants are
// added to `weights`. The caller fills in target, compiler, workspace and placement. Callees are the names of the
// global functions, and steps that call a function of the process (ops/call_fusion.h) are external ones with its name.
artifact::Program emit_graph_program(const IRModule& module, const ProgramNames& names, WeightTable& weights);

}  // namespace headrace::plan
