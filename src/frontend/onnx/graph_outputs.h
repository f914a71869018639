// The outputs of a graph: what the model says of them, held against what its nodes compute.
#pragma once

#include <string>

#include "frontend/onnx/model.h"
#include "ir/type.h"

namespace headrace::onnx {

// What the declaration of an output says against the computed type, in a sentence; empty: nothing. Compared is what
// both sides know: element types, ranks, dimensions that are numbers on both.
std::string output_contradiction(const ValueInfo& declared, const TensorType& computed);

}  // namespace headrace::onnx
