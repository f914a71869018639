// ONNX model -> relay: an IRModule whose `main` computes what the model's graph does.
//
// One converter per ONNX operator (op_table.cc lists them), for opsets kOldestOpset to kNewestOpset of the default
// domain. Types are inferred node by node, with the values of small integer tensors, so that shape subgraphs
// (Shape -> Gather -> Concat -> Reshape) disappear where shapes are known. Small tensors computed from constants alone
// become constants; an If whose condition is known is its branch. Each call's span names the ONNX node. Cost is linear
// in the size of the model; stack use does not depend on it, but for nested subgraphs (kMaxGraphDepth).
#pragma once

#include <map>

#include "frontend/onnx/import_error.h"
#include "frontend/onnx/model.h"
#include "ir/module.h"
#include "tensor/ndarray.h"

namespace headrace::onnx {

struct ImportOptions {
  std::map<std::string, std::vector<int64_t>> shapes;  // fixes an input's shape
  std::map<std::string, NDArray> bound;                // inputs compiled in as constants, which share the memory
};

struct ImportedModel {
  IRModule module;                   // typed; its only function is `main`
  std::vector<std::string> inputs;   // of main, in order: the graph inputs that are neither initialisers nor bound
  std::vector<std::string> outputs;  // of the graph, in order; main gives a tuple unless there is just one
  std::vector<std::string> files;    // that hold data of the model beside it
};

// Dimensions that the model gives a name become one symbol each; unnamed ones a symbol each of their own.
// Initialisers keep their dtype and share the mapped file's memory where it is aligned; those of a model that was read
// from the caller's memory are copied.
// Throws ImportError with all that is wrong with the model: its nodes, its data, outputs that are declared as something
// else than the nodes compute. UserError when the options do not fit the model
// (an unknown input, a wrong rank, a size that contradicts the model or another input) or it imports no supported
// opset.
ImportedModel import_model(const Model& model, const ImportOptions& options = {});

// The dimensions of the inputs that neither the model nor the options fix, as "x[0] (batch)" or "x[2]"; "x (rank)" for
// an input without a shape.
std::vector<std::string> symbolic_dimensions(const Model& model, const ImportOptions& options = {});

}  // namespace headrace::onnx
