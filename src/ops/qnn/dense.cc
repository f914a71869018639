// Products of quantized matrices.
#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "ops/nn/matmul.h"
#include "ops/qnn/parameters.h"

namespace headrace::ops {

namespace {

TensorType quantized_matrix(const RelationInput& input, size_t i, std::string_view name) {
  const TensorType type = byte_argument(input, i);
  if (!type) return type;
  if (type->shape.size() != 2) input.fail(fmt::format("{} must be a matrix, got {}", name, show(type)));
  return type;
}

Type relate_quantized_dense(const RelationInput& input) {
  const auto& attrs = input.call.attrs_as<DenseAttrs>();
  const TensorType data = quantized_matrix(input, 0, "data"), weight = quantized_matrix(input, 1, "weight");
  if (!data || !weight) return {};
  const DataType out = DataType::int_(32);
  if (attrs.out_dtype.value_or(out) != out)
    input.fail(fmt::format("out_dtype is {}, expected int32", attrs.out_dtype->to_string()));
  if (!unify_dims(data->shape[1], weight->shape[1]))
    input.fail(fmt::format("the summed dimensions {} and {} differ", show(data), show(weight)));
  const PrimExpr units = weight->shape[0];
  if (const auto known = as_int(units); known && attrs.units && *attrs.units != *known)
    input.fail(fmt::format("units is {}, but weight has {} rows", *attrs.units, *known));
  const bool zeros = check_zero_point(input, 2) && check_zero_point(input, 3, units);
  const bool scales = check_scale(input, 4) && check_scale(input, 5, units);
  return zeros && scales ? Type(make_tensor_type(Array<PrimExpr>{data->shape[0], units}, out)) : Type();
}

std::vector<NDArray> eval_quantized_dense(const EvalInput& input) {
  const NDArray out = input.make_output();
  const NDArray &data = input.args[0], &weight = input.args[1];
  const auto data_at = reader_as<int32_t>(data.dtype()), weight_at = reader_as<int32_t>(weight.dtype());
  const Elements<int32_t> data_zero(input.args[2]), weight_zero(input.args[3]), y(out);
  const bool zero_each = !input.args[3].shape().empty();
  const int64_t units = weight.shape()[0], count = weight.shape()[1];
  for (int64_t at = 0; at < out.num_elements(); ++at) {
    input.spend(count);
    const int64_t row = at / units, unit = at % units;
    const int64_t zero = weight_zero[zero_each ? unit : 0];
    int32_t total = 0;
    for (int64_t k = 0; k < count; ++k) {
      const int32_t a = wrapping_add(data_at(data, row * count + k), wrapping_mul(data_zero[0], -1));
      const int32_t b = wrapping_add(weight_at(weight, unit * count + k), static_cast<int32_t>(-zero));
      total = wrapping_add(total, wrapping_mul(a, b));
    }
    y.set(at, total);
  }
  return {out};
}

}  // namespace

void register_quantized_dense_op() {
  OpBuilder(
      "qnn.dense",
      "Sums of (data - input_zero_point) * (weight - kernel_zero_point) in int32: data int8 or uint8[M,K], weight "
      "int8 or uint8[N,K] -> int32[M,N]. The scales change nothing: the result's is their product, its zero "
      "point 0.")
      .arg("data", "Tensor", "int8 or uint8[M,K]: the quantized rows")
      .arg("weight", "Tensor", "int8 or uint8[N,K]: the quantized weights")
      .arg("input_zero_point", "Tensor", "int32[]: the zero point of data")
      .arg("kernel_zero_point", "Tensor", "int32[] or int32[N]: the zero point of weight")
      .arg("input_scale", "Tensor", "float32[]: the scale of data")
      .arg("kernel_scale", "Tensor", "float32[] or float32[N]: the scale of weight")
      .attrs<DenseAttrs>()
      .relation(relate_quantized_dense)
      .fusion(FusionKind::anchor)
      .level(11)
      .eval(eval_quantized_dense);
}

}  // namespace headrace::ops
