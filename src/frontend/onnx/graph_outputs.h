// Compares the declared types of a graph's outputs with the types that its nodes compute.
#pragma once

#include <string>

#include "frontend/onnx/file/model.h"
#include "ir/type.h"

namespace headrace::onnx {

// Returns a sentence about how the declaration of an output contradicts the computed type; empty if it does not.
// Compares the element types, the ranks, and the dimensions that are numbers in both.
std::string output_contradiction(const ValueInfo& declared, const TensorType& computed);

}  // namespace headrace::onnx
