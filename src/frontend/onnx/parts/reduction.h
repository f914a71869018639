// The attributes and inputs of ONNX's reductions.
#pragma once

#include "frontend/onnx/node/node_context.h"

namespace headrace::onnx {

struct Reduction {
  Expr data;
  std::optional<Shape> axes;  // nothing: all
  bool keepdims = true;
  bool is_over_nothing = false;  // every element is a sum of its own
};

// Axes are an attribute; an input from opset 18 on, of ReduceSum from 13 on.
inline constexpr int64_t kAxesInput = 18, kAxesInputOfSum = 13;

// Reads the axes of a reduction, which are an input from opset `since` on.
Reduction read_axes(NodeContext& context, int64_t since);
// Reads the axes of a reduction of numbers.
Reduction read_reduction(NodeContext& context, int64_t since = kAxesInput);

// Reduces `data` along the axes by a Relay op: "sum", "max", ... The greatest (least) of no elements is -infinity
// (infinity).
Expr reduced(NodeContext& context, std::string_view op, const Expr& data, const Reduction& reduction);

}  // namespace headrace::onnx
