#include "ops/qnn/quantize.h"

#include <cmath>

#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "ops/qnn/parameters.h"

namespace headrace::ops {

namespace {
constexpr const char* kZeroPointDoc = "int32[] or int32[data's dimension along axis]: the zero point";
constexpr const char* kAxisDoc = "the axis of data that a scale or zero point of one dimension has";
}  // namespace

void QuantizeAttrs::fields(FieldList<QuantizeAttrs>& f) {
  f.field<&QuantizeAttrs::axis>("axis", {.default_value = -1, .has_default = true, .doc = kAxisDoc})
      .field<&QuantizeAttrs::out_dtype>("out_dtype",
                                        {.default_value = "int8",
                                         .has_default = true,
                                         .doc = "an integer of 2 to 16 bits, with or without sign, or int32"});
}

void DequantizeAttrs::fields(FieldList<DequantizeAttrs>& f) {
  f.field<&DequantizeAttrs::axis>("axis", {.default_value = -1, .has_default = true, .doc = kAxisDoc})
      .field<&DequantizeAttrs::out_dtype>(
          "out_dtype", {.default_value = "float32", .has_default = true, .doc = "float32, float16 or bfloat16"});
}

namespace {

bool is_quantized(DataType dtype) {
  return (dtype.is_int() && dtype.bits() <= 32) || (dtype.is_uint() && dtype.bits() <= 16);
}

// Checks argument `i`, a scale or a zero point: its dtype, and that it is a scalar or as long as data's axis. Returns
// whether its type is known.
bool check_per_axis(const RelationInput& input, const TensorType& data, size_t i, std::string_view name, DataType dtype,
                    int64_t axis) {
  const TensorType type = input.tensor(i);
  if (!type) return false;
  if (type->dtype != dtype)
    input.fail(fmt::format("{} must have dtype {}, got {}", name, dtype.to_string(), show(type)));
  if (type->shape.empty()) return true;
  if (type->shape.size() != 1)
    input.fail(fmt::format("{} must be a scalar or have one dimension, got {}", name, show(type)));
  const size_t own = normal_axis(input, axis, data->shape.size());
  if (!unify_dims(data->shape[own], type->shape[0]))
    input.fail(fmt::format("{} must be as long as data {} along axis {}, got {}", name, show(data), axis, show(type)));
  return true;
}

Type relate_quantize(const RelationInput& input) {
  const auto& attrs = input.call.attrs_as<QuantizeAttrs>();
  const TensorType data = input.tensor(0);
  if (!data) return {};
  if (data->dtype != DataType::float_(32)) input.fail(fmt::format("data must have dtype float32, got {}", show(data)));
  if (!is_quantized(attrs.out_dtype))
    input.fail(fmt::format("out_dtype is {}, expected an integer of 2, 4, 8 or 16 bits, or int32",
                           attrs.out_dtype.to_string()));
  const bool scale = check_per_axis(input, data, 1, "output_scale", DataType::float_(32), attrs.axis);
  const bool zero = check_per_axis(input, data, 2, "output_zero_point", DataType::int_(32), attrs.axis);
  return scale && zero ? Type(make_tensor_type(data->shape, attrs.out_dtype)) : Type();
}

Type relate_dequantize(const RelationInput& input) {
  const auto& attrs = input.call.attrs_as<DequantizeAttrs>();
  const TensorType data = input.tensor(0);
  if (!data) return {};
  if (!is_quantized(data->dtype))
    input.fail(fmt::format("data must be of integers of 2, 4, 8 or 16 bits, or int32, got {}", show(data)));
  if (!attrs.out_dtype.is_float() || attrs.out_dtype.bits() > 32)
    input.fail(fmt::format("out_dtype is {}, expected float32, float16 or bfloat16", attrs.out_dtype.to_string()));
  const bool scale = check_per_axis(input, data, 1, "input_scale", DataType::float_(32), attrs.axis);
  const bool zero = check_per_axis(input, data, 2, "input_zero_point", DataType::int_(32), attrs.axis);
  return scale && zero ? Type(make_tensor_type(data->shape, attrs.out_dtype)) : Type();
}

bool any_per_axis(const EvalInput& input) { return !input.args[1].shape().empty() || !input.args[2].shape().empty(); }

std::vector<NDArray> eval_quantize(const EvalInput& input) {
  const auto& attrs = input.attrs<QuantizeAttrs>();
  const NDArray out = input.make_output();
  const NDArray& scale = input.args[1];
  const Elements<int32_t> zero(input.args[2]);
  const DataType dtype = out.dtype();
  const double bound = quantize_bound(dtype);
  const bool scales = !scale.shape().empty(), zeros = !input.args[2].shape().empty();
  dispatch_float(input.args[0].dtype(), [&]<typename From>() {
    using C = Compute<From>;
    const Elements<From> x(input.args[0]);
    const auto scale_at = reader_as<C>(scale.dtype());
    // A narrow integer takes a byte.
    dispatch_int(dtype.is_narrow() ? DataType(dtype.code(), 8) : dtype, [&]<typename To>() {
      using Sum = std::conditional_t<sizeof(To) <= 2, int32_t, int64_t>;
      const Elements<To> y(out);
      for_each_channel(out.shape(), attrs.axis, any_per_axis(input), [&](int64_t i, int64_t channel) {
        const C rounded = std::nearbyint(x[i] / scale_at(scale, scales ? channel : 0));
        const C low = static_cast<C>(-bound), high = static_cast<C>(bound);
        C cut = rounded > low ? rounded : low;  // NaN becomes the least integer
        cut = cut < high ? cut : high;
        const Sum sum = wrapping_add(static_cast<Sum>(cut), static_cast<Sum>(zero[zeros ? channel : 0]));
        y.set(i, static_cast<To>(std::clamp<int64_t>(sum, least_integer(dtype), most_integer(dtype))));
      });
    });
  });
  return {out};
}

std::vector<NDArray> eval_dequantize(const EvalInput& input) {
  const auto& attrs = input.attrs<DequantizeAttrs>();
  const NDArray out = input.make_output();
  const NDArray& scale = input.args[1];
  const Elements<int32_t> zero(input.args[2]);
  const auto data_at = reader_as<int32_t>(input.args[0].dtype());
  const bool scales = !scale.shape().empty(), zeros = !input.args[2].shape().empty();
  dispatch_float(out.dtype(), [&]<typename To>() {
    using C = Compute<To>;
    const auto scale_at = reader_as<C>(scale.dtype());
    const Elements<To> y(out);
    for_each_channel(out.shape(), attrs.axis, any_per_axis(input), [&](int64_t i, int64_t channel) {
      const uint32_t from_zero =
          static_cast<uint32_t>(data_at(input.args[0], i)) - static_cast<uint32_t>(zero[zeros ? channel : 0]);  // wraps
      y.set(i, static_cast<C>(static_cast<int32_t>(from_zero)) * scale_at(scale, scales ? channel : 0));
    });
  });
  return {out};
}

template <typename T>
Expr between(std::string_view op, Array<Expr> args, DataType out_dtype, int64_t axis, Span span) {
  return call_with<T>(op, std::move(args), std::move(span), [&](T& attrs) {
    attrs.out_dtype = out_dtype;
    attrs.axis = axis;
  });
}

}  // namespace

void register_quantize_ops() {
  OpBuilder("qnn.quantize",
            "round(data / output_scale) + output_zero_point, cut to the range of out_dtype: data f32[...], scale f32 "
            "and zero point int32, each [] or [data's dimension along axis] -> out_dtype[...]. The quotient is of "
            "float32 and its halves are rounded to even. NaN gives the least integer. Zero points are numbers of "
            "out_dtype.")
      .arg("data", "Tensor", "float32[...]: x")
      .arg("output_scale", "Tensor", "float32[] or float32[data's dimension along axis]: the scale of the result")
      .arg("output_zero_point", "Tensor", kZeroPointDoc)
      .attrs<QuantizeAttrs>()
      .relation(relate_quantize)
      .fusion(FusionKind::broadcast)
      .level(11)
      .eval(eval_quantize);
  OpBuilder(
      "qnn.dequantize",
      "(data - input_zero_point) * input_scale: data of integers of 2, 4, 8 or 16 bits or int32[...], scale f32 and "
      "zero point int32, each [] or [data's dimension along axis] -> out_dtype[...]. The difference is of int32, "
      "the product of float32.")
      .arg("data", "Tensor",
           "int8, uint8, int16, uint16, int32, int4, uint4, int2 or uint2[...]: the quantized numbers")
      .arg("input_scale", "Tensor", "float32[] or float32[data's dimension along axis]: the scale of data")
      .arg("input_zero_point", "Tensor", kZeroPointDoc)
      .attrs<DequantizeAttrs>()
      .relation(relate_dequantize)
      .fusion(FusionKind::broadcast)
      .level(11)
      .eval(eval_dequantize);
}

Expr quantize(Expr data, Expr scale, Expr zero_point, DataType out_dtype, int64_t axis, Span span) {
  return between<QuantizeAttrs>("qnn.quantize", {std::move(data), std::move(scale), std::move(zero_point)}, out_dtype,
                                axis, std::move(span));
}

Expr dequantize(Expr data, Expr scale, Expr zero_point, DataType out_dtype, int64_t axis, Span span) {
  return between<DequantizeAttrs>("qnn.dequantize", {std::move(data), std::move(scale), std::move(zero_point)},
                                  out_dtype, axis, std::move(span));
}

}  // namespace headrace::ops
