#include "ops/tensor/join.h"

#include <numeric>

#include "arith/canonical.h"
#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/move.h"
#include "ops/op_handles.h"
#include "relay/match.h"

namespace headrace {

namespace {

// Reads a number, or a constant of the IR; True and False are not numbers.
std::optional<int64_t> whole_number(const RawValue& raw) {
  if (raw.type_index == type_index::kInt) return raw.v.v_int;
  const bool is_imm = raw.type_index >= type_index::kStaticObjectBegin && raw.v.v_object->is_instance<IntImmNode>();
  if (!is_imm) return std::nullopt;
  const auto* imm = static_cast<const IntImmNode*>(raw.v.v_object);
  return imm->dtype.is_bool() ? std::nullopt : std::optional(imm->value);
}

const std::vector<Value>& items_of(const RawValue& raw) { return static_cast<const ArrayObj*>(raw.v.v_object)->items; }

}  // namespace

Value ValueTraits<Sections>::to(const Sections& sections) {
  return std::visit([](const auto& value) { return Value(value); }, sections);
}

bool ValueTraits<Sections>::matches(const RawValue& raw) {
  if (raw.type_index == type_index::kShape || whole_number(raw)) return true;
  if (raw.type_index != type_index::kArray) return false;
  const std::vector<Value>& items = items_of(raw);
  return std::all_of(items.begin(), items.end(),
                     [](const Value& item) { return whole_number(item.raw()).has_value(); });
}

Sections ValueTraits<Sections>::from(const RawValue& raw) {
  if (const auto number = whole_number(raw)) return *number;
  if (raw.type_index == type_index::kShape) return ValueTraits<Shape>::from(raw);
  Shape positions;
  for (const Value& item : items_of(raw)) positions.push_back(whole_number(item.raw()).value());
  return positions;
}

namespace ops {

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

namespace {

using relay::make_tuple;

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
  for (const TensorType& item : items) total = result_dim(input, total + item->shape[axis]);
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
  if (const auto* count = std::get_if<int64_t>(&attrs.indices_or_sections)) {
    const int64_t sections = *count;
    if (sections < 1 || sections > 100000)
      input.fail(fmt::format("the number of parts is {}, expected at least 1", sections));
    const auto size = arith::divide_exactly(whole, make_int(sections));
    if (!size && as_int(whole))
      input.fail(fmt::format("axis {} of {} cannot be split into {} equal parts", axis, show(data), sections));
    const PrimExpr part = size ? *size : is_any(whole) ? make_any() : floor_div(whole, make_int(sections));
    return parts_type(data, axis, Dims(static_cast<size_t>(sections), part));
  }
  Dims sizes;
  int64_t begin = 0;
  for (const int64_t end : std::get<Shape>(attrs.indices_or_sections)) {
    if (end < begin || (as_int(whole) && end > *as_int(whole)))
      input.fail(
          fmt::format("the positions must not decrease and must lie within axis {} of {}: {}", axis, show(data), end));
    sizes.push_back(make_int(end - begin));
    begin = end;
  }
  sizes.push_back(arith::simplify_dim(whole - begin));
  return parts_type(data, axis, sizes);
}

// Along an axis in parts, each part must be a whole number of blocks.
std::optional<Attrs> keep_layout_of_split(const relay::CallNode& call, const LayoutForm& form) {
  const auto& attrs = call.attrs_as<SplitAttrs>();
  const int64_t block = form.block(attrs.axis);
  Sections sections = attrs.indices_or_sections;
  if (auto* begins = std::get_if<Shape>(&sections)) {
    for (int64_t& begin : *begins) {
      if (begin % block != 0) return std::nullopt;
      begin /= block;
    }
  } else if (block != 1) {
    const auto* data = relay::tensor_type_of(call.args[0]);
    const auto size = as_int(data->shape[normal_axis(attrs.axis, form.rank())]);
    if (!size || *size / block % std::get<int64_t>(sections) != 0) return std::nullopt;
  }
  return Attrs(copy_with(attrs, [&](SplitAttrs& copy) {
    copy.indices_or_sections = sections;
    copy.axis = form.outermost(attrs.axis);
  }));
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

}  // namespace

void register_join_ops() {
  moving(OpBuilder("concatenate",
                   "A tuple of tensors joined along an axis: [.., n, ..] and [.., m, ..] -> [.., n + m, ..].")
             .arg("data", "Tuple of tensors",
                  "T[.., n, ..], T[.., m, ..], ...: alike but for the axis that they are joined along")
             .attrs<ConcatenateAttrs>(),
         relate_concatenate, eval_concatenate);
  moving(OpBuilder("stack", "Joins k tensors of one shape along a new axis: a tuple of k T[...] -> T[.., k, ..].")
             .arg("data", "Tuple of tensors", "T[...], T[...], ...: all of one shape")
             .attrs<StackAttrs>(),
         relate_stack, eval_stack);
  moving(
      OpBuilder("split", "Cuts a tensor along an axis: data T[.., n, ..] -> a tuple of its parts, T[.., m, ..] each.")
          .arg("data", "Tensor", "T[...]: the tensor to cut")
          .attrs<SplitAttrs>(),
      relate_split, eval_split)
      .fact(kKeepLayout, keep_layout_of_split);
}

std::optional<size_t> concatenated_axis(const relay::CallNode& call) {
  const auto* result = call.checked_type().as<TensorTypeNode>();
  if (!relay::is_call(call, op::kConcatenate) || result == nullptr) return std::nullopt;
  const int64_t axis = call.attrs_as<ConcatenateAttrs>().axis, rank = std::ssize(result->shape);
  return static_cast<size_t>(axis < 0 ? axis + rank : axis);
}

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

}  // namespace ops

}  // namespace headrace
