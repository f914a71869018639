#include "ops/algorithm/sparse.h"

#include "arith/canonical.h"
#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "ops/loops/index.h"
#include "ops/loops/index_value.h"
#include "relay/expr.h"

namespace headrace::ops {

void SparseToDenseAttrs::fields(FieldList<SparseToDenseAttrs>& f) {
  f.field<&SparseToDenseAttrs::output_shape>("output_shape", {.doc = "the result's shape"});
}

namespace {

void check_integers(const RelationInput& input, std::string_view name, const TensorType& type, size_t rank) {
  if (!is_integer(type) || type->shape.size() != rank)
    input.fail(
        fmt::format("{} must be integers of {} dimension{}, got {}", name, rank, rank == 1 ? "" : "s", show(type)));
}

void check_equal(const RelationInput& input, std::string_view what, const PrimExpr& a, const PrimExpr& b) {
  if (arith::is_unequal(a, b)) input.fail(fmt::format("{} differ: {} and {}", what, to_string(a), to_string(b)));
}

// ---- sparse_to_dense

Type relate_sparse_to_dense(const RelationInput& input) {
  const Shape& shape = input.call.attrs_as<SparseToDenseAttrs>().output_shape;
  for (const int64_t size : shape) {
    if (size < 0) input.fail(fmt::format("output_shape has a negative size: {}", show_dims(to_dims(shape))));
  }
  const TensorType indices = input.tensor(0), values = input.tensor(1), rest = input.tensor(2);
  if (!indices || !values || !rest) return {};
  const size_t rank = indices->shape.size();
  if (!is_integer(indices) || rank > 2)
    input.fail(fmt::format("sparse_indices must be integers of two dimensions at most, got {}", show(indices)));
  if (values->shape.size() > 1)
    input.fail(fmt::format("sparse_values must be of one dimension at most, got {}", show(values)));
  if (!rest->shape.empty() || rest->dtype.is_bool() != values->dtype.is_bool())
    input.fail(fmt::format("default_value must be a scalar for {}, got {}", show(values), show(rest)));
  const PrimExpr axes = rank == 2 ? indices->shape[1] : make_int(1);
  check_equal(input, "the axes that indices name and those of output_shape", axes,
              make_int(static_cast<int64_t>(shape.size())));
  if (rank > 0 && !values->shape.empty())
    check_equal(input, "the numbers of indices and of values", indices->shape[0], values->shape[0]);
  return make_tensor_type(to_dims(shape), values->dtype);
}

std::vector<NDArray> eval_sparse_to_dense(const EvalInput& input) {
  const NDArray out = input.make_output();
  const NDArray &indices = input.args[0], &values = input.args[1], rest = as_dtype(input.args[2], out.dtype());
  const Shape strides = dense_strides(out.shape());
  const auto axes = static_cast<int64_t>(strides.size());
  const int64_t count = axes == 0 ? 0 : indices.num_elements() / axes;
  dispatch_any(out.dtype(), [&]<typename T>() {
    const Elements<T> x(values), fill(rest), y(out);
    for (int64_t i = 0; i < out.num_elements(); ++i) y.set(i, fill[0]);
    for (int64_t i = 0; i < count; ++i) {
      int64_t at = 0;
      for (int64_t axis = 0; axis < axes; ++axis) {
        const auto k = static_cast<size_t>(axis);
        at += strides[k] * checked_index_at(input, indices, i * axes + axis, out.shape()[k], true);
      }
      y.set(at, x[values.shape().empty() ? 0 : i]);
    }
  });
  return {out};
}

// ---- sparse_reshape

Type relate_sparse_reshape(const RelationInput& input) {
  const TensorType indices = input.tensor(0), before = input.tensor(1), after = input.tensor(2);
  if (!indices || !before || !after) return {};
  check_integers(input, "sparse_indices", indices, 2);
  check_integers(input, "prev_shape", before, 1);
  check_integers(input, "new_shape", after, 1);
  check_equal(input, "the axes that indices name and those of prev_shape", indices->shape[1], before->shape[0]);
  return make_tuple_type({make_tensor_type(Array<PrimExpr>{indices->shape[0], after->shape[0]}, indices->dtype),
                          make_tensor_type(after->shape, after->dtype)});
}

Shape integers_of(const NDArray& tensor) {
  Shape result;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) result.push_back(index_at(tensor, i));
  return result;
}

// Returns the new shape with the size in place of its -1.
Shape resolved_shape(const EvalInput& input, const Shape& before, Shape after) {
  int64_t known = 1, open = -1;
  for (size_t i = 0; i < after.size(); ++i) {
    if (after[i] == -1 && open < 0) {
      open = static_cast<int64_t>(i);
    } else {
      known *= after[i];
    }
  }
  const int64_t total = num_elements(before);
  if (open >= 0 && known > 0) after[static_cast<size_t>(open)] = total / known;
  if (num_elements(after) != total)
    throw_at(
        input.call.span, "sparse_reshape",
        fmt::format("a tensor of shape {} has no shape {}", show_dims(to_dims(before)), show_dims(to_dims(after))));
  return after;
}

std::vector<NDArray> eval_sparse_reshape(const EvalInput& input) {
  const Shape before = integers_of(input.args[1]), after = resolved_shape(input, before, integers_of(input.args[2]));
  const auto from = static_cast<int64_t>(before.size()), to = static_cast<int64_t>(after.size());
  const Shape strides = dense_strides(before), own = dense_strides(after);
  const int64_t count = input.args[0].shape()[0];
  const NDArray places = NDArray::empty({count, to}, input.out_types[0]->dtype),
                shape = NDArray::empty({to}, input.out_types[1]->dtype);
  for (int64_t i = 0; i < count; ++i) {
    int64_t flat = 0;
    for (int64_t k = 0; k < from; ++k) flat += strides[static_cast<size_t>(k)] * index_at(input.args[0], i * from + k);
    for (int64_t k = 0; k < to; ++k) {
      const int64_t stride = own[static_cast<size_t>(k)];
      set_element_int(places.tensor(), i * to + k, stride == 0 ? 0 : flat / stride);
      flat = stride == 0 ? flat : flat % stride;
    }
  }
  for (int64_t k = 0; k < to; ++k) set_element_int(shape.tensor(), k, after[static_cast<size_t>(k)]);
  return {places, shape};
}

// ---- sparse_fill_empty_rows

Type relate_sparse_fill_empty_rows(const RelationInput& input) {
  const TensorType indices = input.tensor(0), values = input.tensor(1), shape = input.tensor(2), rest = input.tensor(3);
  if (!indices || !values || !shape || !rest) return {};
  check_integers(input, "sparse_indices", indices, 2);
  check_integers(input, "dense_shape", shape, 1);
  if (values->shape.size() != 1)
    input.fail(fmt::format("sparse_values must be of one dimension, got {}", show(values)));
  check_same_dtype(input, values, rest, "default_value");
  if (!rest->shape.empty()) input.fail(fmt::format("default_value must be a scalar, got {}", show(rest)));
  check_equal(input, "the numbers of indices and of values", indices->shape[0], values->shape[0]);
  check_equal(input, "the axes that indices name and those of dense_shape", indices->shape[1], shape->shape[0]);
  const auto sizes = input.arg_value(2);
  const PrimExpr rows = sizes && !sizes->empty() ? sizes->front() : make_any();
  return make_tuple_type({make_tensor_type(Array<PrimExpr>{make_any(), indices->shape[1]}, indices->dtype),
                          make_tensor_type(Array<PrimExpr>{make_any()}, values->dtype),
                          make_tensor_type(Array<PrimExpr>{rows}, DataType::bool_())});
}

std::vector<NDArray> eval_sparse_fill_empty_rows(const EvalInput& input) {
  const NDArray &indices = input.args[0], &values = input.args[1];
  const int64_t axes = indices.shape()[1], count = indices.shape()[0];
  const int64_t rows = axes == 0 ? 0 : index_at(input.args[2], 0);
  // The entries of each row, in order.
  std::vector<std::vector<int64_t>> entries(static_cast<size_t>(std::max<int64_t>(rows, 0)));
  for (int64_t i = 0; i < count; ++i)
    entries[static_cast<size_t>(checked_index_at(input, indices, i * axes, rows, false))].push_back(i);
  int64_t total = 0;
  for (const auto& row : entries) total += std::max<int64_t>(1, static_cast<int64_t>(row.size()));
  const NDArray places = NDArray::empty({total, axes}, indices.dtype()),
                result = NDArray::empty({total}, values.dtype()), is_empty = NDArray::empty({rows}, DataType::bool_());
  dispatch_any(values.dtype(), [&]<typename T>() {
    const Elements<T> x(values), fill(input.args[3]), y(result);
    int64_t next = 0;
    for (int64_t row = 0; row < rows; ++row) {
      const auto& own = entries[static_cast<size_t>(row)];
      set_element_int(is_empty.tensor(), row, own.empty() ? 1 : 0);
      for (size_t k = 0; k < std::max<size_t>(own.size(), 1); ++k, ++next) {
        for (int64_t axis = 0; axis < axes; ++axis) {
          const int64_t at = own.empty() ? (axis == 0 ? row : 0) : index_at(indices, own[k] * axes + axis);
          set_element_int(places.tensor(), next * axes + axis, at);
        }
        y.set(next, own.empty() ? fill[0] : x[own[k]]);
      }
    }
  });
  return {places, result, is_empty};
}

}  // namespace

void register_sparse_ops() {
  OpBuilder(
      "sparse_to_dense",
      "default_value in each element, but values where indices say, in order: sparse_indices int[n, axes], int[n] or "
      "int[], sparse_values T[n] or T[] -> T[output_shape]. A negative index counts from the end.")
      .arg("sparse_indices", "Tensor", "int[n, axes], int[n] or int[]: the places")
      .arg("sparse_values", "Tensor", "T[n] or T[]: the values there")
      .arg("default_value", "Tensor", "T[], or of another dtype, which is cast to T: the value elsewhere")
      .attrs<SparseToDenseAttrs>()
      .relation(relate_sparse_to_dense)
      .fusion(FusionKind::opaque)
      .level(3)
      .eval(eval_sparse_to_dense);
  OpBuilder("sparse_reshape",
            "The places of the same elements in another shape: sparse_indices int[n, a], prev_shape int[a], new_shape "
            "int[b] -> (int[n, b], int[b]: new_shape with the size in place of a -1).")
      .arg("sparse_indices", "Tensor", "int[n, a]: places in prev_shape")
      .arg("prev_shape", "Tensor", "int[a]: the shape that they are in")
      .arg("new_shape", "Tensor", "int[b]: another shape, with one -1 at most")
      .relation(relate_sparse_reshape)
      .fusion(FusionKind::opaque)
      .level(3)
      .eval(eval_sparse_reshape);
  OpBuilder(
      "sparse_fill_empty_rows",
      "An entry of default_value at the beginning of each row that has none, and the others in the order of their "
      "rows: sparse_indices int[n, a], sparse_values T[n], dense_shape int[a], default_value T[] -> (int[?, a], "
      "T[?], bool[rows]: which rows had none).")
      .arg("sparse_indices", "Tensor", "int[n, a]: the places")
      .arg("sparse_values", "Tensor", "T[n]: the values there")
      .arg("dense_shape", "Tensor", "int[a]: the shape of the whole")
      .arg("default_value", "Tensor", "T[]: the value of the entries that are put in")
      .relation(relate_sparse_fill_empty_rows)
      .fusion(FusionKind::opaque)
      .level(3)
      .eval(eval_sparse_fill_empty_rows);
}

}  // namespace headrace::ops
