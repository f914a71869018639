// The parts that quantized ops share: their scales and zero points, how their elements pair with these, and the op of
// plain integers that each of them delegates to.
#pragma once

#include "ir/op_handle.h"
#include "ops/axis.h"
#include "ops/loops/move.h"
#include "ops/register.h"

namespace headrace::ops {

// The dtype of sums and zero points.
inline constexpr DataType kQuantizedSum = DataType::int_(32);

// Checks argument `i`: of this dtype, and a scalar or, where `size` is given, of so many numbers. Returns whether its
// type is known.
bool check_parameter(const RelationInput& input, size_t i, DataType dtype, const PrimExpr& size = {});
// Checks a scale, float32, and that a constant one is positive and finite.
bool check_scale(const RelationInput& input, size_t i, const PrimExpr& size = {});
// Checks that the numbers of a constant scale are positive and finite; null, one that is not a constant, passes.
void check_positive(const RelationInput& input, std::string_view name, const NDArray& scale);
// Checks that the factor from constant scales `from`, which are multiplied, to the scale `to` is below 2^31, so that
// fixed point can hold it. Passes where one is null.
void check_factor(const RelationInput& input, const std::vector<NDArray>& from, const NDArray& to);
// Checks a zero point, int32.
bool check_zero_point(const RelationInput& input, size_t i, const PrimExpr& size = {});
// Returns argument `i`, which must have dtype int8 or uint8; null while its type is not known.
TensorType byte_argument(const RelationInput& input, size_t i);

// Returns the type that the relation of `op` gives for arguments of these types and the call's attributes. Its errors
// name the op of the call.
Type relate_as(const OpHandle& op, const RelationInput& input, const std::vector<Type>& types);
// Evaluates `op` on `args` with the call's attributes; the result has dtype `out` and the shape of the call's.
NDArray eval_as(const OpHandle& op, const EvalInput& input, std::vector<NDArray> args, DataType out);

// Calls visit(element, its index along the axis of per-axis operands) for each element; 0 without such an axis.
template <typename F>
void for_each_channel(const Shape& shape, int64_t axis, bool has_axis, F&& visit) {
  const size_t own = has_axis ? normal_axis(axis, shape.size()) : 0;
  int64_t at = 0;
  for_each_index(shape, [&](const Shape& index) { visit(at++, has_axis ? index[own] : 0); });
}

// Returns data - zero_point in int32; a zero point of one dimension has a number for each index of `axis`.
NDArray less_zero_point(const NDArray& data, const NDArray& zero_point, int64_t axis = -1);
// Returns the elements cut to the range of `dtype`.
NDArray saturated(const NDArray& sums, DataType dtype);

// A scale or zero point in an expression. `is_vector` says whether it has one dimension.
struct Parameter {
  Expr value;
  bool is_vector = false;
};
Parameter parameter(const relay::CallNode& call, const Array<Type>& types, size_t i);
// Returns a parameter so that it broadcasts along `axis` of a tensor of that rank.
Expr along(const Parameter& parameter, size_t rank, int64_t axis, const Span& span);
// Returns whether the expression is a constant of zeros.
bool is_zero(const Expr& expr);
// Returns the expression of less_zero_point() for data of that type.
Expr less_zero_point(const Expr& data, const Type& type, const Parameter& zero_point, int64_t axis, const Span& span);
// Returns the expression of saturated().
Expr saturated(const Expr& sums, DataType dtype, const Span& span);

inline size_t rank_of(const Type& type) { return type.as<TensorTypeNode>()->shape.size(); }
inline DataType dtype_of(const Type& type) { return type.as<TensorTypeNode>()->dtype; }
// Returns the type of int32 that is shaped as `type`.
inline Type sum_type(const Type& type) { return make_tensor_type(type.as<TensorTypeNode>()->shape, kQuantizedSum); }

}  // namespace headrace::ops
