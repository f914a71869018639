// A row of the table of operators: an ONNX operator and the function that converts its nodes.
#pragma once

#include "frontend/onnx/node/node_context.h"

namespace headrace::onnx {

// Builds the node's outputs, in order. Trailing optional outputs may be missing.
using Converter = Exprs (*)(NodeContext&);

struct OpRow {
  std::string_view name;
  Converter convert;
  int least_inputs;
  int most_inputs;  // kAny: any number
  // The first opset that has the operator, where it is one after kOldestOpset. Operators that older exporters and
  // onnxruntime's optimiser write into models of earlier opsets, too, are taken in any opset: LayerNormalization,
  // SimplifiedLayerNormalization and ThresholdedRelu, all of which onnxruntime takes as well.
  int since = 1;
};
inline constexpr int kAny = -1;

// The groups of dtypes that operators accept, for NodeContext::check_dtype.
inline bool is_bool(DataType dtype) { return dtype.is_bool(); }
inline bool is_number(DataType dtype) { return !dtype.is_bool(); }
inline bool is_float(DataType dtype) { return dtype.is_float(); }
inline bool is_index(DataType dtype) { return dtype.is_int(); }

}  // namespace headrace::onnx
