// Emits the graph program: the flat list of steps that the graph executor runs.
#pragma once

#include "artifact/manifest.h"
#include "plan/program.h"
#include "plan/weight_table.h"

namespace headrace::plan {

struct ProgramNames {
  std::string program = artifact::kDefaultProgram;
  std::vector<std::string> inputs = {}, outputs = {};  // one for each
};

// Emits a program whose memory is planned. Constants are added to `weights`. Steps whose function has an import
// (import_of) call that; others call the kernel of the function's name. The caller fills in target, compiler, workspace
// and placement.
artifact::Program emit_graph_program(const Program& program, const ProgramNames& names, WeightTable& weights);

}  // namespace headrace::plan
