// qnn.contrib_dense_pack: qnn.dense with a matrix whose rows lie in blocks.
#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "ops/nn/bitserial.h"
#include "ops/qnn/parameters.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/shape.h"

namespace headrace::ops {

namespace {

// How a weight [n / rows, k / columns, rows, columns] lies; without its last dimension, columns is 1.
struct WeightBlocks {
  int64_t rows = 1, columns = 1;
};

// Returns the blocks of a weight whose relation has checked it.
WeightBlocks blocks_of(const Array<PrimExpr>& shape) {
  return {*as_int(shape[2]), shape.size() == 4 ? *as_int(shape[3]) : 1};
}

void check_packed_weight(const RelationInput& input, const TensorType& weight) {
  const size_t rank = weight->shape.size();
  if (rank != 3 && rank != 4)
    input.fail(fmt::format("weight must be [n / b, k, b] or [n / b, k / c, b, c], got {}", show(weight)));
  if (!as_int(weight->shape[2]) || !as_int(weight->shape.back()))
    input.fail(fmt::format("weight must have blocks of known sizes, got {}", show(weight)));
  const WeightBlocks blocks = blocks_of(weight->shape);
  const std::string own =
      rank == 3 ? fmt::format("NC{}n", blocks.rows) : fmt::format("NC{}n{}c", blocks.rows, blocks.columns);
  const std::string& layout = input.call.attrs_as<DensePackAttrs>().weight_layout;
  if (layout != own && !(rank == 3 && layout == "NC"))
    input.fail(fmt::format("weight_layout is {}, but weight {} is laid out as {}", layout, show(weight), own));
}

Type relate_quantized_dense_pack(const RelationInput& input) {
  const auto& attrs = input.call.attrs_as<DensePackAttrs>();
  const TensorType data = byte_argument(input, 0), weight = byte_argument(input, 1);
  if (!data || !weight) return {};
  if (data->shape.empty()) input.fail(fmt::format("data must be [..., k], got {}", show(data)));
  check_packed_weight(input, weight);
  if (attrs.out_dtype.value_or(kQuantizedSum) != kQuantizedSum)
    input.fail(fmt::format("out_dtype is {}, expected int32", attrs.out_dtype->to_string()));
  const WeightBlocks blocks = blocks_of(weight->shape);
  if (!unify_dims(data->shape.back(), result_dim(input, weight->shape[1] * blocks.columns)))
    input.fail(fmt::format("the summed dimensions differ: {} and {}", show(data), show(weight)));
  const PrimExpr units = result_dim(input, weight->shape[0] * blocks.rows);
  if (const auto known = as_int(units); known && attrs.units && *attrs.units != *known)
    input.fail(fmt::format("units is {}, but weight has {} rows", *attrs.units, *known));
  const bool zeros = check_zero_point(input, 2) && check_zero_point(input, 3, units);
  const bool scales = check_scale(input, 4) && check_scale(input, 5, units);
  if (!zeros || !scales) return {};
  Array<PrimExpr> shape(data->shape.begin(), data->shape.end() - 1);
  shape.push_back(units);
  return make_tensor_type(shape, kQuantizedSum);
}

std::vector<NDArray> eval_quantized_dense_pack(const EvalInput& input) {
  const NDArray out = input.make_output(), data = less_zero_point(input.args[0], input.args[2]);
  const NDArray &weight = input.args[1], &zero = input.args[3];
  const Shape& shape = weight.shape();
  const int64_t rows = shape[2], columns = shape.size() == 4 ? shape[3] : 1, depth = data.shape().back(),
                units = out.shape().back();
  const auto weight_at = reader_as<int32_t>(weight.dtype());
  const Elements<int32_t> x(data), zeros(zero), y(out);
  for (int64_t at = 0; at < out.num_elements(); ++at) {
    input.spend(depth);
    const int64_t row = at / units, unit = at % units;
    const int32_t less = wrapping_mul(zeros[zero.shape().empty() ? 0 : unit], -1);
    int32_t total = 0;
    for (int64_t k = 0; k < depth; ++k) {
      const int64_t block = unit / rows * (depth / columns) + k / columns;
      const int32_t w = weight_at(weight, (block * rows + unit % rows) * columns + k % columns);
      total = wrapping_add(total, wrapping_mul(x[row * depth + k], wrapping_add(w, less)));
    }
    y.set(at, total);
  }
  return {out};
}

// Unpacks the columns of a block, so that nn.contrib_dense_pack reads the weight as [n / rows, k, rows].
Expr dense_pack_form(const relay::CallNode& call, const Array<Type>& types) {
  const Span& span = call.span;
  const auto& shape = types[1].as<TensorTypeNode>()->shape;
  const Expr data = less_zero_point(call.args[0], types[0], parameter(call, types, 2), -1, span);
  Expr weight = cast(call.args[1], kQuantizedSum, span);
  if (shape.size() == 4) weight = reshape(transpose(weight, {0, 1, 3, 2}, span), Shape{0, -3, 0}, false, span);
  const auto [zero, is_vector] = parameter(call, types, 3);
  if (!is_zero(zero))
    weight = subtract(weight, is_vector ? reshape(zero, Shape{-1, 1, blocks_of(shape).rows}, false, span) : zero, span);
  return call_with<DensePackAttrs>("nn.contrib_dense_pack", {data, weight}, span, [&](DensePackAttrs& attrs) {
    attrs.units = call.attrs_as<DensePackAttrs>().units;
    attrs.out_dtype = kQuantizedSum;
  });
}

}  // namespace

void register_quantized_dense_pack_op() {
  OpBuilder("qnn.contrib_dense_pack",
            "qnn.dense with a matrix whose rows lie in blocks: sums of (data - input_zero_point) * (weight - "
            "kernel_zero_point) in int32, data int8 or uint8[...,k] -> int32[...,n]. weight_layout is NC or NC8n for "
            "weight [n / 8, k, 8], and NC32n4c for [n / 32, k / 4, 32, 4]. The scales change nothing: the result's is "
            "their product, its zero point 0.")
      .arg("data", "Tensor", "int8 or uint8[...,k]: the quantized rows")
      .arg("weight", "Tensor", "int8 or uint8[n / b, k, b] or [n / b, k / c, b, c]: the quantized matrix")
      .arg("input_zero_point", "Tensor", "int32[]: the zero point of data")
      .arg("kernel_zero_point", "Tensor", "int32[] or int32[n]: the zero point of weight")
      .arg("input_scale", "Tensor", "float32[]: the scale of data")
      .arg("kernel_scale", "Tensor", "float32[] or float32[n]: the scale of weight")
      .attrs<DensePackAttrs>()
      .relation(relate_quantized_dense_pack)
      .fusion(FusionKind::opaque)
      .level(11)
      .eval(eval_quantized_dense_pack)
      .fact(kPlainForm, dense_pack_form);
}

}  // namespace headrace::ops
