// Finds the op of a model that a backend computes wrongly, by compiles with some of its ops native.
#pragma once

#include "driver/compile.h"
#include "tools/headrace/bisection.h"
#include "tools/headrace/comparison.h"

namespace headrace::tools {

// Compiles a model and returns an executor of it with that many threads.
std::shared_ptr<executors::Executor> make_compiled(const driver::Model& model, const driver::CompileOptions& options,
                                                   int threads);

// A model with the inputs it is run on and the results that are right.
struct GuiltyOpSearch {
  const driver::Model& model;
  driver::CompileOptions options;
  const std::vector<NDArray>& inputs;
  OutputSets sets;  // all but `ours`, which the search computes
  Tolerance tolerance = {};
  int threads = 1;
  std::function<bool(const std::vector<OutputComparison>&)> is_right = {};
};

// Returns the op that is to blame for wrong results of the model, which bisect() finds. A search that is not possible
// returns its reason as `failure`: the program has no text form and so no plan, or `options` make no wrong results.
Bisection find_guilty_op(const GuiltyOpSearch& search);

}  // namespace headrace::tools
