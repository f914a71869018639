// qnn.avg_pool2d: the mean of integers that are at the result's scale.
#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/nn/pool.h"
#include "ops/op_handles.h"
#include "ops/qnn/requantize.h"

namespace headrace::ops {

namespace {

Type relate_quantized_pool(const RelationInput& input) {
  const TensorType data = byte_argument(input, 0);
  if (!data) return {};
  const Type type = relate_as(op::kAvgPool2D, input, {data});
  const bool from = check_scale(input, 1) && check_zero_point(input, 2);
  const bool to = check_scale(input, 3) && check_zero_point(input, 4);
  check_factor(input, {input.arg_constant(1)}, input.arg_constant(3));
  return from && to ? type : Type();
}

std::vector<NDArray> eval_quantized_pool(const EvalInput& input) {
  const auto& args = input.args;
  const NDArray sums = requantized(args[0], {args[1], args[2]}, {args[3], args[4]}, {});
  return {saturated(eval_as(op::kAvgPool2D, input, {sums}, kQuantizedSum), input.out_types[0]->dtype)};
}

Expr quantized_pool_form(const relay::CallNode& call, const Array<Type>& types) {
  const auto given = [&](size_t i) { return parameter(call, types, i); };
  const Expr sums = requantized(call.args[0], types[0], {given(1), given(2)}, {given(3), given(4)}, {}, call.span);
  return saturated(avg_pool(sums, call.attrs_as<AvgPool2DAttrs>(), call.span), dtype_of(types[0]), call.span);
}

}  // namespace

void register_quantized_pool_op() {
  OpBuilder("qnn.avg_pool2d",
            "nn.avg_pool2d of data that is brought to the result's scale and zero point in int32 first: data int8 or "
            "uint8[N,C,H,W] -> its dtype[N,C,P,Q], cut to the range. Means truncate. As in Relay, padding that counts "
            "(count_include_pad) is the integer 0, and not the zero point.")
      .arg("data", "Tensor", "int8 or uint8[N,C,H,W], or in another layout: the tensor to pool")
      .arg("input_scale", "Tensor", "float32[]: the scale of data")
      .arg("input_zero_point", "Tensor", "int32[]: the zero point of data")
      .arg("output_scale", "Tensor", "float32[]: the scale of the result")
      .arg("output_zero_point", "Tensor", "int32[]: the zero point of the result")
      .attrs<AvgPool2DAttrs>()
      .relation(relate_quantized_pool)
      .fusion(FusionKind::opaque)
      .level(11)
      .eval(eval_quantized_pool)
      .fact(kPlainForm, quantized_pool_form);
}

}  // namespace headrace::ops
