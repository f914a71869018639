#include "ops/shape.h"

#include <numeric>

#include "arith/canonical.h"
#include "ops/dims.h"
#include "ops/families.h"
#include "ops/move.h"

namespace headrace::ops {

void ReshapeAttrs::fields(FieldList<ReshapeAttrs>& f) {
  f.field<&ReshapeAttrs::newshape>("newshape",
                                   {.default_value = Shape(),
                                    .has_default = true,
                                    .doc = "sizes; 0 copies the input's, -1 is inferred, -2 copies the rest, "
                                           "-3 merges two, -4 splits one by the next two"})
      .field<&ReshapeAttrs::allowzero>("allowzero",
                                       {.default_value = false, .has_default = true, .doc = "0 is a size of zero"});
}

void TransposeAttrs::fields(FieldList<TransposeAttrs>& f) {
  f.field<&TransposeAttrs::axes>(
      "axes",
      {.default_value = Shape(), .has_default = true, .doc = "the input axis of each output axis; empty: reversed"});
}

void SqueezeAttrs::fields(FieldList<SqueezeAttrs>& f) {
  f.field<&SqueezeAttrs::axis>(
      "axis", {.default_value = Shape(), .has_default = true, .doc = "axes of size 1 to drop; empty: all of them"});
}

void ExpandDimsAttrs::fields(FieldList<ExpandDimsAttrs>& f) {
  f.field<&ExpandDimsAttrs::axis>("axis", {.doc = "where the new axes go, in -rank-1 .. rank"})
      .field<&ExpandDimsAttrs::num_newaxis>("num_newaxis",
                                            {.default_value = 1, .has_default = true, .doc = "how many"});
}

void ConcatenateAttrs::fields(FieldList<ConcatenateAttrs>& f) {
  f.field<&ConcatenateAttrs::axis>("axis", {.default_value = 0, .has_default = true, .doc = "the axis to join along"});
}

void StackAttrs::fields(FieldList<StackAttrs>& f) {
  f.field<&StackAttrs::axis>("axis", {.default_value = 0, .has_default = true, .doc = "the new axis of the result"});
}

void SplitAttrs::fields(FieldList<SplitAttrs>& f) {
  f.field<&SplitAttrs::indices_or_sections>("indices_or_sections",
                                            {.doc = "the number of equal parts, or where parts begin after the first"})
      .field<&SplitAttrs::axis>("axis", {.default_value = 0, .has_default = true, .doc = "the axis to cut"});
}

void BroadcastToAttrs::fields(FieldList<BroadcastToAttrs>& f) {
  f.field<&BroadcastToAttrs::shape>("shape",
                                    {.default_value = Shape(), .has_default = true, .doc = "the result's shape"});
}

void TileAttrs::fields(FieldList<TileAttrs>& f) {
  f.field<&TileAttrs::reps>(
      "reps", {.default_value = Shape(), .has_default = true, .doc = "copies along each axis, aligned at the last"});
}

void RepeatAttrs::fields(FieldList<RepeatAttrs>& f) {
  f.field<&RepeatAttrs::repeats>("repeats", {.doc = "copies of each element, side by side"})
      .field<&RepeatAttrs::axis>("axis", {.default_value = 0, .has_default = true, .doc = "the axis to repeat along"});
}

void ReverseAttrs::fields(FieldList<ReverseAttrs>& f) {
  f.field<&ReverseAttrs::axis>("axis", {.doc = "the axis to reverse"});
}

namespace {

using relay::make_call;
using relay::make_tuple;

// A shape that an op is asked for: its dimensions, with `?` where a value is not known.
using Dims = std::vector<PrimExpr>;

// The attribute, or argument 1 when there is one: null when its length is not known.
std::optional<Dims> requested_shape(const RelationInput& input, const Shape& attribute, std::string_view name) {
  if (input.arg_types.size() == 1) return to_dims(attribute).to_vector();
  if (input.arg_types.size() != 2)
    input.fail(fmt::format("takes data and {}, got {} arguments", name, input.arg_types.size()));
  if (!attribute.empty()) input.fail(fmt::format("{} is given twice, as attribute and as argument", name));
  const TensorType type = input.tensor(1);
  if (!type) return std::nullopt;
  if (type->shape.size() != 1 || !(type->dtype.is_int() || type->dtype.is_uint()))
    input.fail(fmt::format("{} must be an integer tensor of one dimension, got {}", name, show(type)));
  if (auto value = input.arg_value(1)) return value;
  const auto length = as_int(type->shape[0]);
  if (!length) input.fail(fmt::format("the number of dimensions must be known: {} is {}", name, show(type)));
  return Dims(static_cast<size_t>(*length), make_any());
}

// ---- reshape

struct ReshapeState {
  const RelationInput& input;
  const Array<PrimExpr> source;
  size_t at = 0;  // the next dimension of the source
  std::optional<size_t> inferred;
  Dims result;

  PrimExpr next(std::string_view what) {
    if (at >= source.size())
      input.fail(fmt::format("newshape: {} has no input dimension left to copy from {}", what, show_dims(source)));
    return source[at++];
  }
};

// -4, a, b: the next input dimension as a times b, one of which may be -1.
void split_dimension(ReshapeState& state, const Dims& newshape, size_t i) {
  if (i + 2 >= newshape.size()) state.input.fail("newshape: -4 needs two sizes after it");
  const PrimExpr whole = state.next("-4");
  PrimExpr a = newshape[i + 1], b = newshape[i + 2];
  if (is_int(a, -1) && is_int(b, -1)) state.input.fail("newshape: only one of the two sizes after -4 may be -1");
  for (PrimExpr* side : {&a, &b}) {
    if (!is_int(*side, -1)) continue;
    const PrimExpr& other = side == &a ? b : a;
    const auto quotient = arith::divide_exactly(whole, other);
    if (!quotient && as_int(whole) && as_int(other))
      state.input.fail(fmt::format("newshape: {} cannot be split by {}", to_string(whole), to_string(other)));
    *side = quotient ? *quotient : make_any();
  }
  if (arith::is_unequal(a * b, whole))
    state.input.fail(
        fmt::format("newshape: {} cannot be split into {} and {}", to_string(whole), to_string(a), to_string(b)));
  state.result.insert(state.result.end(), {a, b});
}

// One entry of newshape; gives how many entries it used.
size_t reshape_entry(ReshapeState& state, const Dims& newshape, size_t i, bool allowzero) {
  const auto value = as_int(newshape[i]);
  if (value == 0 && !allowzero) {
    state.result.push_back(state.next("0"));
  } else if (value == -1) {
    if (state.inferred) state.input.fail("newshape: only one size may be -1");
    state.inferred = state.result.size();
    state.result.push_back(make_int(1));
    ++state.at;
  } else if (value == -2) {
    while (state.at < state.source.size()) state.result.push_back(state.source[state.at++]);
  } else if (value == -3) {
    const PrimExpr first = state.next("-3");
    state.result.push_back(arith::simplify_dim(first * state.next("-3")));
  } else if (value == -4) {
    split_dimension(state, newshape, i);
    return 3;
  } else if (value && *value < 0) {
    state.input.fail(fmt::format("newshape: {} is no size; the special values are 0, -1, -2, -3 and -4", *value));
  } else {
    state.result.push_back(newshape[i]);
    ++state.at;
  }
  return 1;
}

Type relate_reshape(const RelationInput& input) {
  const auto& attrs = input.call.attrs_as<ReshapeAttrs>();
  const TensorType data = input.tensor(0);
  const auto newshape = requested_shape(input, attrs.newshape, "newshape");
  if (!data || !newshape) return {};
  ReshapeState state{input, data->shape, 0, std::nullopt, {}};
  for (size_t i = 0; i < newshape->size();) i += reshape_entry(state, *newshape, i, attrs.allowzero);
  const PrimExpr total = arith::product(data->shape), rest = arith::product(Array<PrimExpr>(state.result));
  const auto fail_count = [&] {
    input.fail(fmt::format("{} has {} elements and cannot be reshaped to {}", show(data), to_string(total),
                           show_dims(Array<PrimExpr>(*newshape))));
  };
  if (state.inferred) {
    const auto quotient = is_int(rest, 0) ? std::nullopt : arith::divide_exactly(total, rest);
    if (!quotient && as_int(total) && as_int(rest)) fail_count();
    state.result[*state.inferred] = quotient                        ? *quotient
                                    : is_any(rest) || is_any(total) ? make_any()
                                                                    : floor_div(total, rest);
  } else if (arith::is_unequal(total, rest)) {
    fail_count();
  }
  return make_tensor_type(Array<PrimExpr>(state.result), data->dtype);
}

Type relate_reshape_like(const RelationInput& input) {
  const TensorType data = input.tensor(0), like = input.tensor(1);
  if (!data || !like) return {};
  if (arith::is_unequal(arith::product(data->shape), arith::product(like->shape)))
    input.fail(fmt::format("{} cannot be reshaped like {}: the numbers of elements differ", show(data), show(like)));
  return make_tensor_type(like->shape, data->dtype);
}

Type relate_batch_flatten(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  if (!data) return {};
  if (data->shape.empty()) input.fail("a scalar has no batch axis");
  const Array<PrimExpr> rest(data->shape.begin() + 1, data->shape.end());
  return make_tensor_type({data->shape[0], arith::product(rest)}, data->dtype);
}

// The data as it is, in the result's shape.
std::vector<NDArray> eval_same_elements(const EvalInput& input) {
  NDArray result = input.make_output();
  std::memcpy(result.data<char>(), input.args[0].data<char>(), result.size_bytes());
  return {result};
}

// ---- transpose, squeeze, expand_dims

std::vector<size_t> transpose_axes(const RelationInput& input, size_t rank) {
  const Shape& axes = input.call.attrs_as<TransposeAttrs>().axes;
  std::vector<size_t> result;
  if (axes.empty()) {
    for (size_t i = rank; i-- > 0;) result.push_back(i);
    return result;
  }
  if (axes.size() != rank)
    input.fail(fmt::format("axes has {} entries for a tensor of {} dimensions", axes.size(), rank));
  for (const int64_t axis : axes) {
    result.push_back(normal_axis(input, axis, rank, "axes: axis"));
    if (std::count(result.begin(), result.end(), result.back()) > 1)
      input.fail(fmt::format("axes names axis {} twice", axis));
  }
  return result;
}

Type relate_transpose(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  if (!data) return {};
  Array<PrimExpr> dims;
  for (const size_t axis : transpose_axes(input, data->shape.size())) dims.push_back(data->shape[axis]);
  return make_tensor_type(dims, data->dtype);
}

std::vector<NDArray> eval_transpose(const EvalInput& input) {
  const Shape& axes = input.attrs<TransposeAttrs>().axes;
  const size_t rank = input.args[0].shape().size();
  const Shape source = dense_strides(input.args[0].shape());
  Shape strides;
  for (size_t i = 0; i < rank; ++i) strides.push_back(source[axes.empty() ? rank - 1 - i : normal_axis(axes[i], rank)]);
  NDArray result = input.make_output();
  move_elements(input.args[0], result, [&](const Shape& index) { return dot(index, strides); });
  return {result};
}

Type relate_squeeze(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  if (!data) return {};
  const Shape& axes = input.call.attrs_as<SqueezeAttrs>().axis;
  std::vector<bool> dropped(data->shape.size());
  for (const int64_t axis : axes) {
    const size_t at = normal_axis(input, axis, data->shape.size());
    const auto size = as_int(data->shape[at]);
    if (size && *size != 1) input.fail(fmt::format("axis {} of {} has size {}, expected 1", axis, show(data), *size));
    dropped[at] = true;
  }
  Array<PrimExpr> dims;
  for (size_t i = 0; i < data->shape.size(); ++i) {
    if (axes.empty() && is_any(data->shape[i]))
      input.fail(fmt::format("name the axes: whether axis {} of {} is 1 is not known", i, show(data)));
    if (axes.empty() ? !is_int(data->shape[i], 1) : !dropped[i]) dims.push_back(data->shape[i]);
  }
  return make_tensor_type(dims, data->dtype);
}

Type relate_expand_dims(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  if (!data) return {};
  const auto& attrs = input.call.attrs_as<ExpandDimsAttrs>();
  if (attrs.num_newaxis < 0 || attrs.num_newaxis > 64)
    input.fail(fmt::format("num_newaxis is {}, expected 0 to 64", attrs.num_newaxis));
  const size_t at = normal_axis(input, attrs.axis, data->shape.size() + 1);
  Array<PrimExpr> dims(data->shape.begin(), data->shape.begin() + static_cast<std::ptrdiff_t>(at));
  for (int64_t i = 0; i < attrs.num_newaxis; ++i) dims.push_back(make_int(1));
  for (size_t i = at; i < data->shape.size(); ++i) dims.push_back(data->shape[i]);
  return make_tensor_type(dims, data->dtype);
}

// ---- concatenate, stack, split

// Fails unless the items have one dtype and rank; the dimension of axis i that all agree on (but for `free_axis`).
Array<PrimExpr> common_shape(const RelationInput& input, const std::vector<TensorType>& items,
                             std::optional<size_t> free_axis) {
  Array<PrimExpr> dims = items[0]->shape;
  for (size_t k = 1; k < items.size(); ++k) {
    check_same_dtype(input, items[0], items[k], fmt::format("item {}", k));
    if (items[k]->shape.size() != dims.size())
      input.fail(fmt::format("item {} has {} dimensions and item 0 has {}: {} and {}", k, items[k]->shape.size(),
                             dims.size(), show(items[k]), show(items[0])));
    for (size_t i = 0; i < dims.size(); ++i) {
      if (free_axis == i) continue;
      const PrimExpr mine = items[k]->shape[i];
      if (arith::is_unequal(dims[i], mine))
        input.fail(fmt::format("axis {} of item {} is {} and of item 0 is {}: {} and {}", i, k, to_string(mine),
                               to_string(dims[i]), show(items[k]), show(items[0])));
      if (const auto joined = unify_dims(dims[i], mine)) dims.set(i, *joined);
    }
  }
  return dims;
}

bool all_known(const std::vector<TensorType>& items) {
  return std::all_of(items.begin(), items.end(), [](const TensorType& item) { return item.defined(); });
}

Type relate_concatenate(const RelationInput& input) {
  const std::vector<TensorType> items = input.tensors(0);
  if (items.empty()) input.fail("needs at least one tensor");
  if (!all_known(items)) return {};
  if (items[0]->shape.empty()) input.fail("scalars cannot be concatenated; use stack");
  const size_t axis = normal_axis(input, input.call.attrs_as<ConcatenateAttrs>().axis, items[0]->shape.size());
  Array<PrimExpr> dims = common_shape(input, items, axis);
  PrimExpr total = make_int(0);
  for (const TensorType& item : items) total = arith::simplify_dim(total + item->shape[axis]);
  dims.set(axis, total);
  return make_tensor_type(dims, items[0]->dtype);
}

// Copies parts of `outer` blocks between a whole and its pieces along an axis; piece k has bytes[k] in each block.
template <typename F>
void for_each_block(int64_t outer, const std::vector<size_t>& bytes, F&& copy) {
  size_t at = 0;
  for (int64_t block = 0; block < outer; ++block) {
    for (size_t k = 0; k < bytes.size(); ++k) {
      copy(k, at, static_cast<size_t>(block) * bytes[k], bytes[k]);
      at += bytes[k];
    }
  }
}

int64_t count(const Shape& shape, size_t begin, size_t end) {
  return std::accumulate(shape.begin() + static_cast<std::ptrdiff_t>(begin),
                         shape.begin() + static_cast<std::ptrdiff_t>(end), int64_t{1}, std::multiplies<>());
}

std::vector<size_t> block_bytes(const std::vector<NDArray>& pieces, size_t axis) {
  std::vector<size_t> bytes;
  for (const NDArray& piece : pieces)
    bytes.push_back(static_cast<size_t>(count(piece.shape(), axis, piece.shape().size())) * piece.dtype().bytes());
  return bytes;
}

std::vector<NDArray> join_along(const EvalInput& input, size_t axis) {
  NDArray result = input.make_output();
  for_each_block(count(result.shape(), 0, axis), block_bytes(input.args, axis),
                 [&](size_t k, size_t whole, size_t piece, size_t n) {
                   std::memcpy(result.data<char>() + whole, input.args[k].data<char>() + piece, n);
                 });
  return {result};
}

std::vector<NDArray> eval_concatenate(const EvalInput& input) {
  return join_along(input, normal_axis(input.attrs<ConcatenateAttrs>().axis, input.args[0].shape().size()));
}

std::vector<NDArray> eval_stack(const EvalInput& input) {
  return join_along(input, normal_axis(input.attrs<StackAttrs>().axis, input.args[0].shape().size() + 1));
}

Type relate_stack(const RelationInput& input) {
  const std::vector<TensorType> items = input.tensors(0);
  if (items.empty()) input.fail("needs at least one tensor");
  if (!all_known(items)) return {};
  const Array<PrimExpr> common = common_shape(input, items, std::nullopt);
  const size_t axis = normal_axis(input, input.call.attrs_as<StackAttrs>().axis, common.size() + 1);
  Array<PrimExpr> dims(common.begin(), common.begin() + static_cast<std::ptrdiff_t>(axis));
  dims.push_back(make_int(static_cast<int64_t>(items.size())));
  for (size_t i = axis; i < common.size(); ++i) dims.push_back(common[i]);
  return make_tensor_type(dims, items[0]->dtype);
}

Type parts_type(const TensorType& data, size_t axis, const Dims& sizes) {
  Array<Type> parts;
  for (const PrimExpr& size : sizes) {
    Array<PrimExpr> dims = data->shape;
    dims.set(axis, size);
    parts.push_back(make_tensor_type(dims, data->dtype));
  }
  return make_tuple_type(parts);
}

Type relate_split(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  if (!data) return {};
  const auto& attrs = input.call.attrs_as<SplitAttrs>();
  const size_t axis = normal_axis(input, attrs.axis, data->shape.size());
  const PrimExpr whole = data->shape[axis];
  if (attrs.indices_or_sections.is<int64_t>()) {
    const auto sections = attrs.indices_or_sections.as<int64_t>();
    if (sections < 1 || sections > 100000)
      input.fail(fmt::format("the number of parts is {}, expected at least 1", sections));
    const auto size = arith::divide_exactly(whole, make_int(sections));
    if (!size && as_int(whole))
      input.fail(fmt::format("axis {} of {} cannot be split into {} equal parts", axis, show(data), sections));
    const PrimExpr part = size ? *size : is_any(whole) ? make_any() : floor_div(whole, make_int(sections));
    return parts_type(data, axis, Dims(static_cast<size_t>(sections), part));
  }
  if (!attrs.indices_or_sections.is<Shape>())
    input.fail("indices_or_sections must be a number of parts or a list of positions");
  Dims sizes;
  int64_t begin = 0;
  for (const int64_t end : attrs.indices_or_sections.as<Shape>()) {
    if (end < begin || (as_int(whole) && end > *as_int(whole)))
      input.fail(
          fmt::format("the positions must not decrease and must lie within axis {} of {}: {}", axis, show(data), end));
    sizes.push_back(make_int(end - begin));
    begin = end;
  }
  sizes.push_back(arith::simplify_dim(whole - begin));
  return parts_type(data, axis, sizes);
}

std::vector<NDArray> eval_split(const EvalInput& input) {
  const size_t axis = normal_axis(input.attrs<SplitAttrs>().axis, input.args[0].shape().size());
  std::vector<NDArray> parts;
  for (size_t i = 0; i < input.out_types.size(); ++i) parts.push_back(input.make_output(i));
  for_each_block(count(input.args[0].shape(), 0, axis), block_bytes(parts, axis),
                 [&](size_t k, size_t whole, size_t piece, size_t n) {
                   std::memcpy(parts[k].data<char>() + piece, input.args[0].data<char>() + whole, n);
                 });
  return parts;
}

// ---- broadcast_to, tile, repeat, reverse

Type broadcast_type(const RelationInput& input, const TensorType& data, const Dims& target) {
  if (data->shape.size() > target.size())
    input.fail(fmt::format("{} has more dimensions than {}", show(data), show_dims(Array<PrimExpr>(target))));
  const size_t missing = target.size() - data->shape.size();
  for (size_t i = missing; i < target.size(); ++i) {
    const PrimExpr mine = data->shape[i - missing];
    if (!is_int(mine, 1) && arith::is_unequal(mine, target[i]) && as_int(mine) && as_int(target[i]))
      input.fail(fmt::format("{} cannot be broadcast to {}: axis {} is {}", show(data),
                             show_dims(Array<PrimExpr>(target)), i, to_string(mine)));
  }
  for (const PrimExpr& dim : target) {
    if (as_int(dim) && *as_int(dim) < 0)
      input.fail(fmt::format("shape has a negative size: {}", show_dims(Array<PrimExpr>(target))));
  }
  return make_tensor_type(Array<PrimExpr>(target), data->dtype);
}

Type relate_broadcast_to(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  const auto target = requested_shape(input, input.call.attrs_as<BroadcastToAttrs>().shape, "shape");
  return data && target ? broadcast_type(input, data, *target) : Type();
}

Type relate_broadcast_to_like(const RelationInput& input) {
  const TensorType data = input.tensor(0), like = input.tensor(1);
  return data && like ? broadcast_type(input, data, like->shape.to_vector()) : Type();
}

std::vector<NDArray> eval_broadcast(const EvalInput& input) {
  NDArray result = input.make_output();
  const Shape strides = broadcast_strides(input.args[0].shape(), result.shape());
  move_elements(input.args[0], result, [&](const Shape& index) { return dot(index, strides); });
  return {result};
}

Type relate_tile(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  auto reps = requested_shape(input, input.call.attrs_as<TileAttrs>().reps, "reps");
  if (!data || !reps) return {};
  Dims dims = data->shape.to_vector();
  const PrimExpr one = make_int(1);
  const size_t rank = std::max(dims.size(), reps->size());
  dims.insert(dims.begin(), rank - dims.size(), one);
  reps->insert(reps->begin(), rank - reps->size(), one);
  for (size_t i = 0; i < rank; ++i) {
    const auto times = as_int((*reps)[i]);
    if (times && *times < 0) input.fail(fmt::format("reps has the negative count {}", *times));
    dims[i] = arith::simplify_dim(dims[i] * (*reps)[i]);
  }
  return make_tensor_type(Array<PrimExpr>(dims), data->dtype);
}

std::vector<NDArray> eval_tile(const EvalInput& input) {
  NDArray result = input.make_output();
  const Shape& shape = input.args[0].shape();
  const Shape strides = dense_strides(shape);
  const size_t missing = result.shape().size() - shape.size();
  move_elements(input.args[0], result, [&](const Shape& index) {
    int64_t offset = 0;
    for (size_t i = 0; i < shape.size(); ++i) offset += index[i + missing] % shape[i] * strides[i];
    return offset;
  });
  return {result};
}

Type relate_repeat(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  if (!data) return {};
  const auto& attrs = input.call.attrs_as<RepeatAttrs>();
  if (attrs.repeats < 0) input.fail(fmt::format("repeats is {}, expected at least 0", attrs.repeats));
  const size_t axis = normal_axis(input, attrs.axis, data->shape.size());
  Array<PrimExpr> dims = data->shape;
  dims.set(axis, arith::simplify_dim(dims[axis] * make_int(attrs.repeats)));
  return make_tensor_type(dims, data->dtype);
}

std::vector<NDArray> eval_repeat(const EvalInput& input) {
  const auto& attrs = input.attrs<RepeatAttrs>();
  const size_t axis = normal_axis(attrs.axis, input.args[0].shape().size());
  const Shape strides = dense_strides(input.args[0].shape());
  NDArray result = input.make_output();
  move_elements(input.args[0], result, [&](const Shape& index) {
    return dot(index, strides) - (index[axis] - index[axis] / attrs.repeats) * strides[axis];
  });
  return {result};
}

Type relate_reverse(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  if (!data) return {};
  normal_axis(input, input.call.attrs_as<ReverseAttrs>().axis, data->shape.size());
  return data;
}

std::vector<NDArray> eval_reverse(const EvalInput& input) {
  const Shape& shape = input.args[0].shape();
  const size_t axis = normal_axis(input.attrs<ReverseAttrs>().axis, shape.size());
  const Shape strides = dense_strides(shape);
  NDArray result = input.make_output();
  move_elements(input.args[0], result, [&](const Shape& index) {
    return dot(index, strides) + (shape[axis] - 1 - 2 * index[axis]) * strides[axis];
  });
  return {result};
}

// What all of these have in common, after their arguments and attributes.
void moving(OpBuilder& op, const TypeRelationFn& relation, const EvalFn& eval,
            FusionKind kind = FusionKind::injective) {
  op.relation(relation).fusion(kind).eval(eval).value(value_by_moving(relation, eval));
}

// An op whose result is its argument's elements in another shape.
void reshaping(OpBuilder& op, const TypeRelationFn& relation, FusionKind kind = FusionKind::injective) {
  op.keeps_elements();
  moving(op, relation, eval_same_elements, kind);
}

void register_reshapes() {
  reshaping(OpBuilder("reshape",
                      "The same elements in row-major order in another shape: x[...] -> [newshape]. With the special "
                      "values of newshape; symbolic sizes divide exactly or stay an expression.")
                .arg("data")
                .arg("newshape", "Tensor", "optional: newshape as a tensor")
                .any_args()
                .attrs<ReshapeAttrs>(),
            relate_reshape);
  reshaping(OpBuilder("reshape_like", "The elements of data in the shape of shape_like.").arg("data").arg("shape_like"),
            relate_reshape_like);
  reshaping(OpBuilder("nn.batch_flatten", "All but the first axis as one: x[N, ...] -> [N, rest].").arg("data"),
            relate_batch_flatten);
  moving(
      OpBuilder("transpose", "The axes in another order; without axes, reversed.").arg("data").attrs<TransposeAttrs>(),
      relate_transpose, eval_transpose);
  reshaping(OpBuilder("squeeze", "Without its axes of size 1, or those named.").arg("data").attrs<SqueezeAttrs>(),
            relate_squeeze);
  reshaping(
      OpBuilder("expand_dims", "With num_newaxis axes of size 1 put in at axis.").arg("data").attrs<ExpandDimsAttrs>(),
      relate_expand_dims, FusionKind::broadcast);
}

void register_joins() {
  moving(OpBuilder("concatenate",
                   "A tuple of tensors joined along an axis: [.., n, ..] and [.., m, ..] -> [.., n + m, ..].")
             .arg("data", "Tuple of tensors")
             .attrs<ConcatenateAttrs>(),
         relate_concatenate, eval_concatenate);
  moving(OpBuilder("stack", "A tuple of k tensors of one shape joined along a new axis of size k.")
             .arg("data", "Tuple of tensors")
             .attrs<StackAttrs>(),
         relate_stack, eval_stack);
  moving(OpBuilder("split", "A tensor cut along an axis: a tuple of its parts.").arg("data").attrs<SplitAttrs>(),
         relate_split, eval_split);
}

void register_copies_of_elements() {
  moving(OpBuilder("broadcast_to", "Repeated along axes of size 1 and new leading axes, to a given shape.")
             .arg("data")
             .arg("shape", "Tensor", "optional: shape as a tensor")
             .any_args()
             .attrs<BroadcastToAttrs>(),
         relate_broadcast_to, eval_broadcast, FusionKind::broadcast);
  moving(OpBuilder("broadcast_to_like", "Broadcast to the shape of broadcast_type.").arg("data").arg("broadcast_type"),
         relate_broadcast_to_like, eval_broadcast, FusionKind::broadcast);
  moving(OpBuilder("tile", "The whole tensor repeated reps times along each axis.")
             .arg("data")
             .arg("reps", "Tensor", "optional: reps as a tensor")
             .any_args()
             .attrs<TileAttrs>(),
         relate_tile, eval_tile);
  moving(OpBuilder("repeat", "Each element repeated along an axis.").arg("data").attrs<RepeatAttrs>(), relate_repeat,
         eval_repeat);
  moving(OpBuilder("reverse", "In the opposite order along an axis.").arg("data").attrs<ReverseAttrs>(), relate_reverse,
         eval_reverse);
}

// A call of `op` with a T that `fill` has set.
template <typename T, typename F>
Expr call_with(std::string_view op, Array<Expr> args, Span span, F&& fill) {
  auto attrs = make_object<T>();
  fill(*attrs);
  return make_call(op, std::move(args), Attrs(attrs), std::move(span));
}

}  // namespace

void register_shape_ops() {
  register_reshapes();
  register_joins();
  register_copies_of_elements();
}

Expr reshape(Expr data, Shape newshape, bool allowzero, Span span) {
  return call_with<ReshapeAttrs>("reshape", {data}, span,
                                 [&](auto& a) { a.newshape = newshape, a.allowzero = allowzero; });
}
Expr reshape(Expr data, Expr newshape, bool allowzero, Span span) {
  return call_with<ReshapeAttrs>("reshape", {data, newshape}, span, [&](auto& a) { a.allowzero = allowzero; });
}
Expr transpose(Expr data, Shape axes, Span span) {
  return call_with<TransposeAttrs>("transpose", {data}, span, [&](auto& a) { a.axes = axes; });
}
Expr squeeze(Expr data, Shape axis, Span span) {
  return call_with<SqueezeAttrs>("squeeze", {data}, span, [&](auto& a) { a.axis = axis; });
}
Expr expand_dims(Expr data, int64_t axis, int64_t num_newaxis, Span span) {
  return call_with<ExpandDimsAttrs>("expand_dims", {data}, span,
                                    [&](auto& a) { a.axis = axis, a.num_newaxis = num_newaxis; });
}
Expr batch_flatten(Expr data, Span span) { return make_call("nn.batch_flatten", {data}, {}, span); }
Expr concatenate(Array<Expr> items, int64_t axis, Span span) {
  return call_with<ConcatenateAttrs>("concatenate", {make_tuple(items)}, span, [&](auto& a) { a.axis = axis; });
}
Expr stack(Array<Expr> items, int64_t axis, Span span) {
  return call_with<StackAttrs>("stack", {make_tuple(items)}, span, [&](auto& a) { a.axis = axis; });
}
Expr split(Expr data, int64_t sections, int64_t axis, Span span) {
  return call_with<SplitAttrs>("split", {data}, span,
                               [&](auto& a) { a.indices_or_sections = sections, a.axis = axis; });
}
Expr split(Expr data, Shape begins, int64_t axis, Span span) {
  return call_with<SplitAttrs>("split", {data}, span, [&](auto& a) { a.indices_or_sections = begins, a.axis = axis; });
}
Expr broadcast_to(Expr data, Shape shape, Span span) {
  return call_with<BroadcastToAttrs>("broadcast_to", {data}, span, [&](auto& a) { a.shape = shape; });
}
Expr broadcast_to(Expr data, Expr shape, Span span) {
  return call_with<BroadcastToAttrs>("broadcast_to", {data, shape}, span, [](auto&) {});
}
Expr broadcast_to_like(Expr data, Expr like, Span span) {
  return make_call("broadcast_to_like", {data, like}, {}, span);
}
Expr reshape_like(Expr data, Expr like, Span span) { return make_call("reshape_like", {data, like}, {}, span); }
Expr tile(Expr data, Shape reps, Span span) {
  return call_with<TileAttrs>("tile", {data}, span, [&](auto& a) { a.reps = reps; });
}
Expr tile(Expr data, Expr reps, Span span) {
  return call_with<TileAttrs>("tile", {data, reps}, span, [](auto&) {});
}
Expr repeat(Expr data, int64_t repeats, int64_t axis, Span span) {
  return call_with<RepeatAttrs>("repeat", {data}, span, [&](auto& a) { a.repeats = repeats, a.axis = axis; });
}
Expr reverse(Expr data, int64_t axis, Span span) {
  return call_with<ReverseAttrs>("reverse", {data}, span, [&](auto& a) { a.axis = axis; });
}

}  // namespace headrace::ops
