// The inputs of a graph: which become parameters, with which types.
#pragma once

#include "frontend/onnx/import.h"
#include "frontend/onnx/import_error.h"
#include "relay/expr.h"

namespace headrace::onnx {

// The inputs that are no initialisers, dense or sparse, in order. Linear in the graph's size.
std::vector<const ValueInfo*> true_inputs(const Graph& graph);

// A declared shape for messages: "(2, ?, batch)".
std::string show_dims(const std::vector<Dim>& dims);

struct GraphInput {
  const ValueInfo* info;
  relay::Var var;  // a parameter of main; null for a bound one
  NDArray bound;   // the constant; null for a parameter
};

// One entry a graph input that is no initialiser, in order; an input that cannot be imported adds to `refusals` and
// has neither. UserError when the options do not fit.
std::vector<GraphInput> resolve_inputs(const Model& model, const ImportOptions& options,
                                       std::vector<NodeRefusal>& refusals);

}  // namespace headrace::onnx
