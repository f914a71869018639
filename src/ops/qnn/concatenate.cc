// qnn.concatenate: the parts are brought to one scale and joined.
#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/op_handles.h"
#include "ops/qnn/requantize.h"
#include "ops/tensor/join.h"

namespace headrace::ops {

namespace {

// Checks a tuple of as many scalars of that dtype as there are parts. Returns whether all are known.
bool check_scalars(const RelationInput& input, size_t i, size_t count, DataType dtype) {
  const std::string& name = input.call.as_op()->arguments[i].name;
  const std::vector<TensorType> items = input.tensors(i);
  if (std::any_of(items.begin(), items.end(), [](const TensorType& item) { return !item; })) return false;
  if (items.size() != count)
    input.fail(fmt::format("{} must have a scalar for each of the {} parts, got {}", name, count, items.size()));
  for (const TensorType& item : items) {
    if (item->dtype != dtype || !item->shape.empty())
      input.fail(fmt::format("{} must be scalars of {}, got {}", name, dtype.to_string(), show(item)));
  }
  return true;
}

// Checks the scales of a tuple that is made right there, each for itself, as far as they are constants.
void check_scales(const RelationInput& input) {
  const auto* scales = input.call.args[1].as<relay::TupleNode>();
  for (size_t i = 0; scales != nullptr && i < scales->items.size(); ++i) {
    const auto* constant = scales->items[i].as<relay::ConstantNode>();
    if (constant == nullptr) continue;
    const NDArray scale = constant->data.to_dense();
    check_positive(input, fmt::format("item {} of input_scales", i), scale);
    check_factor(input, {scale}, input.arg_constant(3));
  }
}

Type relate_quantized_concatenate(const RelationInput& input) {
  const std::vector<TensorType> parts = input.tensors(0);
  for (const TensorType& part : parts) {
    if (!part) return {};
    if (!is_integer(part) || part->dtype.bits() != 8)
      input.fail(fmt::format("data must have dtype int8 or uint8, got {}", show(part)));
  }
  const Type type = relate_as(op::kConcatenate, input, {input.arg_types[0]});
  const bool from = check_scalars(input, 1, parts.size(), DataType::float_(32)) &&
                    check_scalars(input, 2, parts.size(), kQuantizedSum);
  const bool to = check_scale(input, 3) && check_zero_point(input, 4);
  if (from) check_scales(input);
  return from && to ? type : Type();
}

// Its tuples are flattened: the parts, their scales, their zero points, then the two of the result.
std::vector<NDArray> eval_quantized_concatenate(const EvalInput& input) {
  const size_t count = (input.args.size() - 2) / 3;
  const DataType dtype = input.out_types[0]->dtype;
  const TensorSteps to{input.args[3 * count], input.args[3 * count + 1]};
  std::vector<NDArray> parts;
  for (size_t i = 0; i < count; ++i)
    parts.push_back(
        requantized(input.args[i], {input.args[count + i], input.args[2 * count + i]}, to, {.out_dtype = dtype}));
  return {eval_as(op::kConcatenate, input, std::move(parts), dtype)};
}

Expr item_of(const Expr& tuple, size_t i, const Span& span) {
  const auto* made = tuple.as<relay::TupleNode>();
  return made != nullptr ? made->items[i] : Expr(relay::make_tuple_get_item(tuple, static_cast<int64_t>(i), span));
}

Expr concatenate_form(const relay::CallNode& call, const Array<Type>& types) {
  const auto& parts = types[0].as<TupleTypeNode>()->items;
  const ExprSteps to{parameter(call, types, 3), parameter(call, types, 4)};
  Array<Expr> items;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto part = [&](size_t argument) { return item_of(call.args[argument], i, call.span); };
    items.push_back(requantized(part(0), parts[i], {{part(1), false}, {part(2), false}}, to,
                                {.out_dtype = dtype_of(parts[i])}, call.span));
  }
  return concatenate(items, call.attrs_as<ConcatenateAttrs>().axis, call.span);
}

}  // namespace

void register_quantized_concatenate_op() {
  OpBuilder("qnn.concatenate",
            "The parts brought to the result's scale and joined along an axis: data a tuple of int8 or uint8[...], "
            "alike but for the axis -> their dtype[...]. Factors are of 31 bits and a power of two; halves are "
            "rounded up, and what leaves the dtype's range is cut to it.")
      .arg("data", "Tuple of tensors", "(int8 or uint8[...], ...): the parts")
      .arg("input_scales", "Tuple of tensors", "(float32[], ...): the scale of each part")
      .arg("input_zero_points", "Tuple of tensors", "(int32[], ...): the zero point of each part")
      .arg("output_scale", "Tensor", "float32[]: the scale of the result")
      .arg("output_zero_point", "Tensor", "int32[]: the zero point of the result")
      .attrs<ConcatenateAttrs>()
      .relation(relate_quantized_concatenate)
      .fusion(FusionKind::opaque)
      .level(11)
      .eval(eval_quantized_concatenate)
      .fact(kPlainForm, concatenate_form);
}

}  // namespace headrace::ops
