// Operators that pick elements by index.
#include <algorithm>
#include <numeric>

#include "frontend/onnx/compositions/index.h"
#include "frontend/onnx/single/rows.h"
#include "ops/algorithm/select.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/mask.h"
#include "ops/tensor/rearrange.h"
#include "ops/tensor/repeat.h"
#include "ops/tensor/shape.h"
#include "ops/tensor/slice.h"
#include "tensor/strides.h"

namespace headrace::onnx {

namespace {

// Constant indices made non-negative, for an axis of a known size; refuses one that is out of range.
Expr checked_indices(NodeContext& context, const NDArray& indices, int64_t size) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < indices.num_elements(); ++i) {
    const int64_t index = element_as_int(indices.tensor(), i);
    if (index < -size || index >= size) context.invalid("index {} is out of range for an axis of {}", index, size);
    values.push_back(index < 0 ? index + size : index);
  }
  return context.int_constant(indices.shape(), values);
}

// ONNX Gather (1, 11, 13). Indices that are not known are checked when the model runs; along an axis of symbolic length
// they wrap around, which serves the negative ones.
Exprs convert_gather(NodeContext& context) {
  const Expr data = context.input(0), indices = context.input(1);
  const Span& span = context.span();
  context.check_dtype(indices, "an index", is_index, "int32 or int64");
  const size_t axis = context.axis_of(context.int_attr("axis", 0), context.rank(data));
  const auto take = [&](const Expr& picked, const char* mode) {
    return Exprs{ops::take(data, picked, static_cast<int64_t>(axis), mode, 0, span)};
  };
  const auto size = as_int(context.dims(data)[axis]);
  if (!size) return take(indices, "wrap");
  if (const NDArray known = context.facts().constant(indices))
    return take(checked_indices(context, known, *size), "clip");
  return take(counted_from_begin(context, indices, *size), "fast");
}

// ONNX GatherElements (11, 13).
Exprs convert_gather_elements(NodeContext& context) {
  context.check_dtype(context.input(1), "an index", is_index, "int32 or int64");
  return {ops::gather(context.input(0), context.int_attr("axis", 0), context.input(1), context.span())};
}

// ONNX GatherND (11, 12, 13): the index tuples lie along the last axis of the indices, relay's along the first.
Exprs convert_gather_nd(NodeContext& context) {
  const Expr data = context.input(0), indices = context.input(1);
  context.check_dtype(indices, "an index", is_index, "int64");
  const auto rank = static_cast<int64_t>(context.rank(indices));
  if (rank == 0) context.invalid("its indices are a scalar");
  Shape axes{rank - 1};
  for (int64_t i = 0; i + 1 < rank; ++i) axes.push_back(i);
  const int64_t batch_dims = context.int_attr("batch_dims", 0);
  return {ops::gather_nd(data, ops::transpose(indices, axes, context.span()), batch_dims, context.span())};
}

struct SliceSpec {
  Shape begins, ends, axes, steps;
};

SliceSpec slice_attributes(NodeContext& context) {
  const auto begins = context.ints_attr("starts"), ends = context.ints_attr("ends");
  if (!begins || !ends) context.invalid("attributes 'starts' and 'ends' are needed");
  if (context.input_count() > 1) context.invalid("it has {} inputs; up to opset 9 it takes one", context.input_count());
  return {*begins, *ends, context.ints_attr("axes").value_or(Shape()), {}};
}

SliceSpec slice_inputs(NodeContext& context) {
  if (context.input_count() < 3) context.invalid("its inputs 'starts' and 'ends' are needed");
  return {context.ints(1, "starts"), context.ints(2, "ends"), context.has(3) ? context.ints(3, "axes") : Shape(),
          context.has(4) ? context.ints(4, "steps") : Shape()};
}

bool has_symbols(NodeContext& context, size_t i) {
  const auto values = context.facts().values(context.input(i));
  return values && !as_shape(Array<PrimExpr>(*values)) && std::none_of(values->begin(), values->end(), is_any);
}

// Begins or ends that are expressions of symbolic dimensions: given to relay as tensors.
Expr slice_by_tensors(NodeContext& context) {
  const auto count = context.known_dim(context.input(1), 0);
  const Shape axes = context.has(3) ? context.ints(3, "axes") : Shape();
  const Expr steps = context.has(4)
                         ? context.input(4)
                         : context.int_constant({count}, std::vector<int64_t>(static_cast<size_t>(count), 1));
  return ops::strided_slice(context.input(0), context.input(1), context.input(2), steps, axes, "end", context.span());
}

// A slice that goes down and starts before its axis starts at the first element, where numpy's (and relay's) is empty:
// Slice-13 clamps starts to [0, dims[axis] - 1] for negative steps.
void keep_starts_on_axis(NodeContext& context, SliceSpec& slice) {
  const Expr x = context.input(0);
  for (size_t i = 0; i < slice.steps.size(); ++i) {
    if (slice.steps[i] >= 0 || slice.begins[i] >= 0) continue;
    const size_t axis = context.axis_of(slice.axes[i], context.rank(x), "one of its axes");
    if (const auto size = as_int(context.dims(x)[axis])) slice.begins[i] = std::max(slice.begins[i], -*size);
  }
}

// ONNX Slice (1, 10, 11, 13): numpy's but for that, with ends past the axis cut off.
Exprs convert_slice(NodeContext& context) {
  if (context.opset() >= 10 && context.input_count() >= 3 && (has_symbols(context, 1) || has_symbols(context, 2)))
    return {slice_by_tensors(context)};
  SliceSpec slice = context.opset() < 10 ? slice_attributes(context) : slice_inputs(context);
  const size_t count = slice.begins.size();
  if (slice.axes.empty()) {
    slice.axes.resize(count);
    std::iota(slice.axes.begin(), slice.axes.end(), 0);
  }
  if (slice.ends.size() != count || slice.axes.size() != count || (!slice.steps.empty() && slice.steps.size() != count))
    context.invalid("its starts, ends, axes and steps differ in number");
  if (count == 0) return {context.input(0)};
  keep_starts_on_axis(context, slice);
  return {
      ops::strided_slice(context.input(0), slice.begins, slice.ends, slice.steps, slice.axes, "end", context.span())};
}

// ONNX OneHot (9, 11): `on` where the index is the position along a new axis, else `off`; a negative index counts from
// the depth.
Exprs convert_one_hot(NodeContext& context) {
  const Span& span = context.span();
  const double number = context.number(1, "depth");
  if (!(number >= 1 && number <= 0x1p31)) context.invalid("its depth is {}", number);
  const auto depth = static_cast<int64_t>(number);
  const size_t rank = context.rank(context.input(0)) + 1;
  const size_t axis = context.axis_of(context.int_attr("axis", -1), rank);
  const Expr index = ops::cast(context.input(0), DataType::int_(64), span);
  const Expr counted = counted_from_begin(context, index, depth);
  const auto value = [&](int64_t i) {
    return ops::squeeze(ops::strided_slice(context.input(2), {i}, {i + 1}, {}, {0}, "end", span), Shape{0}, span);
  };
  return {ops::one_hot(counted, value(1), value(0), depth, static_cast<int64_t>(axis), context.dtype(context.input(2)),
                       span)};
}

// ONNX Trilu (14): the triangle of each matrix above (or below) the k-th diagonal, zero elsewhere.
Exprs convert_trilu(NodeContext& context) {
  const Expr x = context.input(0);
  const size_t rank = context.rank(x);
  if (rank < 2) context.invalid("its input has {} dimensions; it needs 2 or more", rank);
  const bool upper = context.flag_attr("upper", true);
  const Expr k = context.has(1) ? context.one_number(1, "k") : context.int_constant({}, {0});
  return {ops::trilu(x, k, upper, context.span())};
}

// ONNX Compress (9, 11), for a known condition: the slices where it holds.
Exprs convert_compress(NodeContext& context) {
  const NDArray condition = context.constant(1, "condition");
  std::vector<int64_t> picked;
  for (int64_t i = 0; i < condition.num_elements(); ++i) {
    if (element_as_int(condition.tensor(), i) != 0) picked.push_back(i);
  }
  const auto count = static_cast<int64_t>(picked.size());
  const Span& span = context.span();
  const Expr x = context.has_attr("axis") ? context.input(0) : ops::reshape(context.input(0), Shape{-1}, false, span);
  const size_t axis = context.axis_of(context.int_attr("axis", 0), context.rank(x));
  if (!picked.empty() && picked.back() >= context.known_dim(x, axis))
    context.invalid("its condition is longer than axis {}", axis);
  return {ops::take(x, context.int_constant({count}, picked), static_cast<int64_t>(axis), "clip", 0, span)};
}

// ONNX ReverseSequence (10): the first lens[b] elements of each batch b in the opposite order along the time axis.
Exprs convert_reverse_sequence(NodeContext& context) {
  const Expr x = context.input(0);
  const int64_t batch_axis = context.int_attr("batch_axis", 1), time_axis = context.int_attr("time_axis", 0);
  const bool are_first_two = (batch_axis == 0 && time_axis == 1) || (batch_axis == 1 && time_axis == 0);
  if (context.rank(x) < 2 || !are_first_two) context.invalid("batch_axis and time_axis must be 0 and 1");
  return {ops::reverse_sequence(x, context.input(1), time_axis, batch_axis, context.span())};
}

// ONNX NonZero (9, 13): the places along the second axis. Where the data is not known, there are as many as a run
// finds; native code has such tensors as outputs of the model alone.
Exprs convert_non_zero(NodeContext& context) {
  const Expr x = context.input(0);
  const auto rank = static_cast<int64_t>(context.rank(x));
  const NDArray known = context.facts().constant(x);
  if (!known)
    return {ops::cast(ops::transpose(ops::argwhere(x, context.span()), {1, 0}, context.span()), DataType::int_(64),
                      context.span())};
  std::vector<int64_t> found;
  for (int64_t i = 0; i < known.num_elements(); ++i) {
    const bool holds =
        known.dtype().is_float() ? element_as_double(known.tensor(), i) != 0 : element_as_int(known.tensor(), i) != 0;
    if (holds) found.push_back(i);
  }
  const auto count = static_cast<int64_t>(found.size());
  context.check_table_size(count * rank);
  const Shape strides = dense_strides(known.shape());
  std::vector<int64_t> places;
  for (size_t axis = 0; axis < strides.size(); ++axis) {
    for (const int64_t at : found) places.push_back(at / strides[axis] % known.shape()[axis]);
  }
  return {context.int_constant({rank, count}, places)};
}

}  // namespace

std::span<const OpRow> index_rows() {
  static constexpr OpRow kRows[] = {
      {"Gather", convert_gather, 2, 2},
      {"GatherElements", convert_gather_elements, 2, 2, 11},
      {"GatherND", convert_gather_nd, 2, 2, 11},
      {"Slice", convert_slice, 1, 5},
      {"OneHot", convert_one_hot, 3, 3, 9},
      {"Trilu", convert_trilu, 1, 2, 14},
      {"NonZero", convert_non_zero, 1, 1, 9},
      {"Compress", convert_compress, 2, 2, 9},
      {"ReverseSequence", convert_reverse_sequence, 2, 2, 10},
  };
  return kRows;
}

}  // namespace headrace::onnx
