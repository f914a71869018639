// Draws random numbers. A node's numbers depend on its key alone, so that a model gives the same ones at each run: the
// key is its seed, or, of a node without one, made of the name of its first output (in a function after the names of
// the calls around it).
#pragma once

#include "frontend/onnx/node/node_context.h"

namespace headrace::onnx {

// Returns the key of the node.
Expr key_of(NodeContext& context);
// Returns the dtype that attribute `dtype` names; `otherwise` if there is no attribute.
DataType dtype_attr(NodeContext& context, DataType otherwise);
// Returns the dtype in which random numbers of `dtype` are drawn.
DataType drawn_in(DataType dtype);
// Draws random numbers: in [a, b) for random.uniform, with mean a and standard deviation b for random.normal.
Expr draw(NodeContext& context, std::string_view op, double a, double b, const Shape& shape, DataType dtype);

}  // namespace headrace::onnx
