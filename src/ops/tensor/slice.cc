#include "ops/tensor/slice.h"

#include "arith/canonical.h"
#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/indices_beside.h"
#include "ops/loops/index_value.h"
#include "ops/loops/move.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/slice_layout.h"
#include "relay/match.h"

namespace headrace::ops {

void StridedSliceAttrs::fields(FieldList<StridedSliceAttrs>& f) {
  f.field<&StridedSliceAttrs::begin>("begin", {.default_value = Shape(),
                                               .has_default = true,
                                               .doc = "first index a sliced axis; negative counts from the end"})
      .field<&StridedSliceAttrs::end>(
          "end", {.default_value = Shape(),
                  .has_default = true,
                  .doc = "one past the last, or with slice_mode size the number of indices (-1: all)"})
      .field<&StridedSliceAttrs::strides>(
          "strides", {.default_value = Shape(), .has_default = true, .doc = "steps, not 0; empty: 1"})
      .field<&StridedSliceAttrs::slice_mode>("slice_mode",
                                             {.default_value = "end", .has_default = true, .doc = "end or size"})
      .field<&StridedSliceAttrs::axes>(
          "axes", {.default_value = Shape(), .has_default = true, .doc = "the sliced axes; empty: the first ones"});
}

void TakeAttrs::fields(FieldList<TakeAttrs>& f) {
  f.field<&TakeAttrs::batch_dims>(
       "batch_dims", {.default_value = 0, .has_default = true, .doc = "leading axes that data and indices share"})
      .field<&TakeAttrs::axis>("axis", {.optional = true,
                                        .default_value = nullptr,
                                        .has_default = true,
                                        .doc = "the axis that indices select from; None: the flattened data"})
      .field<&TakeAttrs::mode>("mode", {.default_value = "clip",
                                        .has_default = true,
                                        .doc = "clip, wrap, or fast (an index out of range is an error)"});
}

void GatherAttrs::fields(FieldList<GatherAttrs>& f) {
  f.field<&GatherAttrs::axis>("axis", {.doc = "the axis that indices select from"});
}

void GatherNDAttrs::fields(FieldList<GatherNDAttrs>& f) {
  f.field<&GatherNDAttrs::batch_dims>(
       "batch_dims", {.default_value = 0, .has_default = true, .doc = "leading axes that data and indices share"})
      .field<&GatherNDAttrs::index_rank>(
          "index_rank",
          {.optional = true,
           .default_value = Value(),
           .has_default = true,
           .doc = "the first dimension of indices, where its type does not say it; it is checked when it runs"});
}

SliceRange slice_range(int64_t n, int64_t begin, int64_t end, int64_t step) {
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
  const auto clamp = [&](int64_t at) { return std::clamp(at < 0 ? at + n : at, low, high); };
  const int64_t from = clamp(begin), to = clamp(end);
  const int64_t span = step > 0 ? to - from : from - to;
  // As unsigned numbers, since the negative of the least int64 is none.
  const uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : uint64_t{0} - static_cast<uint64_t>(step);
  return {from, step, span <= 0 ? 0 : static_cast<int64_t>((static_cast<uint64_t>(span) - 1) / stride + 1)};
}

namespace {

using relay::make_call;

// ---- strided_slice

using Range = SliceRange;

Range range_of(int64_t n, int64_t begin, int64_t end, int64_t step, bool by_size) {
  if (!by_size) return slice_range(n, begin, end, step);
  const Range tail = slice_range(n, begin, INT64_MAX, 1);
  return {tail.begin, 1, end < 0 ? tail.count : std::min(end, tail.count)};
}

// The parts of a slice, each known or not, by sliced axis.
using Parts = std::vector<std::optional<int64_t>>;

PrimExpr symbolic_bound(const PrimExpr& n, int64_t at) {
  if (at >= INT32_MAX) return n;
  const PrimExpr zero = make_int(0);
  if (at < 0) return at <= INT32_MIN ? zero : make_binary(BinaryOp::max, n + at, zero);
  return at == 0 ? zero : make_binary(BinaryOp::min, make_int(at), n);
}

PrimExpr sliced_dim(const PrimExpr& n, std::optional<int64_t> begin, std::optional<int64_t> end,
                    std::optional<int64_t> step, bool by_size) {
  if (!begin || !end || !step) return make_any();
  if (const auto size = as_int(n)) return make_int(range_of(*size, *begin, *end, *step, by_size).count);
  if (is_any(n) || (by_size && *end >= 0)) return make_any();
  if (*step < 0) return *step == -1 && (*begin == -1 || *begin >= INT32_MAX) && *end <= INT32_MIN ? n : make_any();
  const PrimExpr from = symbolic_bound(n, *begin), to = symbolic_bound(n, by_size ? INT64_MAX : *end);
  const PrimExpr length = is_int(from, 0) ? to : make_binary(BinaryOp::max, to - from, make_int(0));
  return arith::simplify_dim(*step == 1 ? length : floor_div(length + (*step - 1), make_int(*step)));
}

// Returns the attribute, or the argument; unknown elements are empty.
Parts slice_part(const RelationInput& input, const Shape& attribute, size_t argument, std::string_view name) {
  if (input.arg_types.size() == 1) return Parts(attribute.begin(), attribute.end());
  const TensorType type = input.tensor(argument);
  if (!type || type->shape.size() != 1 || !(type->dtype.is_int() || type->dtype.is_uint()))
    input.fail(fmt::format("{} must be an integer tensor of one dimension, got {}", name,
                           to_string(input.arg_types[argument])));
  Parts parts;
  if (const auto value = input.arg_value(argument)) {
    for (const PrimExpr& element : *value) parts.push_back(as_int(element));
    return parts;
  }
  const auto length = as_int(type->shape[0]);
  if (!length) input.fail(fmt::format("the number of sliced axes must be known: {} is {}", name, show(type)));
  return Parts(static_cast<size_t>(*length));
}

struct SliceParts {
  Parts begin, end, strides;
};

SliceParts slice_parts(const RelationInput& input, const StridedSliceAttrs& attrs) {
  const size_t args = input.arg_types.size();
  if (args != 1 && args != 3 && args != 4)
    input.fail(fmt::format("takes data, or data, begin, end and optionally strides; got {} arguments", args));
  if (args > 1 && !(attrs.begin.empty() && attrs.end.empty() && attrs.strides.empty()))
    input.fail("begin, end and strides are given twice, as attributes and as arguments");
  SliceParts parts{slice_part(input, attrs.begin, 1, "begin"), slice_part(input, attrs.end, 2, "end"), {}};
  if (args != 3) parts.strides = slice_part(input, attrs.strides, 3, "strides");
  if (parts.strides.size() == 1 && parts.begin.size() > 1) parts.strides.resize(parts.begin.size(), parts.strides[0]);
  if (parts.strides.empty()) parts.strides.assign(parts.begin.size(), 1);
  if (parts.end.size() != parts.begin.size() || parts.strides.size() != parts.begin.size())
    input.fail(fmt::format("begin, end and strides have {}, {} and {} entries", parts.begin.size(), parts.end.size(),
                           parts.strides.size()));
  return parts;
}

std::vector<size_t> sliced_axes(const RelationInput& input, const Shape& axes, size_t count, size_t rank) {
  std::vector<size_t> result;
  if (!axes.empty() && axes.size() != count)
    input.fail(fmt::format("axes has {} entries and begin {}", axes.size(), count));
  if (count > rank) input.fail(fmt::format("{} axes are sliced of a tensor of {} dimensions", count, rank));
  for (size_t i = 0; i < count; ++i) {
    result.push_back(axes.empty() ? i : normal_axis(input, axes[i], rank, "axes: axis"));
    if (std::count(result.begin(), result.end(), result.back()) > 1)
      input.fail(fmt::format("axes names axis {} twice", axes[i]));
  }
  return result;
}

Type relate_strided_slice(const RelationInput& input) {
  const auto& attrs = input.call.attrs_as<StridedSliceAttrs>();
  const TensorType data = input.tensor(0);
  if (!data) return {};
  if (attrs.slice_mode != "end" && attrs.slice_mode != "size")
    input.fail(fmt::format("slice_mode is '{}', expected end or size", attrs.slice_mode));
  const bool by_size = attrs.slice_mode == "size";
  const SliceParts parts = slice_parts(input, attrs);
  Array<PrimExpr> dims = data->shape;
  const std::vector<size_t> axes = sliced_axes(input, attrs.axes, parts.begin.size(), dims.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    if (parts.strides[i] == 0) input.fail(fmt::format("the stride of axis {} is 0", axes[i]));
    dims.set(axes[i], sliced_dim(dims[axes[i]], parts.begin[i], parts.end[i], parts.strides[i], by_size));
  }
  return make_tensor_type(dims, data->dtype);
}

std::vector<NDArray> eval_strided_slice(const EvalInput& input) {
  const auto& attrs = input.attrs<StridedSliceAttrs>();
  const Shape& shape = input.args[0].shape();
  const bool tensors = input.args.size() > 1;
  const Shape begin = tensors ? to_ints(input.args[1]) : attrs.begin,
              end = tensors ? to_ints(input.args[2]) : attrs.end;
  Shape steps = input.args.size() > 3 ? to_ints(input.args[3]) : tensors ? Shape() : attrs.strides;
  if (steps.size() == 1) steps.resize(begin.size(), steps[0]);
  Shape strides = dense_strides(shape);
  int64_t start = 0;
  for (size_t i = 0; i < begin.size(); ++i) {
    const size_t axis = attrs.axes.empty() ? i : normal_axis(attrs.axes[i], shape.size());
    const Range range =
        range_of(shape[axis], begin[i], end[i], steps.empty() ? 1 : steps[i], attrs.slice_mode == "size");
    start += range.begin * strides[axis];
    // A step past the axis is never taken; it must not overflow either.
    strides[axis] *= range.count > 1 ? range.step : 0;
  }
  NDArray result = input.make_output();
  move_elements(input.args[0], result, [&](const Shape& index) { return start + dot(index, strides); });
  return {result};
}

// ---- take

Array<PrimExpr> dims_between(const Array<PrimExpr>& dims, size_t begin, size_t end) {
  return Array<PrimExpr>(dims.begin() + static_cast<std::ptrdiff_t>(begin),
                         dims.begin() + static_cast<std::ptrdiff_t>(end));
}

void append(Array<PrimExpr>& dims, const Array<PrimExpr>& more) {
  for (const PrimExpr& dim : more) dims.push_back(dim);
}

void check_indices(const RelationInput& input, const TensorType& indices) {
  if (!indices->dtype.is_int() && !indices->dtype.is_uint())
    input.fail(fmt::format("indices must be integers, got {}", show(indices)));
}

// Leading axes of data and indices that must agree.
size_t check_batch(const RelationInput& input, const TensorType& data, const TensorType& indices, int64_t batch_dims) {
  const int64_t batch = batch_dims < 0 ? batch_dims + static_cast<int64_t>(indices->shape.size()) : batch_dims;
  if (batch < 0 || batch > static_cast<int64_t>(std::min(data->shape.size(), indices->shape.size())))
    input.fail(fmt::format("batch_dims {} does not fit {} and {}", batch_dims, show(data), show(indices)));
  for (size_t i = 0; i < static_cast<size_t>(batch); ++i) {
    if (arith::is_unequal(data->shape[i], indices->shape[i]))
      input.fail(fmt::format("batch axis {} differs: {} and {}", i, show(data), show(indices)));
  }
  return static_cast<size_t>(batch);
}

Type relate_take(const RelationInput& input) {
  const auto& attrs = input.call.attrs_as<TakeAttrs>();
  const TensorType data = input.tensor(0), indices = input.tensor(1);
  if (!data || !indices) return {};
  check_indices(input, indices);
  if (attrs.mode != "clip" && attrs.mode != "wrap" && attrs.mode != "fast")
    input.fail(fmt::format("mode is '{}', expected clip, wrap or fast", attrs.mode));
  if (!attrs.axis) {
    if (attrs.batch_dims != 0) input.fail("batch_dims needs an axis");
    return make_tensor_type(indices->shape, data->dtype);
  }
  const size_t axis = normal_axis(input, *attrs.axis, data->shape.size());
  const size_t batch = check_batch(input, data, indices, attrs.batch_dims);
  if (batch > axis) input.fail(fmt::format("batch_dims {} is past axis {}", attrs.batch_dims, axis));
  Array<PrimExpr> dims = dims_between(data->shape, 0, axis);
  append(dims, dims_between(indices->shape, batch, indices->shape.size()));
  append(dims, dims_between(data->shape, axis + 1, data->shape.size()));
  return make_tensor_type(dims, data->dtype);
}

void check_not_empty(const EvalInput& input, int64_t n) {
  if (n == 0) throw_at(input.call.span, input.call.as_op()->name, "an index selects from an axis that has no elements");
}

// Returns index i, within n as the mode says; UserError for one out of range.
int64_t taken_index(const EvalInput& input, int64_t i, int64_t n, std::string_view mode) {
  check_not_empty(input, n);
  if (mode == "clip") return std::clamp<int64_t>(index_at(input.args[1], i), 0, n - 1);
  if (mode == "wrap") return wrapped_index_at(input.args[1], i, n);
  return checked_index_at(input, input.args[1], i, n, false);
}

// Checks indices where the result has no elements: they must be right all the same, as in native code. `check` gets the
// number of each index in row-major order.
template <typename Check>
void check_unused_indices(const EvalInput& input, const NDArray& result, Check&& check) {
  if (result.num_elements() != 0) return;
  for (int64_t i = 0; i < input.args[1].num_elements(); ++i) check(i);
}

std::vector<NDArray> eval_take(const EvalInput& input) {
  const auto& attrs = input.attrs<TakeAttrs>();
  const NDArray& data = input.args[0];
  const NDArray& indices = input.args[1];
  const Shape shape = attrs.axis ? data.shape() : Shape{data.num_elements()};
  const size_t axis = attrs.axis ? normal_axis(*attrs.axis, shape.size()) : 0;
  const size_t picks = indices.shape().size();
  const size_t batch =
      static_cast<size_t>(attrs.batch_dims < 0 ? attrs.batch_dims + static_cast<int64_t>(picks) : attrs.batch_dims);
  const Shape data_strides = dense_strides(shape), index_strides = dense_strides(indices.shape());
  NDArray result = input.make_output();
  check_unused_indices(input, result, [&](int64_t i) {
    if (attrs.mode == "fast") taken_index(input, i, shape[axis], attrs.mode);
  });
  move_elements(data, result, [&](const Shape& index) {
    int64_t at = 0, pick = 0;
    for (size_t i = 0; i < axis; ++i) at += index[i] * data_strides[i];
    for (size_t i = 0; i < picks; ++i) pick += (i < batch ? index[i] : index[axis + i - batch]) * index_strides[i];
    for (size_t i = axis + 1; i < shape.size(); ++i) at += index[i + picks - batch - 1] * data_strides[i];
    return at + taken_index(input, pick, shape[axis], attrs.mode) * data_strides[axis];
  });
  return {result};
}

// ---- gather, gather_nd

Type relate_gather(const RelationInput& input) {
  const TensorType data = input.tensor(0), indices = input.tensor(1);
  if (!data || !indices) return {};
  check_indices(input, indices);
  const size_t axis = normal_axis(input, input.call.attrs_as<GatherAttrs>().axis, data->shape.size());
  check_indices_beside(input, data, indices, axis);
  return make_tensor_type(indices->shape, data->dtype);
}

// Reads index i; a negative one counts from the end.
int64_t python_index(const EvalInput& input, int64_t i, int64_t n) {
  check_not_empty(input, n);
  return checked_index_at(input, input.args[1], i, n, true);
}

std::vector<NDArray> eval_gather(const EvalInput& input) {
  const Shape& shape = input.args[0].shape();
  const size_t axis = normal_axis(input.attrs<GatherAttrs>().axis, shape.size());
  const Shape strides = dense_strides(shape);
  NDArray result = input.make_output();
  int64_t next = 0;
  move_elements(input.args[0], result, [&](const Shape& index) {
    const int64_t chosen = python_index(input, next++, shape[axis]);
    return dot(index, strides) + (chosen - index[axis]) * strides[axis];
  });
  return {result};
}

// Relation: indices[M, Y...] -> [Y..., data's axes after batch_dims + M].
Type relate_gather_nd(const RelationInput& input) {
  const TensorType data = input.tensor(0), indices = input.tensor(1);
  if (!data || !indices) return {};
  check_indices(input, indices);
  if (indices->shape.empty()) input.fail("indices must have at least one dimension");
  const auto& attrs = input.call.attrs_as<GatherNDAttrs>();
  const auto known = as_int(indices->shape[0]);
  const auto depth = known ? known : attrs.index_rank;
  if (!depth)
    input.fail(
        fmt::format("the first dimension of indices must be known, by their type or as index_rank: {}", show(indices)));
  if (attrs.index_rank.value_or(*depth) != *depth)
    input.fail(fmt::format("index_rank is {}, and indices {} name {} axes", *attrs.index_rank, show(indices), *depth));
  const int64_t batch = attrs.batch_dims;
  const auto rank = static_cast<int64_t>(data->shape.size());
  if (*depth < 0 || batch < 0 || batch > rank || *depth > rank - batch ||
      batch >= static_cast<int64_t>(indices->shape.size()))
    input.fail(fmt::format("indices name {} axes after {} batch axes; data is {}", *depth, batch, show(data)));
  for (size_t i = 0; i < static_cast<size_t>(batch); ++i) {
    if (arith::is_unequal(data->shape[i], indices->shape[i + 1]))
      input.fail(fmt::format("batch axis {} differs: {} of data and {} of indices", i, to_string(data->shape[i]),
                             to_string(indices->shape[i + 1])));
  }
  Array<PrimExpr> dims = dims_between(indices->shape, 1, indices->shape.size());
  append(dims, dims_between(data->shape, static_cast<size_t>(batch + *depth), data->shape.size()));
  return make_tensor_type(dims, data->dtype);
}

std::vector<NDArray> eval_gather_nd(const EvalInput& input) {
  const NDArray& indices = input.args[1];
  const Shape& shape = input.args[0].shape();
  const Shape strides = dense_strides(shape), index_strides = dense_strides(indices.shape());
  const auto batch = static_cast<size_t>(input.attrs<GatherNDAttrs>().batch_dims);
  const auto depth = static_cast<size_t>(indices.shape()[0]);
  if (const auto rank = input.attrs<GatherNDAttrs>().index_rank; rank && *rank != indices.shape()[0])
    throw_user_error("gather_nd: the first dimension of indices is {}, expected index_rank, {}", depth, *rank);
  for (size_t i = 0; i < batch; ++i) {  // sizes that only the run tells
    if (indices.shape()[i + 1] != shape[i])
      throw_user_error("gather_nd: batch axis {} differs: {} of data and {} of indices", i, shape[i],
                       indices.shape()[i + 1]);
  }
  const size_t picks = indices.shape().size() - 1;
  NDArray result = input.make_output();
  check_unused_indices(input, result, [&](int64_t i) {
    python_index(input, i, shape[batch + static_cast<size_t>(i / index_strides[0])]);
  });
  move_elements(input.args[0], result, [&](const Shape& index) {
    int64_t at = 0, pick = 0;
    for (size_t i = 0; i < batch; ++i) at += index[i] * strides[i];
    for (size_t i = 0; i < picks; ++i) pick += index[i] * index_strides[i + 1];
    for (size_t m = 0; m < depth; ++m) {
      const int64_t chosen = python_index(input, pick + static_cast<int64_t>(m) * index_strides[0], shape[batch + m]);
      at += chosen * strides[batch + m];
    }
    for (size_t i = batch + depth; i < shape.size(); ++i) at += index[picks + i - batch - depth] * strides[i];
    return at;
  });
  return {result};
}

// ---- results of unknown size

constexpr DataType kExtentType = DataType::int_(64);

Expr extent_of(int64_t value) {
  const NDArray data = NDArray::empty({1}, kExtentType);
  set_element_int(data.tensor(), 0, value);
  return relay::make_constant(data);
}

// Returns whether every element of a constant argument is `value`.
bool is_all(const Expr& arg, int64_t value) {
  const auto* constant = arg.as<relay::ConstantNode>();
  if (constant == nullptr) return false;
  const NDArray data = constant->data.to_dense();
  for (int64_t i = 0; i < data.num_elements(); ++i) {
    if (element_as_int(data.tensor(), i) != value) return false;
  }
  return true;
}

// Bounds data[0:end] along one axis, where `end` is computed; negative ends count from the back, as in Python.
Expr bound_slice_end(const relay::CallNode& call) {
  const auto axis = unknown_axis(call.checked_type().as<TensorTypeNode>());
  if (!axis || call.args.size() < 3) return {};
  const auto& attrs = call.attrs_as<StridedSliceAttrs>();
  const auto shape = relay::known_shape_of(call.args[0]);
  if (!shape || attrs.slice_mode != "end" || relay::known_shape_of(call.args[2]) != std::optional(Shape{1})) return {};
  const auto rank = static_cast<int64_t>(shape->size());
  const int64_t sliced = attrs.axes.empty() ? 0 : attrs.axes[0];
  if (static_cast<size_t>(sliced < 0 ? sliced + rank : sliced) != *axis) return {};
  if (!is_all(call.args[1], 0) || (call.args.size() > 3 && !is_all(call.args[3], 1))) return {};
  const Span& span = call.span;
  const Expr size = extent_of((*shape)[*axis]), zero = extent_of(0), given = cast(call.args[2], kExtentType, span);
  const Expr counted = where(binary("less", given, zero, span), add(given, size, span), given, span);
  const Expr extent = binary("minimum", binary("maximum", counted, zero, span), size, span);
  return relay::make_tuple({call.args[0], extent}, span);
}

bool slices_other_axes(const relay::CallNode& call, const UnknownAxis& where) {
  const auto& attrs = call.attrs_as<StridedSliceAttrs>();
  if (call.args.size() != 1 || attrs.slice_mode != "end") return false;
  const auto rank = static_cast<int64_t>(relay::tensor_type_of(call.args[0])->shape.size());
  for (size_t i = 0; i < attrs.begin.size(); ++i) {
    const int64_t axis = attrs.axes.empty() ? static_cast<int64_t>(i) : attrs.axes[i];
    if (static_cast<size_t>(axis < 0 ? axis + rank : axis) != where.axis) continue;
    const int64_t step = attrs.strides.empty() ? 1 : attrs.strides[attrs.strides.size() == 1 ? 0 : i];
    if (attrs.begin[i] != 0 || attrs.end[i] < INT32_MAX || step != 1) return false;
  }
  return true;
}

// Indices behind the extent may be any, and mode "fast" stops at one that is out of range.
bool looks_up_apart(const relay::CallNode& call, const UnknownAxis& where) {
  const auto& attrs = call.attrs_as<TakeAttrs>();
  return where.arg == 1 && attrs.batch_dims == 0 && attrs.mode != "fast";
}

}  // namespace

void register_slice_ops() {
  moving(
      OpBuilder("strided_slice",
                "Every stride-th element from begin to end on some axes, as Python's slices (numpy indexing). begin, "
                "end and strides are attributes or int tensors.")
          .arg("data", "Tensor", "T[...]: the tensor to cut")
          .arg("begin", "Tensor", "int[axes], optional: begin as a tensor")
          .arg("end", "Tensor", "int[axes], optional, after begin: end as a tensor")
          .arg("strides", "Tensor", "int[axes], optional, after end: strides as a tensor")
          .any_args()
          .attrs<StridedSliceAttrs>(),
      relate_strided_slice, eval_strided_slice)
      .fact(kTreatsApart, slices_other_axes)
      .fact(kBoundedForm, bound_slice_end)
      .fact(kKeepLayout, keep_layout_of_slice);
  moving(OpBuilder("take", "Slices of data along an axis at indices: [.., n, ..] and indices[Y] -> [.., Y, ..].")
             .arg("data", "Tensor", "T[.., n, ..]: the tensor to read")
             .arg("indices", "Tensor", "int[Y...]: which slices along the axis")
             .attrs<TakeAttrs>(),
         relate_take, eval_take)
      .fact(kTreatsApart, looks_up_apart);
  moving(OpBuilder("gather",
                   "out[i][j][k] = data[i][indices[i][j][k]][k] for axis 1; a negative index counts from the end.")
             .arg("data", "Tensor", "T[...]: the tensor to read")
             .arg("indices", "Tensor", "int[...], of data's rank: which element along the axis")
             .attrs<GatherAttrs>(),
         relate_gather, eval_gather);
  moving(OpBuilder("gather_nd", "Slices of data at index tuples indices[:, y]: indices[M, Y] -> [Y, rest of data].")
             .arg("data", "Tensor", "T[...]: the tensor to read")
             .arg("indices", "Tensor", "int[M, Y...]: M indices for each slice, of the axes after batch_dims")
             .attrs<GatherNDAttrs>(),
         relate_gather_nd, eval_gather_nd);
}

Expr strided_slice(Expr data, Shape begin, Shape end, Shape strides, Shape axes, std::string slice_mode, Span span) {
  auto attrs = make_object<StridedSliceAttrs>();
  attrs->begin = std::move(begin);
  attrs->end = std::move(end);
  attrs->strides = std::move(strides);
  attrs->axes = std::move(axes);
  attrs->slice_mode = std::move(slice_mode);
  return make_call("strided_slice", {data}, attrs, span);
}

Expr strided_slice(Expr data, Expr begin, Expr end, Expr strides, Shape axes, std::string slice_mode, Span span) {
  auto attrs = make_object<StridedSliceAttrs>();
  attrs->axes = std::move(axes);
  attrs->slice_mode = std::move(slice_mode);
  return make_call("strided_slice", {data, begin, end, strides}, attrs, span);
}

Expr take(Expr data, Expr indices, std::optional<int64_t> axis, std::string mode, int64_t batch_dims, Span span) {
  auto attrs = make_object<TakeAttrs>();
  attrs->axis = axis;
  attrs->mode = std::move(mode);
  attrs->batch_dims = batch_dims;
  return make_call("take", {data, indices}, attrs, span);
}

Expr gather(Expr data, int64_t axis, Expr indices, Span span) {
  auto attrs = make_object<GatherAttrs>();
  attrs->axis = axis;
  return make_call("gather", {data, indices}, attrs, span);
}

Expr gather_nd(Expr data, Expr indices, int64_t batch_dims, Span span) {
  auto attrs = make_object<GatherNDAttrs>();
  attrs->batch_dims = batch_dims;
  return make_call("gather_nd", {data, indices}, attrs, span);
}

}  // namespace headrace::ops
