// Symbolic dimensions, as the type relations of ops compute with them.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

inline bool is_integer(const TensorType& type) { return type->dtype.is_int() || type->dtype.is_uint(); }

// Returns the dimension that must equal both a and b, the more precise of the two. Nothing when they differ, as n and n
// + 1 do.
std::optional<PrimExpr> unify_dims(const PrimExpr& a, const PrimExpr& b);
// Returns the broadcast of two dimensions: equal ones stay, 1 yields to the other, a known size above 1 wins over a
// symbol, unknown ones give `?`. Nothing when both are integers that neither agree nor are 1.
std::optional<PrimExpr> broadcast_dims(const PrimExpr& a, const PrimExpr& b);
// Returns the shape that both broadcast to, aligned at the last axis; fails with the axis and both shapes.
Array<PrimExpr> broadcast_shapes(const RelationInput& input, const TensorType& a, const TensorType& b);
// Returns e + c, with constants gathered: (n + 2) + -2 is n.
PrimExpr add_const(const PrimExpr& e, int64_t c);
// Returns `dim`, a dimension of the result, in canonical form; fails with an error of the op where its numbers
// overflow.
PrimExpr result_dim(const RelationInput& input, const PrimExpr& dim);
// Returns dim / by in canonical form; fails with an error of the op where a known dimension, `what` in words, is not a
// multiple of `by`. A symbol is divided as an integer.
PrimExpr divided_dim(const RelationInput& input, const PrimExpr& dim, int64_t by, std::string_view what);
// The dimensions that an op gets as its shape, from an attribute or from argument 1, an integer tensor of one
// dimension; `?` where a value is not known. Nothing while the argument's type is not known.
using Dims = std::vector<PrimExpr>;
std::optional<Dims> requested_shape(const RelationInput& input, const Shape& attribute, std::string_view name);
// A phrase in every error that refuses to compile a tensor of data-dependent size, such as argwhere's.
inline constexpr std::string_view kUnknownSize = "a data-dependent size";
// Returns that error for a type with a size `?`; empty where it has none.
std::string unknown_size_fault(const TensorType& type);
// Returns the text: "(1, n, ?)".
std::string show_dims(const Array<PrimExpr>& dims);

}  // namespace headrace::ops
