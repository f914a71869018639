// Reads a main of fused groups as tensors and the steps that compute them. Private to plan/.
#pragma once

#include "relay/expr.h"

namespace headrace::plan {

enum class Memory : uint8_t { parameter, constant, storage };

// A piece of memory that tensors are views of, each from the beginning.
struct Base {
  Memory memory = Memory::storage;
  Expr expr;                     // the Var of a parameter, the Constant
  int64_t nbytes = 0;            // of a storage
  std::optional<size_t> output;  // a storage that is output i of the program
};

struct Tensor {
  TensorType type;
  Shape shape;
  size_t base = 0;
};

// A call of a group that computes something; a group that only reshapes is not a step.
struct Step {
  relay::Function function;
  std::vector<size_t> inputs, outputs;  // tensors
  Span span;
};

struct Dataflow {
  std::vector<Base> bases;
  std::vector<Tensor> tensors;
  std::vector<Step> steps;      // in an order that respects the data
  std::vector<size_t> results;  // tensors, tuples flattened
};

// Reads `main`. UserError as destination_passing.h says.
Dataflow read_dataflow(const relay::Function& main);

}  // namespace headrace::plan
