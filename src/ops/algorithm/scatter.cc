#include "ops/algorithm/scatter.h"

#include "arith/canonical.h"
#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "ops/loops/indices_beside.h"
#include "ops/loops/index_value.h"
#include "ops/loops/move.h"

namespace headrace::ops {

void ScatterElementsAttrs::fields(FieldList<ScatterElementsAttrs>& f) {
  f.field<&ScatterElementsAttrs::axis>("axis",
                                       {.default_value = 0, .has_default = true, .doc = "the axis that indices name"})
      .field<&ScatterElementsAttrs::reduction>(
          "reduction", {.default_value = "update",
                        .has_default = true,
                        .doc = "update, add, mul, mean, min or max: how an update joins the element"});
}

void ScatterNDAttrs::fields(FieldList<ScatterNDAttrs>& f) {
  f.field<&ScatterNDAttrs::mode>(
      "mode", {.default_value = "update", .has_default = true, .doc = "update, add, mul, min or max"});
}

namespace {

using relay::make_call;

void check_mode(const RelationInput& input, std::string_view name, const std::string& mode, bool has_mean) {
  for (const std::string_view known : {"update", "add", "mul", "min", "max"}) {
    if (mode == known) return;
  }
  if (has_mean && mode == "mean") return;
  input.fail(fmt::format("{} is '{}', expected update, add, mul, {}min or max", name, mode, has_mean ? "mean, " : ""));
}

void check_operands(const RelationInput& input, const TensorType& data, const TensorType& indices,
                    const TensorType& updates, const std::string& mode) {
  if (!indices->dtype.is_int() && !indices->dtype.is_uint())
    input.fail(fmt::format("indices must be integers, got {}", show(indices)));
  check_same_dtype(input, data, updates, "updates");
  if (mode != "update" && data->dtype.is_bool()) input.fail(fmt::format("data must be numbers, got {}", show(data)));
}

void check_shape(const RelationInput& input, const Array<PrimExpr>& wanted, const TensorType& got,
                 std::string_view what) {
  bool agrees = wanted.size() == got->shape.size();
  for (size_t i = 0; agrees && i < wanted.size(); ++i) agrees = !arith::is_unequal(wanted[i], got->shape[i]);
  if (!agrees) input.fail(fmt::format("{} must have the shape {}, got {}", what, show_dims(wanted), show(got)));
}

Type relate_scatter_elements(const RelationInput& input) {
  const TensorType data = input.tensor(0), indices = input.tensor(1), updates = input.tensor(2);
  const auto& attrs = input.call.attrs_as<ScatterElementsAttrs>();
  check_mode(input, "reduction", attrs.reduction, true);
  if (!data || !indices || !updates) return {};
  check_operands(input, data, indices, updates, attrs.reduction);
  const size_t axis = normal_axis(input, attrs.axis, data->shape.size());
  check_shape(input, indices->shape, updates, "updates");
  check_indices_beside(input, data, indices, axis);
  return data;
}

Type relate_scatter_nd(const RelationInput& input) {
  const TensorType data = input.tensor(0), indices = input.tensor(1), updates = input.tensor(2);
  const auto& attrs = input.call.attrs_as<ScatterNDAttrs>();
  check_mode(input, "mode", attrs.mode, false);
  if (!data || !indices || !updates) return {};
  check_operands(input, data, indices, updates, attrs.mode);
  const auto depth = indices->shape.empty() ? std::nullopt : as_int(indices->shape[0]);
  if (!depth) input.fail(fmt::format("the first dimension of indices must be known: {}", show(indices)));
  if (*depth > static_cast<int64_t>(data->shape.size()))
    input.fail(fmt::format("indices name {} axes, and data is {}", *depth, show(data)));
  Array<PrimExpr> wanted(indices->shape.begin() + 1, indices->shape.end());
  for (size_t i = static_cast<size_t>(*depth); i < data->shape.size(); ++i) wanted.push_back(data->shape[i]);
  check_shape(input, wanted, updates, "updates");
  return data;
}

Type relate_invert_permutation(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  if (!data) return {};
  if (data->shape.size() != 1 || !(data->dtype.is_int() || data->dtype.is_uint()))
    input.fail(fmt::format("data must be integers of one dimension, got {}", show(data)));
  return data;
}

// ---- eval

// Reads index i; a negative one counts from the end.
int64_t place_at(const EvalInput& input, int64_t i, int64_t n) {
  return checked_index_at(input, input.args[1], i, n, true);
}

template <typename C>
C joined(std::string_view mode, C old, C update) {
  if (mode == "add" || mode == "mean") return wrapping_add(old, update);
  if (mode == "mul") return wrapping_mul(old, update);
  if (mode == "update") return update;
  // NaN stays.
  if (old != old || update != update) return old != old ? old : update;
  return (mode == "min") == (update < old) ? update : old;
}

// Returns whether the elements are joined in a wider dtype than theirs, and rounded when all updates are in: sums and
// products of float16 and bfloat16, and all means.
bool joins_wide(std::string_view mode, DataType dtype) {
  return mode == "mean" || ((mode == "add" || mode == "mul") && dtype.is_float() && dtype.bits() < 32);
}

// Writes update i, in order, to where place(i) says.
template <typename F>
NDArray scattered(const EvalInput& input, const std::string& mode, F&& place) {
  const NDArray out = input.args[0].copy();
  dispatch_any(out.dtype(), [&]<typename T>() {
    using C = Compute<T>;
    const Elements<T> updates(input.args[2]), y(out);
    const auto size = static_cast<size_t>(out.num_elements());
    std::vector<C> wide(joins_wide(mode, out.dtype()) ? size : 0);
    std::vector<int64_t> counts(mode == "mean" ? size : 0, 1);  // the terms of each mean
    for (size_t i = 0; i < wide.size(); ++i) wide[i] = y[static_cast<int64_t>(i)];
    for (int64_t i = 0; i < input.args[2].num_elements(); ++i) {
      const int64_t at = place(i);
      if (wide.empty()) {
        y.set(at, joined(mode, y[at], updates[i]));
      } else {
        wide[static_cast<size_t>(at)] = joined(mode, wide[static_cast<size_t>(at)], updates[i]);
      }
      if (!counts.empty()) ++counts[static_cast<size_t>(at)];
    }
    if (counts.empty()) {
      for (size_t i = 0; i < wide.size(); ++i) y.set(static_cast<int64_t>(i), wide[i]);
    }
    for (size_t i = 0; i < counts.size(); ++i) {
      if constexpr (std::is_unsigned_v<C>) {
        y.set(static_cast<int64_t>(i), static_cast<C>(wide[i] / static_cast<uint64_t>(counts[i])));
      } else if constexpr (is_floating<C>) {
        y.set(static_cast<int64_t>(i), wide[i] / static_cast<C>(counts[i]));
      } else {
        y.set(static_cast<int64_t>(i), static_cast<C>(wide[i] / counts[i]));
      }
    }
  });
  return out;
}

std::vector<NDArray> eval_scatter_elements(const EvalInput& input) {
  const auto& attrs = input.attrs<ScatterElementsAttrs>();
  const Shape &shape = input.args[0].shape(), &picks = input.args[1].shape();
  const size_t axis = normal_axis(attrs.axis, shape.size());
  const Shape strides = dense_strides(shape), pick_strides = dense_strides(picks);
  return {scattered(input, attrs.reduction, [&](int64_t i) {
    int64_t at = 0;
    for (size_t k = 0; k < shape.size(); ++k) {
      const int64_t own = i / pick_strides[k] % picks[k];
      at += strides[k] * (k == axis ? place_at(input, i, shape[k]) : own);
    }
    return at;
  })};
}

std::vector<NDArray> eval_scatter_nd(const EvalInput& input) {
  const NDArray& indices = input.args[1];
  const Shape& shape = input.args[0].shape();
  const Shape strides = dense_strides(shape);
  const auto depth = static_cast<size_t>(indices.shape()[0]);
  const int64_t columns = depth == 0 ? 0 : indices.num_elements() / indices.shape()[0];
  int64_t slice = 1;
  for (size_t k = depth; k < shape.size(); ++k) slice *= shape[k];
  if (slice == 0) {
    for (int64_t i = 0; i < indices.num_elements(); ++i) place_at(input, i, shape[static_cast<size_t>(i / columns)]);
  }
  return {scattered(input, input.attrs<ScatterNDAttrs>().mode, [&](int64_t i) {
    int64_t at = i % slice;
    for (size_t m = 0; m < depth; ++m) {
      at += strides[m] * place_at(input, static_cast<int64_t>(m) * columns + i / slice, shape[m]);
    }
    return at;
  })};
}

std::vector<NDArray> eval_invert_permutation(const EvalInput& input) {
  const NDArray out = input.make_output();
  const int64_t n = out.num_elements();
  std::vector<bool> seen(static_cast<size_t>(n), false);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = index_at(input.args[0], i);
    if (at < 0 || at >= n || seen[static_cast<size_t>(at)])
      throw_at(
          input.call.span, "invert_permutation",
          fmt::format("data is not a permutation of 0 .. {}: it has {} at {}", n - 1, index_text(input.args[0], i), i));
    seen[static_cast<size_t>(at)] = true;
    set_element_int(out.tensor(), at, i);
  }
  return {out};
}

}  // namespace

void register_scatter_ops() {
  OpBuilder("scatter_elements",
            "data with out[i][indices[i][j][k]][k] joined by updates[i][j][k], for axis 1, in row-major order of the "
            "updates: data T[...], indices int[...], updates T[as indices] -> data's type. A negative index counts "
            "from the end. A mean is of the element and all its updates.")
      .arg("data", "Tensor", "T[...], numbers, or bool for update: the tensor to write into")
      .arg("indices", "Tensor", "int[...]: where each update goes along the axis")
      .arg("updates", "Tensor", "T[as indices]: the values to write")
      .attrs<ScatterElementsAttrs>()
      .relation(relate_scatter_elements)
      .fusion(FusionKind::opaque)
      .level(10)
      .eval(eval_scatter_elements);
  OpBuilder("scatter_nd",
            "data with the slice at indices[:, y] joined by updates[y], in row-major order of y: data T[...], indices "
            "int[M, Y...], updates T[Y..., data's axes after M] -> data's type. A negative index counts from the end.")
      .arg("data", "Tensor", "T[...], numbers, or bool for update: the tensor to write into")
      .arg("indices", "Tensor", "int[M, Y...]: where each update goes, by M axes")
      .arg("updates", "Tensor", "T[Y..., data's axes after M]: the values to write")
      .attrs<ScatterNDAttrs>()
      .relation(relate_scatter_nd)
      .fusion(FusionKind::opaque)
      .level(3)
      .eval(eval_scatter_nd);
  OpBuilder("invert_permutation", "out[data[i]] = i: data int[n], a permutation of 0 .. n - 1 -> the same type.")
      .arg("data", "Tensor", "int[n]: a permutation")
      .relation(relate_invert_permutation)
      .fusion(FusionKind::opaque)
      .level(10)
      .eval(eval_invert_permutation);
}

Expr scatter_elements(Expr data, Expr indices, Expr updates, int64_t axis, std::string reduction, Span span) {
  return call_with<ScatterElementsAttrs>("scatter_elements", {std::move(data), std::move(indices), std::move(updates)},
                                         std::move(span),
                                         [&](auto& a) { a.axis = axis, a.reduction = std::move(reduction); });
}

Expr scatter_nd(Expr data, Expr indices, Expr updates, std::string mode, Span span) {
  return call_with<ScatterNDAttrs>("scatter_nd", {std::move(data), std::move(indices), std::move(updates)},
                                   std::move(span), [&](auto& a) { a.mode = std::move(mode); });
}

}  // namespace headrace::ops
