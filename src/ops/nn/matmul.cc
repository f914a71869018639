#include "ops/nn/matmul.h"

#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "relay/expr.h"

namespace headrace::ops {

void DenseAttrs::fields(FieldList<DenseAttrs>& f) {
  f.field<&DenseAttrs::units>(
       "units", {.optional = true, .default_value = Value(), .has_default = true, .doc = "output features"})
      .field<&DenseAttrs::out_dtype>(
          "out_dtype", {.optional = true, .default_value = Value(), .has_default = true, .doc = "None: as data"});
}

void MatmulAttrs::fields(FieldList<MatmulAttrs>& f) {
  f.field<&MatmulAttrs::units>(
       "units", {.optional = true, .default_value = Value(), .has_default = true, .doc = "columns of the result"})
      .field<&MatmulAttrs::out_dtype>(
          "out_dtype", {.optional = true, .default_value = Value(), .has_default = true, .doc = "None: as tensor_a"})
      .field<&MatmulAttrs::transpose_a>("transpose_a",
                                        {.default_value = false, .has_default = true, .doc = "tensor_a is [..., K, M]"})
      .field<&MatmulAttrs::transpose_b>("transpose_b",
                                        {.default_value = false, .has_default = true, .doc = "tensor_b is [N, K]"});
}

void BatchMatmulAttrs::fields(FieldList<BatchMatmulAttrs>& f) {
  f.field<&BatchMatmulAttrs::out_dtype>(
       "out_dtype", {.optional = true, .default_value = Value(), .has_default = true, .doc = "None: as tensor_a"})
      .field<&BatchMatmulAttrs::transpose_a>(
          "transpose_a", {.default_value = false, .has_default = true, .doc = "tensor_a is [B, K, M]"})
      .field<&BatchMatmulAttrs::transpose_b>(
          "transpose_b", {.default_value = true, .has_default = true, .doc = "tensor_b is [B, N, K]"});
}

namespace {

// All three ops: a[batch..., M, K] by b[batch, N, K] or their transposes.
struct Product {
  bool transpose_a, transpose_b;
  std::optional<DataType> out_dtype;
  std::optional<int64_t> units;
};
Product product_of(const DenseAttrs& a) { return {false, true, a.out_dtype, a.units}; }
Product product_of(const MatmulAttrs& a) { return {a.transpose_a, a.transpose_b, a.out_dtype, a.units}; }
Product product_of(const BatchMatmulAttrs& a) { return {a.transpose_a, a.transpose_b, a.out_dtype, std::nullopt}; }

// Returns the type [..., M, N] for a and b, whose batch dimensions the caller gives.
Type relate_product(const RelationInput& input, const Product& product, const TensorType& a, const TensorType& b,
                    std::vector<PrimExpr> batch) {
  check_factor_dtypes(input, a, b, input.call.as_op()->arguments[1].name);
  if (a->dtype.is_bool()) input.fail(fmt::format("operands must be numbers, got {}", show(a)));
  const DataType dtype = product.out_dtype.value_or(a->dtype);
  check_out_dtype(input, dtype, a->dtype);
  auto from_end = [](const TensorType& type, size_t i) { return type->shape[type->shape.size() - i]; };
  // A vector has its K only.
  const PrimExpr k_a = from_end(a, product.transpose_a ? 2 : 1), k_b = from_end(b, product.transpose_b ? 1 : 2);
  const PrimExpr n = from_end(b, product.transpose_b ? 2 : 1);
  if (!unify_dims(k_a, k_b)) {
    input.fail(fmt::format("the summed dimensions {} and {} differ: {} (transposed: {}) and {} (transposed: {})",
                           to_string(k_a), to_string(k_b), show(a), product.transpose_a, show(b), product.transpose_b));
  }
  if (const auto known = as_int(n); product.units && known && *product.units != *known) {
    input.fail(fmt::format("units is {}, but {} gives {}", *product.units, show(b), *known));
  }
  if (a->shape.size() >= 2) batch.push_back(from_end(a, product.transpose_a ? 1 : 2));
  batch.push_back(n);
  return make_tensor_type(Array<PrimExpr>(batch), dtype);
}

// Relation of dense and matmul: a has any batch dimensions, b is a matrix.
template <typename A>
Type relate_matrix(const RelationInput& input) {
  const TensorType a = input.tensor(0), b = input.tensor(1);
  if (!a) return {};
  const Product product = product_of(input.call.attrs_as<A>());
  const size_t rank = a->shape.size();
  const size_t least = product.transpose_a ? 2 : 1;
  if (rank < least)
    input.fail(fmt::format("the first operand must have {} or more dimensions, got {}", least, show(a)));
  if (!b) {
    const PrimExpr k = a->shape[rank - least];
    if (product.units && product.transpose_b)
      input.assume(1, make_tensor_type(Array<PrimExpr>{make_int(*product.units), k}, a->dtype));
    if (product.units && !product.transpose_b)
      input.assume(1, make_tensor_type(Array<PrimExpr>{k, make_int(*product.units)}, a->dtype));
    return {};
  }
  if (b->shape.size() != 2) input.fail(fmt::format("the second operand must be a matrix, got {}", show(b)));
  std::vector<PrimExpr> batch;
  for (size_t i = 0; i + 2 < rank; ++i) batch.push_back(a->shape[i]);
  return relate_product(input, product, a, b, std::move(batch));
}

Type relate_batch(const RelationInput& input) {
  const TensorType a = input.tensor(0), b = input.tensor(1);
  if (!a || !b) return {};
  if (a->shape.size() != 3 || b->shape.size() != 3) {
    input.fail(fmt::format("both operands must have 3 dimensions, got {} and {}", show(a), show(b)));
  }
  const auto batch = broadcast_dims(a->shape[0], b->shape[0]);
  if (!batch) {
    input.fail(fmt::format("batch sizes must agree or be 1: axis 0 is {} and {} of {} and {}", to_string(a->shape[0]),
                           to_string(b->shape[0]), show(a), show(b)));
  }
  return relate_product(input, product_of(input.call.attrs_as<BatchMatmulAttrs>()), a, b, {*batch});
}

// Computes out[m, n] = sum over k of a[m, k] * b[k, n], k ascending; `a`, `b`, `c` are the first elements' positions.
template <typename T>
void multiply_matrices(const EvalInput& input, const Elements<T>& x, const Elements<T>& w, const Elements<T>& y,
                       const Product& product, int64_t a, int64_t b, int64_t c, int64_t m, int64_t n, int64_t k) {
  const int64_t a_row = product.transpose_a ? 1 : k, a_column = product.transpose_a ? m : 1;
  const int64_t b_row = product.transpose_b ? 1 : n, b_column = product.transpose_b ? k : 1;
  const auto compute = [&](int64_t i, int64_t j) {
    input.spend(k);
    Compute<T> total = 0;
    for (int64_t l = 0; l < k; ++l) {
      total = wrapping_add(total, wrapping_mul(x[a + i * a_row + l * a_column], w[b + l * b_row + j * b_column]));
    }
    y.set(c + i * n + j, total);
  };
  input.for_each_part(m * n, static_cast<double>(k), [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) compute(at / n, at % n);
  });
}

template <typename A>
std::vector<NDArray> eval_product(const EvalInput& input) {
  const Product product = product_of(input.attrs<A>());
  const NDArray out = input.make_output();
  const NDArray a = as_dtype(input.args[0], out.dtype()), b = as_dtype(input.args[1], out.dtype());
  const Shape &a_shape = a.shape(), &b_shape = b.shape();
  const size_t a_rank = a_shape.size(), b_rank = b_shape.size();
  const int64_t k = b_shape[b_rank - (product.transpose_b ? 1 : 2)];
  const int64_t n = b_shape[b_rank - (product.transpose_b ? 2 : 1)];
  const int64_t m = a_rank == 1 ? 1 : a_shape[a_rank - (product.transpose_a ? 1 : 2)];
  int64_t batches = 1;
  for (size_t i = 0; i + 2 < out.shape().size(); ++i) batches *= out.shape()[i];
  // A single matrix serves every batch.
  const bool shares_a = a_rank == 3 && a_shape[0] == 1, shares_b = b_rank == 2 || b_shape[0] == 1;
  dispatch_number(out.dtype(), [&]<typename T>() {
    const Elements<T> x(a), w(b), y(out);
    for (int64_t i = 0; i < batches; ++i) {
      multiply_matrices(input, x, w, y, product, shares_a ? 0 : i * m * k, shares_b ? 0 : i * k * n, i * m * n, m, n,
                        k);
    }
  });
  return {out};
}

}  // namespace

void register_matmul_ops() {
  constexpr std::string_view kHow = "Accumulates over k in out_dtype (float16 and bfloat16 in float32); integers wrap.";
  OpBuilder("nn.dense",
            fmt::format("data T[..., K], weight T[N, K] -> out_dtype[..., N]: data by weight transposed. {}", kHow))
      .arg("data", "Tensor", "T[..., K], numbers: the rows")
      .arg("weight", "Tensor", "T[N, K]: the matrix; its row n makes column n of the result")
      .attrs<DenseAttrs>()
      .relation(relate_matrix<DenseAttrs>)
      .fusion(FusionKind::anchor)
      .eval(eval_product<DenseAttrs>);
  OpBuilder("nn.matmul", fmt::format("tensor_a T[..., M, K], tensor_b T[K, N] -> out_dtype[..., M, N]; either may be "
                                     "given transposed. {}",
                                     kHow))
      .arg("tensor_a", "Tensor", "T[..., M, K], numbers, or [..., K, M] with transpose_a: the left matrices")
      .arg("tensor_b", "Tensor", "T[K, N], or [N, K] with transpose_b: the right matrix")
      .attrs<MatmulAttrs>()
      .relation(relate_matrix<MatmulAttrs>)
      .fusion(FusionKind::anchor)
      .eval(eval_product<MatmulAttrs>);
  OpBuilder("nn.batch_matmul", fmt::format("tensor_a T[B, M, K], tensor_b T[B, K, N] -> out_dtype[B, M, N]; either may "
                                           "be given transposed (tensor_b is, unless said), a B of 1 serves all. {}",
                                           kHow))
      .arg("tensor_a", "Tensor", "T[B, M, K], numbers, or [B, K, M] with transpose_a: the left matrices")
      .arg("tensor_b", "Tensor", "T[B, K, N], or [B, N, K] with transpose_b: the right matrices")
      .attrs<BatchMatmulAttrs>()
      .relation(relate_batch)
      .fusion(FusionKind::anchor)
      .level(10)
      .eval(eval_product<BatchMatmulAttrs>);
}

Expr dense(Expr data, Expr weight, DenseAttrs attrs, Span span) {
  return relay::make_call("nn.dense", {std::move(data), std::move(weight)}, make_object<DenseAttrs>(std::move(attrs)),
                          std::move(span));
}

Expr matmul(Expr tensor_a, Expr tensor_b, MatmulAttrs attrs, Span span) {
  return relay::make_call("nn.matmul", {std::move(tensor_a), std::move(tensor_b)},
                          make_object<MatmulAttrs>(std::move(attrs)), std::move(span));
}

Expr batch_matmul(Expr tensor_a, Expr tensor_b, BatchMatmulAttrs attrs, Span span) {
  return relay::make_call("nn.batch_matmul", {std::move(tensor_a), std::move(tensor_b)},
                          make_object<BatchMatmulAttrs>(std::move(attrs)), std::move(span));
}

}  // namespace headrace::ops
