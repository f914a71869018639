// BatchPorts: the ports of one row of programs that work on batches.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "executors/pipeline/port.h"

namespace headrace::executors::pipeline {

// The inputs and outputs of one program, whose batch is the first dimension of its outputs.
struct BatchProgram {
  std::vector<artifact::TensorSpec> inputs, outputs;
};

struct BatchPorts {
  std::vector<Port> inputs, outputs;  // types of one row; any value where requests may have any number of rows
  std::vector<bool> has_rows;         // by input; the others are the same for all rows
  std::vector<int64_t> batches;       // by program
};

// Returns the ports that the programs have in common for one row. An input has rows where its first dimension is the
// batch in every program. UserError for programs that differ in more than their batch, have the same batch, or have no
// batch, and without an input that has rows.
BatchPorts batch_ports(std::span<const BatchProgram> programs, bool any_rows);

}  // namespace headrace::executors::pipeline
