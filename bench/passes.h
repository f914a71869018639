// Times inference and the optimising passes, without lowering and code generation.
#pragma once

#include "tools/headrace/verbs.h"

namespace headrace::bench {

struct PassBenchOptions {
  int rounds = 5;
  int64_t ops = 10'000;             // length of the chain
  std::vector<std::string> models;  // ONNX files
};

// For a chain of ops and for each model: seconds to infer all types, and for the canonical and the native passes over
// the typed program at opt level 3. Each round takes a program that no round before has touched; best and median.
tools::Report measure_passes(const PassBenchOptions& options);

}  // namespace headrace::bench
