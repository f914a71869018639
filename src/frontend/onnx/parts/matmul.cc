#include "frontend/onnx/parts/matmul.h"

#include "arith/canonical.h"
#include "frontend/onnx/node/op_row.h"
#include "ops/loops/dims.h"
#include "ops/nn/matmul.h"
#include "ops/op_handles.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/repeat.h"
#include "ops/tensor/shape.h"
#include "relay/match.h"

namespace headrace::onnx {

namespace {

// The product in a dtype, or in that of its operands.
ops::DenseAttrs dense_attrs(std::optional<DataType> dtype) {
  ops::DenseAttrs attrs;
  attrs.out_dtype = dtype;
  return attrs;
}

// Returns the constant whose transpose the expression is; null where it is not one.
Expr transposed_constant(const Expr& matrix) {
  const auto* call = relay::call_of(matrix, op::kTranspose);
  if (call == nullptr || !call->args[0].is<relay::ConstantNode>()) return {};
  const Shape& axes = call->attrs_as<ops::TransposeAttrs>().axes;
  return axes.empty() || axes == Shape{1, 0} ? call->args[0] : Expr();
}

// a[..., M, K] by b[K, N]. A constant b is given to nn.dense transposed, which constant folding does once. The
// transpose of a constant that another node reads, such as a table of embeddings, is not a second constant.
Expr multiply_by_matrix(const Expr& a, const Expr& b, const Span& span, std::optional<DataType> dtype = {}) {
  if (const Expr matrix = transposed_constant(b)) return ops::dense(a, matrix, dense_attrs(dtype), span);
  if (b.is<relay::ConstantNode>()) return ops::dense(a, ops::transpose(b, {1, 0}, span), dense_attrs(dtype), span);
  ops::MatmulAttrs attrs;
  attrs.out_dtype = dtype;
  return ops::matmul(a, b, attrs, span);
}

using Dims = std::vector<PrimExpr>;

Dims broadcast_batches(NodeContext& context, const Dims& a, const Dims& b) {
  const size_t rank = std::max(a.size(), b.size());
  Dims result;
  for (size_t i = 0; i < rank; ++i) {
    const PrimExpr one = make_int(1);
    const PrimExpr x = i + a.size() < rank ? one : a[i + a.size() - rank];
    const PrimExpr y = i + b.size() < rank ? one : b[i + b.size() - rank];
    const auto both = ops::broadcast_dims(x, y);
    if (!both) context.invalid("its batch dimensions {} and {} do not broadcast", to_string(x), to_string(y));
    result.push_back(*both);
  }
  return result;
}

bool same_dims(const Dims& a, const Dims& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](auto& x, auto& y) { return arith::is_equal(x, y); });
}

// `x` [..., P, Q] as [B, P, Q], where B counts `batches`, or is 1 when x has no more than one matrix.
Expr as_batch(NodeContext& context, Expr x, const Dims& batches) {
  const Dims all = context.dims(x);
  const Dims mine(all.begin(), all.end() - 2);
  const PrimExpr rows = all[all.size() - 2], columns = all.back();
  if (is_int(arith::product(Array<PrimExpr>(mine)), 1)) return context.reshape(x, Dims{make_int(1), rows, columns});
  if (!same_dims(mine, batches)) {
    Dims full = batches;
    full.insert(full.end(), {rows, columns});
    const auto shape = as_shape(Array<PrimExpr>(full));
    if (!shape) context.refuse(HR_REASON_DYNAMIC_UNSUPPORTED, "its batches broadcast; fix the input shapes");
    x = ops::broadcast_to(x, *shape, context.span());
  }
  return context.reshape(x, Dims{arith::product(Array<PrimExpr>(batches)), rows, columns});
}

}  // namespace

Expr multiply(NodeContext& context, Expr a, Expr b) {
  const Span& span = context.span();
  const size_t a_rank = context.rank(a), b_rank = context.rank(b);
  if (a_rank == 0 || b_rank == 0) context.invalid("a scalar has no matrix product");
  if (b_rank == 1) {
    const Expr column = multiply(context, a, ops::expand_dims(b, 1, 1, span));
    return ops::squeeze(column, Shape{-1}, span);
  }
  if (a_rank == 1) {
    const Expr row = multiply(context, ops::expand_dims(a, 0, 1, span), b);
    return ops::squeeze(row, Shape{-2}, span);
  }
  if (b_rank == 2) return multiply_by_matrix(a, b, span);
  const Dims a_dims = context.dims(a), b_dims = context.dims(b);
  const Dims batches =
      broadcast_batches(context, Dims(a_dims.begin(), a_dims.end() - 2), Dims(b_dims.begin(), b_dims.end() - 2));
  ops::BatchMatmulAttrs attrs;
  attrs.transpose_b = false;
  const Expr result = ops::batch_matmul(as_batch(context, a, batches), as_batch(context, b, batches), attrs, span);
  Dims out = batches;
  out.insert(out.end(), {a_dims[a_dims.size() - 2], b_dims.back()});
  return out.size() == 3 ? result : context.reshape(result, out);
}

Expr quantized_product(NodeContext& context, const Expr& a, const Expr& b, const Expr& a_zero, const Expr& b_zero) {
  const Expr known = transposed_constant(b), one = context.scalar(1, DataType::float_(32));
  const Expr weight = known ? known : ops::transpose(b, {1, 0}, context.span());
  return ops::call_with<ops::DenseAttrs>("qnn.dense", {a, weight, a_zero, b_zero, one, one}, context.span(),
                                         [](ops::DenseAttrs& attrs) { attrs.out_dtype = DataType::int_(32); });
}

Expr times_factor(NodeContext& context, const Expr& x, double factor) {
  if (factor == 1) return x;
  if (!context.dtype(x).is_float()) {
    context.refuse(HR_REASON_DTYPE_UNSUPPORTED, "alpha and beta must be 1 for {}", context.dtype(x));
  }
  return ops::multiply(x, context.scalar(factor, context.dtype(x)), context.span());
}

// alpha * A' * B' + beta * C, the primes transposing; C broadcasts to the product. With an
// alpha the product of 16-bit numbers is float32 until all is added, since it alone may be past their range.
Expr gemm(NodeContext& context) {
  const Span& span = context.span();
  Expr a = context.input(0), b = context.input(1);
  context.check_dtype(a, "data", is_number, "numbers");
  if (context.rank(a) != 2 || context.rank(b) != 2) context.invalid("A and B must be matrices");
  if (context.opset() < 7) context.flag_attr("broadcast", false);  // C broadcasts either way
  const double alpha = context.float_attr("alpha", 1), beta = context.float_attr("beta", 1);
  if (context.flag_attr("transA", false)) a = ops::transpose(a, {1, 0}, span);
  const DataType dtype = context.dtype(a);
  const bool widens = alpha != 1 && dtype.is_float() && dtype.bits() == 16;
  const std::optional<DataType> wide = widens ? std::optional(DataType::float_(32)) : std::nullopt;
  const Expr product = context.flag_attr("transB", false) ? ops::dense(a, b, dense_attrs(wide), span)
                                                          : multiply_by_matrix(a, b, span, wide);
  const Expr result = times_factor(context, product, alpha);
  // As in BLAS, with a beta of 0 C is not even read: it may hold NaN.
  if (!context.has(2) || beta == 0) return context.cast(result, dtype);
  const Expr c = times_factor(context, widens ? context.widened(context.input(2)) : context.input(2), beta);
  const Dims c_dims = context.dims(c), out = context.dims(result);
  const bool is_bias = c_dims.size() == 1 && arith::is_equal(c_dims[0], out[1]);
  return context.cast(is_bias ? ops::bias_add(result, c, 1, span) : ops::add(result, c, span), dtype);
}

}  // namespace headrace::onnx
