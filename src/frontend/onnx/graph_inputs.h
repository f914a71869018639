// Decides which inputs of a graph become parameters, and their types.
#pragma once

#include "frontend/onnx/import.h"
#include "frontend/onnx/node/import_error.h"
#include "relay/expr.h"

namespace headrace::onnx {

// Returns the inputs that are not (dense or sparse) initialisers, in order. Linear in the graph's size.
std::vector<const ValueInfo*> true_inputs(const Graph& graph);

// Returns the name that ties a dimension to others, which ImportOptions::dims may fix; empty if it has none. "?" and
// "None" are not names: exporters write them for sizes that have nothing in common.
std::string_view symbol_of(const Dim& dim);

// Formats a declared shape for messages: "(2, ?, batch)".
std::string show_dims(const std::vector<Dim>& dims);

struct GraphInput {
  const ValueInfo* info;
  relay::Var var;  // a parameter of main; null for a bound one
  NDArray bound;   // the constant; null for a parameter
};

// Returns an entry for each of true_inputs(), in order. An input that cannot be imported is added to `refusals`, and
// its entry has neither a parameter nor a constant. Throws UserError if the options contradict the model.
std::vector<GraphInput> resolve_inputs(const Model& model, const ImportOptions& options,
                                       std::vector<NodeRefusal>& refusals);

}  // namespace headrace::onnx
