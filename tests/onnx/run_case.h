// One case of the ONNX data: import it, run it in every way there is, compare.
#pragma once

#include <functional>

#include "frontend/onnx/node/import_error.h"
#include "ir/module.h"
#include "kit/onnx_data.h"
#include "tensor/ndarray.h"

namespace headrace::onnx_test {

// A way to run the function `main` of a module: the tensors of its result, tuples flattened.
struct Executor {
  std::string name;
  std::function<std::vector<NDArray>(const IRModule&, const std::vector<NDArray>&)> run;
};

enum class Outcome {
  passed_static,  // as the model is, its symbolic dimensions fixed to the data's
  passed_bound,   // with an input compiled in as a constant: the model takes a shape, an axis or the like by value
  interpreted,    // passed in the interpreter; native code has no tensors of a data-dependent size
  refused,        // the importer says what is not supported
  failed,         // a wrong answer, or an error that is not a refusal
};

struct CaseResult {
  const kit::OnnxCase* one = nullptr;
  Outcome outcome = Outcome::failed;
  std::string message;                      // details of a failure: the executor, the data set, what differs
  std::vector<onnx::NodeRefusal> refusals;  // nodes that were refused
  // The operator, and the ops of the Relay program in order, each once; set for an imported model of one node.
  std::string op = {};
  std::vector<std::string> relay_ops = {};
};

// Returns the names of the ops that @main calls, in order, each once.
std::vector<std::string> ops_of(const IRModule& module);

// Never throws: an error becomes the result's message.
CaseResult run_case(const kit::OnnxCase& one, const std::vector<Executor>& executors);

}  // namespace headrace::onnx_test
