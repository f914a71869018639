// Convolutions and batched products of quantized tensors: those of plain integers, less their zero points.
#include "ops/families.h"
#include "ops/nn/conv.h"
#include "ops/nn/matmul.h"
#include "ops/op_handles.h"
#include "ops/qnn/parameters.h"

namespace headrace::ops {

namespace {

// The arguments in Relay's order.
enum ProductArgument : size_t { kData, kWeight, kDataZero, kWeightZero, kDataScale, kWeightScale };

// A product, and the axis of its second operand that has zero points and scales.
struct QuantizedProduct {
  const OpHandle& plain;
  std::optional<int64_t> (*weight_axis)(const relay::CallNode& call);
};

// Returns the axis of a kernel's output channels; none where the layout has parts, as in OIHW16o.
template <typename A>
std::optional<int64_t> channel_axis(const relay::CallNode& call) {
  const std::string& layout = call.attrs_as<A>().kernel_layout;
  const size_t at = layout.find('O');
  const bool is_whole = layout.find_first_of("0123456789") == std::string::npos;
  return is_whole && at != std::string::npos ? std::optional(static_cast<int64_t>(at)) : std::nullopt;
}
std::optional<int64_t> no_axis(const relay::CallNode&) { return std::nullopt; }

Type wide_type(const TensorType& type) { return make_tensor_type(type->shape, kQuantizedSum); }

template <typename A>
Type relate_quantized_product(const RelationInput& input, const QuantizedProduct& product) {
  const TensorType data = byte_argument(input, kData), weight = byte_argument(input, kWeight);
  if (!data || !weight) return {};
  const auto out_dtype = input.call.attrs_as<A>().out_dtype;
  if (out_dtype.value_or(kQuantizedSum) != kQuantizedSum)
    input.fail(fmt::format("out_dtype is {}, expected int32", out_dtype->to_string()));
  const Type type = relate_as(product.plain, input, {wide_type(data), wide_type(weight)});
  const auto axis = product.weight_axis(input.call);
  const PrimExpr size = axis && static_cast<size_t>(*axis) < weight->shape.size()
                            ? weight->shape[static_cast<size_t>(*axis)]
                            : PrimExpr();
  const bool zeros = check_zero_point(input, kDataZero) && check_zero_point(input, kWeightZero, size);
  const bool scales = check_scale(input, kDataScale) && check_scale(input, kWeightScale, size);
  return zeros && scales ? type : Type();
}

// Pads with 0 after the zero point is taken off, so that padding stands for 0.
std::vector<NDArray> eval_quantized_product(const EvalInput& input, const QuantizedProduct& product) {
  const auto& args = input.args;
  const int64_t axis = product.weight_axis(input.call).value_or(-1);
  return {
      eval_as(product.plain, input,
              {less_zero_point(args[kData], args[kDataZero]), less_zero_point(args[kWeight], args[kWeightZero], axis)},
              kQuantizedSum)};
}

template <typename A>
Expr product_form(const relay::CallNode& call, const Array<Type>& types, const QuantizedProduct& product) {
  const auto side = [&](size_t data, size_t zero, int64_t axis) {
    return less_zero_point(call.args[data], types[data], parameter(call, types, zero), axis, call.span);
  };
  return call_with<A>(product.plain,
                      {side(kData, kDataZero, -1), side(kWeight, kWeightZero, product.weight_axis(call).value_or(-1))},
                      call.span, [&](A& attrs) {
                        attrs = call.attrs_as<A>();
                        attrs.out_dtype = kQuantizedSum;
                      });
}

template <typename A>
void product_op(OpBuilder op, const QuantizedProduct& product) {
  op.attrs<A>()
      .relation([product](const RelationInput& input) { return relate_quantized_product<A>(input, product); })
      .fusion(FusionKind::opaque)
      .level(11)
      .eval([product](const EvalInput& input) { return eval_quantized_product(input, product); })
      .fact(kPlainForm, [product](const relay::CallNode& call, const Array<Type>& types) {
        return product_form<A>(call, types, product);
      });
}

// `kernel` names the argument as Relay's function in Python does.
OpBuilder convolution(const char* name, const char* plain, const char* kernel, const char* shape) {
  OpBuilder op(name, fmt::format("{} of data - input_zero_point and {} - kernel_zero_point in int32: data int8 or "
                                 "uint8[N,C,H,W], {} int8 or uint8{} -> int32[N,K,P,Q]; layouts reorder each. The "
                                 "padding stands for 0. The scales change nothing: the result's is their product, its "
                                 "zero point 0.",
                                 plain, kernel, kernel, shape));
  op.arg("data", "Tensor", "int8 or uint8[N,C,H,W], or in data_layout: the quantized image")
      .arg(kernel, "Tensor", fmt::format("int8 or uint8{}, or in kernel_layout: the quantized kernel", shape))
      .arg("input_zero_point", "Tensor", "int32[]: the zero point of data")
      .arg("kernel_zero_point", "Tensor",
           fmt::format("int32[] or int32[{0}'s dimension O]: the zero point of {0}", kernel))
      .arg("input_scale", "Tensor", "float32[]: the scale of data")
      .arg("kernel_scale", "Tensor", fmt::format("float32[] or float32[{0}'s dimension O]: the scale of {0}", kernel));
  return op;
}

}  // namespace

void register_quantized_product_ops() {
  product_op<Conv2DAttrs>(convolution("qnn.conv2d", "nn.conv2d", "kernel", "[K,C/groups,R,S]"),
                          {op::kConv2D, channel_axis<Conv2DAttrs>});
  product_op<Conv2DTransposeAttrs>(
      convolution("qnn.conv2d_transpose", "nn.conv2d_transpose", "weight", "[C,K/groups,R,S]"),
      {op::kConv2DTranspose, channel_axis<Conv2DTransposeAttrs>});
  OpBuilder batched("qnn.batch_matmul",
                    "nn.batch_matmul of x - x_zero_point and y - y_zero_point in int32: x int8 or uint8[B,M,K], y int8 "
                    "or uint8[B,N,K] -> int32[B,M,N]. The scales change nothing: the result's is their product, its "
                    "zero point 0.");
  batched.arg("x", "Tensor", "int8 or uint8[B,M,K], or [B,K,M] with transpose_a: the left matrices")
      .arg("y", "Tensor", "int8 or uint8[B,N,K], or [B,K,N] without transpose_b: the right matrices")
      .arg("x_zero_point", "Tensor", "int32[]: the zero point of x")
      .arg("y_zero_point", "Tensor", "int32[]: the zero point of y")
      .arg("x_scale", "Tensor", "float32[]: the scale of x")
      .arg("y_scale", "Tensor", "float32[]: the scale of y");
  product_op<BatchMatmulAttrs>(batched, {op::kBatchMatmul, no_axis});
}

}  // namespace headrace::ops
