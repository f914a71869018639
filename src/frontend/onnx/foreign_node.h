// Nodes of a model that the importer has no form for, and that a backend claims: calls of extern.onnx.
#pragma once

#include <unordered_map>
#include <utility>

#include "frontend/onnx/node/facts.h"
#include "frontend/onnx/graph_inputs.h"
#include "frontend/onnx/import.h"
#include "frontend/onnx/node/node_context.h"

namespace headrace::onnx {

class ForeignNodes {
 public:
  // Keeps references to all three.
  ForeignNodes(const Model& model, const ClaimNode& claim, const std::vector<GraphInput>& inputs);

  // Returns whether somebody may claim a node.
  bool is_asked() const { return static_cast<bool>(claim_); }
  // Makes what the graph declares of its values known, and returns what that hides, for `restore`: null where a name
  // was not known.
  using Hidden = std::vector<std::pair<std::string_view, const ValueType*>>;
  Hidden declare(const Graph& graph);
  void restore(const Hidden& hidden);

  // Forgets all declarations while the nodes of a function are imported, whose names are its own, and returns them for
  // `leave_function`.
  using Declarations = std::unordered_map<std::string_view, const ValueType*>;
  Declarations enter_function() { return std::exchange(declared_, {}); }
  void leave_function(Declarations declarations) { declared_ = std::move(declarations); }

  // Returns the outputs of a node that somebody claims; otherwise why nobody does, in a sentence that may be empty. Ask
  // only where is_asked(). `inputs` are null where the node leaves one out. `call` is the call whose function the node
  // belongs to; null: it is a node of the graph.
  Expected<Exprs> import(const Node& node, const Exprs& inputs, Facts& facts, const FunctionCall* call) const;

 private:
  TensorType declared_type(std::string_view name) const;
  int64_t opset_of(const Node& node, const FunctionCall* call) const;

  const Model& model_;
  const ClaimNode& claim_;
  std::unordered_map<std::string_view, int64_t> symbols_;  // dimensions that the inputs' shapes fix
  Declarations declared_;
};

}  // namespace headrace::onnx
