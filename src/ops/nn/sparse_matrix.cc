// Products and sums of matrices in compressed rows.
#include "arith/canonical.h"
#include "ops/algorithm/sparse.h"
#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "ops/loops/index_value.h"
#include "relay/expr.h"

namespace headrace::ops {

void SparseDenseAttrs::fields(FieldList<SparseDenseAttrs>& f) {
  f.field<&SparseDenseAttrs::sparse_lhs>(
      "sparse_lhs", {.default_value = false, .has_default = true, .doc = "the sparse matrix is the left one"});
}

namespace {

// Checks data, indices and indptr, which are arguments `first` and the two behind it. With `blocks` the data may be of
// three dimensions, blocks of a matrix.
bool check_rows(const RelationInput& input, size_t first, bool blocks) {
  const TensorType data = input.tensor(first), indices = input.tensor(first + 1), starts = input.tensor(first + 2);
  if (!data || !indices || !starts) return false;
  const size_t rank = data->shape.size();
  if (data->dtype.is_bool() || !(rank == 1 || (blocks && rank == 3)))
    input.fail(fmt::format("sparse_data must be numbers of {}, got {}",
                           blocks ? "one dimension, or blocks in three" : "one dimension", show(data)));
  if (!is_integer(indices) || indices->shape.size() != 1 || arith::is_unequal(indices->shape[0], data->shape[0]))
    input.fail(fmt::format("sparse_indices must be {} integers, got {}", to_string(data->shape[0]), show(indices)));
  if (!is_integer(starts) || starts->shape.size() != 1 || is_int(starts->shape[0], 0))
    input.fail(fmt::format("sparse_indptr must be integers of one dimension, got {}", show(starts)));
  return true;
}

PrimExpr row_count(const TensorType& data, const TensorType& starts) {
  const PrimExpr rows = add_const(starts->shape[0], -1);
  return data->shape.size() == 3 ? rows * data->shape[1] : rows;
}

Type relate_sparse_dense(const RelationInput& input) {
  const TensorType dense = input.tensor(0);
  if (!dense || !check_rows(input, 1, true)) return {};
  const TensorType data = input.tensor(1);
  if (dense->shape.size() != 2) input.fail(fmt::format("dense_data must be a matrix, got {}", show(dense)));
  check_same_dtype(input, dense, data, "sparse_data");
  const PrimExpr rows = result_dim(input, row_count(data, input.tensor(3)));
  const bool is_left = input.call.attrs_as<SparseDenseAttrs>().sparse_lhs;
  return make_tensor_type(is_left ? Array<PrimExpr>{rows, dense->shape[0]} : Array<PrimExpr>{dense->shape[0], rows},
                          dense->dtype);
}

// Calls body(row, entry) for the entries of each row, in order; an error of the call where the starts do not ascend
// within the entries.
template <typename F>
void for_each_entry(const EvalInput& input, const NDArray& starts, int64_t entries, F&& body) {
  for (int64_t row = 0; row + 1 < starts.num_elements(); ++row) {
    const int64_t begin = index_at(starts, row), end = index_at(starts, row + 1);
    if (begin < 0 || end > entries)
      throw_at(input.call.span, input.call.as_op()->name,
               fmt::format("row {} has entries {} to {} of {}", row, begin, end, entries));
    for (int64_t i = begin; i < end; ++i) body(row, i);
  }
}

std::vector<NDArray> eval_sparse_dense(const EvalInput& input) {
  const NDArray out = input.make_output();
  const NDArray &dense = input.args[0], &data = input.args[1], &indices = input.args[2];
  const bool is_left = input.attrs<SparseDenseAttrs>().sparse_lhs, has_blocks = data.shape().size() == 3;
  const int64_t height = has_blocks ? data.shape()[1] : 1, width = has_blocks ? data.shape()[2] : 1;
  const int64_t m = dense.shape()[0], k = dense.shape()[1], n = m == 0 ? 0 : out.num_elements() / m;
  dispatch_number(out.dtype(), [&]<typename T>() {
    using C = Compute<T>;
    const Elements<T> x(dense), w(data), y(out);
    std::vector<C> sums(static_cast<size_t>(out.num_elements()), C(0));
    for_each_entry(input, input.args[3], data.shape()[0], [&](int64_t row, int64_t entry) {
      const int64_t column = checked_index_at(input, indices, entry, width == 0 ? 0 : k / width, false);
      input.spend(m * height * width);
      for (int64_t i = 0; i < height * width * m; ++i) {
        const int64_t line = i % m, r = i / m / width, c = i / m % width, at_row = row * height + r;
        const int64_t at = is_left ? at_row * m + line : line * n + at_row;
        const C product = wrapping_mul(x[line * k + column * width + c], w[(entry * height + r) * width + c]);
        sums[static_cast<size_t>(at)] = wrapping_add(sums[static_cast<size_t>(at)], product);
      }
    });
    for (int64_t i = 0; i < out.num_elements(); ++i) y.set(i, sums[static_cast<size_t>(i)]);
  });
  return {out};
}

Type relate_sparse_add(const RelationInput& input) {
  const TensorType dense = input.tensor(0);
  if (!dense || !check_rows(input, 1, false)) return {};
  if (dense->shape.size() != 2) input.fail(fmt::format("dense_data must be a matrix, got {}", show(dense)));
  check_same_dtype(input, dense, input.tensor(1), "sparse_data");
  const PrimExpr rows = row_count(input.tensor(1), input.tensor(3));
  if (arith::is_unequal(rows, dense->shape[0]))
    input.fail(fmt::format("the sparse matrix has {} rows, and dense_data is {}", to_string(rows), show(dense)));
  return dense;
}

std::vector<NDArray> eval_sparse_add(const EvalInput& input) {
  const NDArray out = input.make_output();
  const int64_t n = out.shape()[1];
  dispatch_number(out.dtype(), [&]<typename T>() {
    const Elements<T> x(input.args[0]), w(input.args[1]), y(out);
    std::vector<Compute<T>> sums;
    for (int64_t i = 0; i < out.num_elements(); ++i) sums.push_back(x[i]);
    for_each_entry(input, input.args[3], input.args[1].num_elements(), [&](int64_t row, int64_t entry) {
      Compute<T>& sum = sums[static_cast<size_t>(row * n + checked_index_at(input, input.args[2], entry, n, false))];
      sum = wrapping_add(sum, w[entry]);
    });
    for (int64_t i = 0; i < out.num_elements(); ++i) y.set(i, sums[static_cast<size_t>(i)]);
  });
  return {out};
}

Type relate_sparse_transpose(const RelationInput& input) {
  if (!check_rows(input, 0, false)) return {};
  return make_tuple_type({Type(input.tensor(0)), Type(input.tensor(1)), Type(input.tensor(2))});
}

std::vector<NDArray> eval_sparse_transpose(const EvalInput& input) {
  const NDArray &data = input.args[0], &indices = input.args[1], &starts = input.args[2];
  const NDArray out = input.make_output(0), rows = input.make_output(1), ends = input.make_output(2);
  const int64_t n = starts.num_elements() - 1;
  if (index_at(starts, 0) != 0 || index_at(starts, n) != data.num_elements())
    throw_at(input.call.span, "nn.sparse_transpose",
             fmt::format("sparse_indptr runs from {} to {}, and there are {} entries", index_at(starts, 0),
                         index_at(starts, n), data.num_elements()));
  // Where the next entry of each column goes.
  std::vector<int64_t> next(static_cast<size_t>(n + 1), 0);
  for (int64_t i = 0; i < data.num_elements(); ++i)
    ++next[static_cast<size_t>(checked_index_at(input, indices, i, n, false) + 1)];
  for (int64_t i = 0; i <= n; ++i) {
    if (i > 0) next[static_cast<size_t>(i)] += next[static_cast<size_t>(i - 1)];
    set_element_int(ends.tensor(), i, next[static_cast<size_t>(i)]);
  }
  dispatch_number(out.dtype(), [&]<typename T>() {
    const Elements<T> x(data), y(out);
    for_each_entry(input, starts, data.num_elements(), [&](int64_t row, int64_t entry) {
      const int64_t at = next[static_cast<size_t>(index_at(indices, entry))]++;
      y.set(at, x[entry]);
      set_element_int(rows.tensor(), at, row);
    });
  });
  return {out, rows, ends};
}

}  // namespace

void register_sparse_matrix_ops() {
  OpBuilder(
      "nn.sparse_dense",
      "dense_data T[m, k] by the transpose of a sparse matrix [n, k] in compressed rows -> T[m, n]; with sparse_lhs "
      "the sparse matrix by the transpose of dense_data -> T[n, m]. Row i has the entries sparse_indptr[i] .. "
      "sparse_indptr[i + 1] of sparse_data, in the columns that sparse_indices says. Integers wrap.")
      .arg("dense_data", "Tensor", "T[m, k], numbers: a matrix")
      .arg("sparse_data", "Tensor", "T[entries], or T[entries, r, c]: blocks of r rows and c columns")
      .arg("sparse_indices", "Tensor", "int[entries]: the column, or column of blocks, of each entry")
      .arg("sparse_indptr", "Tensor", "int[rows + 1]: where the entries of each row, or row of blocks, begin")
      .attrs<SparseDenseAttrs>()
      .relation(relate_sparse_dense)
      .fusion(FusionKind::opaque)
      .level(1)
      .eval(eval_sparse_dense);
  OpBuilder("nn.sparse_add",
            "A matrix plus one in compressed rows: dense_data T[n, k] -> the same type. Integers wrap.")
      .arg("dense_data", "Tensor", "T[n, k], numbers: a matrix")
      .arg("sparse_data", "Tensor", "T[entries]: the elements of the other, row by row")
      .arg("sparse_indices", "Tensor", "int[entries]: the column of each")
      .arg("sparse_indptr", "Tensor", "int[n + 1]: where the entries of each row begin")
      .relation(relate_sparse_add)
      .fusion(FusionKind::opaque)
      .level(1)
      .eval(eval_sparse_add);
  OpBuilder("nn.sparse_transpose",
            "The transpose of a square matrix in compressed rows: its three tensors -> a tuple of the same types, the "
            "entries of a row in the order of their columns.")
      .arg("sparse_data", "Tensor", "T[entries], numbers: the elements, row by row")
      .arg("sparse_indices", "Tensor", "int[entries]: the column of each")
      .arg("sparse_indptr", "Tensor", "int[n + 1]: where the entries of each row begin")
      .relation(relate_sparse_transpose)
      .fusion(FusionKind::opaque)
      .level(1)
      .eval(eval_sparse_transpose);
}

}  // namespace headrace::ops
