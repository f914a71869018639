// Scales and zero points of the operators of quantized models.
#pragma once

#include "frontend/onnx/node/node_context.h"

namespace headrace::onnx {

// The dtypes of sums of integers and of scales.
inline constexpr DataType kSum = DataType::int_(32), kScale = DataType::float_(32);
inline constexpr size_t kNoAxis = SIZE_MAX;  // only a scalar, or a tensor of the same rank, fits

inline bool is_byte(DataType dtype) { return (dtype.is_int() || dtype.is_uint()) && dtype.bits() == 8; }

// Returns the scale at input `i` as float32, a scalar if it has one element.
Expr read_scale(NodeContext& context, size_t i, std::string_view name);
// Returns the zero point at input `i`, of the dtype of the numbers it belongs to, as int32, or as float32 where they
// are narrow floats; 0 where it is omitted.
Expr read_zero_point(NodeContext& context, size_t i, std::string_view name, DataType of);

// Returns `x`, a scale or zero point, so that it broadcasts to `data`: a scalar, one number for each index of an axis,
// or a tensor of data's rank. Throws Refused for another shape.
Expr along_data(NodeContext& context, const Expr& x, const Expr& data, size_t axis, std::string_view name);

}  // namespace headrace::onnx
