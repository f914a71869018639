// Helpers of the gradient rules. Static shapes are written as attributes; other shapes are taken from a tensor at hand:
// zeros_like, reshape_like, broadcast_to_like, collapse_sum_like.
#pragma once

#include <span>

#include "passes/gradient/gradient_rules.h"
#include "relay/match.h"

namespace headrace::passes::gradient_rules {

// One gradient for each argument; null for an argument that has none.
using Gradients = std::vector<Expr>;

struct GradientRow {
  const OpHandle& op;
  Gradients (*rule)(const GradientSite& site);
};

// Returns the rules of each family.
std::span<const GradientRow> unary_gradients();      // functions of one operand, activations
std::span<const GradientRow> binary_gradients();     // arithmetic, where, bias_add
std::span<const GradientRow> shape_gradients();      // other shapes and orders, joins, cuts, masks
std::span<const GradientRow> index_gradients();      // elements picked and put where indices say
std::span<const GradientRow> reduce_gradients();     // reductions, running sums, sorts
std::span<const GradientRow> matrix_gradients();     // products of matrices, einsum
std::span<const GradientRow> conv_gradients();       // convolutions and their transposes
std::span<const GradientRow> window_gradients();     // pools, resampling
std::span<const GradientRow> normalize_gradients();  // softmax, norms, losses

// Returns the type of a typed expression; UserError at `expr` when it is not a tensor.
const TensorTypeNode& tensor_of(const Expr& expr);
using relay::known_shape_of;
// Return a dimension, and the shape; UserError at `expr` when a dimension is not a number.
int64_t static_dim_of(const Expr& expr, size_t axis);
Shape static_shape_of(const Expr& expr);

// Makes a scalar constant of the first argument's dtype.
Expr scalar(double value, const GradientSite& s);
Expr negative(const Expr& x);
Expr square(const Expr& x);

// Make a tensor of the type of `like`, which is typed. reshaped_as and broadcast_as use the elements of `data`.
Expr zeros_as(const Expr& like);
Expr ones_as(const Expr& like);
Expr reshaped_as(const Expr& data, const Expr& like);
Expr broadcast_as(const Expr& data, const Expr& like);

// Returns the gradient by `operand`, which was broadcast to the shape of the typed `result`, where `gradient` has that
// shape.
Expr summed_to(const Expr& gradient, const Expr& result, const Expr& operand);
// Returns both gradients of a binary op.
Gradients binary(const GradientSite& s, const Expr& by_first, const Expr& by_second);
// Returns the gradient in the dtype of the first argument, where the op's out_dtype is another.
Expr operand_gradient(const GradientSite& s);
// Returns the gradient where `condition` holds, and 0 elsewhere.
Expr masked(const Expr& condition, const GradientSite& s);

// Reshapes a vector [C] so that it broadcasts along `axis` of a tensor with `rank` dimensions.
Expr along_axis(const Expr& vector, size_t axis, size_t rank);
// Returns the sum of a tensor over all axes but one.
Expr summed_but(const Expr& tensor, size_t axis);
// Returns how many elements of `whole` there are for each of `part`, in the first argument's dtype.
Expr elements_each(const Expr& whole, const Expr& part, const GradientSite& s);

// Makes 0, 1, .. count - 1 of int64.
Expr counted(int64_t count);
// Returns the axes of a tensor of `rank` dimensions with the one at `from` moved to `to`.
Shape moved_axis(size_t rank, size_t from, size_t to);
// Returns the tensor with its axes in that order; itself when that is the order it has.
Expr ordered(const Expr& tensor, const Shape& axes);

// Returns the types of the items of argument 0, a tuple.
const Array<Type>& item_types(const GradientSite& s);

// Throws a UserError at the call: the op has a gradient, but not for this call.
[[noreturn]] void refuse(const GradientSite& s, std::string_view what);

}  // namespace headrace::passes::gradient_rules
