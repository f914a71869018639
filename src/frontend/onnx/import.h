// Imports an ONNX model to relay: an IRModule whose `main` computes the model's graph.
//
// One converter per ONNX operator (op_table.cc lists them), for opsets kOldestOpset to kNewestOpset of the default
// domain. Calls of the model's functions are inlined (model_functions.h says how far). Types are inferred node by node,
// with the values of small integer tensors, so that shape subgraphs (Shape -> Gather -> Concat -> Reshape) disappear
// where shapes are known. Small tensors computed from constants alone become constants, and an If whose condition is
// known is replaced with its branch. Each call's span names the ONNX node. Takes time linear in the size of the model.
// Stack use grows only with nested subgraphs (kMaxGraphDepth).
#pragma once

#include <functional>
#include <map>

#include "base/expected.h"
#include "frontend/onnx/node/import_error.h"
#include "frontend/onnx/file/model.h"
#include "ir/module.h"
#include "ops/tensor/extern_onnx.h"
#include "tensor/ndarray.h"

namespace headrace::onnx {

// Returns the type of each result of a node that a backend computes, with known sizes; otherwise why none does, in a
// sentence that may be empty.
using ClaimNode = std::function<Expected<std::vector<TensorType>>(const ops::OnnxNode& node)>;

struct ImportOptions {
  std::map<std::string, std::vector<int64_t>> shapes;  // fixes an input's shape
  std::map<std::string, NDArray> bound;                // inputs compiled in as constants, which share the memory
  ClaimNode claim = {};  // is asked about each node that the importer has no form for; null: such nodes are errors
  std::map<std::string, int64_t> dims = {};  // fixes a named dimension in every input that has it
};

struct ImportedModel {
  IRModule module;                   // typed; its only function is `main`
  std::vector<std::string> inputs;   // main's inputs in order: graph inputs that are neither initialisers nor bound
  std::vector<std::string> outputs;  // the graph's outputs in order; main returns a tuple unless there is just one
  std::vector<std::string> files;    // the external data files of the model
};

// Imports the model. Dimensions with the same name become one symbol; each unnamed dimension becomes a symbol of its
// own. Initialisers keep their dtype and get memory of their own; those in files of external data share the file's
// memory where they are aligned. Throws ImportError, which lists all mistakes in the model: in nodes, in
// data, and in outputs declared with other types than the nodes compute. Throws UserError if the options contradict the
// model (an unknown input, a wrong rank, a size that contradicts the model or another input), and if the model imports
// no supported opset.
ImportedModel import_model(const Model& model, const ImportOptions& options = {});

// Returns the input dimensions that neither the model nor the options fix, as "x[0] (batch)" or "x[2]", and "x (rank)"
// for an input without a shape.
std::vector<std::string> symbolic_dimensions(const Model& model, const ImportOptions& options = {});

}  // namespace headrace::onnx
