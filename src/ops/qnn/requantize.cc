#include "ops/qnn/requantize.h"

#include <bit>
#include <cmath>

#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "ops/qnn/quantize.h"
#include "ops/tensor/fixed_point.h"

namespace headrace::ops {

void RequantizeAttrs::fields(FieldList<RequantizeAttrs>& f) {
  using A = RequantizeAttrs;
  f.field<&A::axis>("axis", {.default_value = -1,
                             .has_default = true,
                             .doc = "the axis of data that a scale or zero point of one dimension has"})
      .field<&A::rounding>("rounding",
                           {.default_value = "None",
                            .has_default = true,
                            .doc = "where halves go: UPWARD, or TONEAREST, which is away from zero; None: UPWARD"})
      .field<&A::compute_dtype>(
          "compute_dtype",
          {.default_value = "None",
           .has_default = true,
           .doc = "int64: a product in fixed point, of a factor of 31 bits; float32; float64; None: int64"})
      .field<&A::out_dtype>("out_dtype",
                            {.default_value = "int8", .has_default = true, .doc = "int8, uint8, int16 or int32"});
}

// Reads the bits of the double, so that every factor, also one that is not a number, has a defined result.
FixedPoint fixed_point_of(double factor) {
  const auto bits = std::bit_cast<int64_t>(factor);
  int64_t exponent = (bits >> 52) - 1022;
  const int64_t mantissa = (bits & ((int64_t{1} << 52) - 1)) | int64_t{1} << 52;
  int64_t multiplier = (mantissa + (int64_t{1} << 21)) >> 22;
  const int64_t carry = multiplier >> kFixedBits;
  multiplier >>= carry;
  exponent += carry;
  if (exponent < -kMostFixedShift) multiplier = 0;
  return {static_cast<int32_t>(multiplier),
          static_cast<int32_t>(std::clamp<int64_t>(exponent, -kMostFixedShift, kMostFixedShift))};
}

int32_t multiply_fixed(int32_t x, FixedPoint factor, Rounding rounding) {
  const int64_t left = std::max(factor.shift, 0), right = kFixedBits + std::max(-factor.shift, 0);
  const uint64_t product = (static_cast<uint64_t>(int64_t{x}) << left) * static_cast<uint64_t>(factor.multiplier);
  uint64_t half = uint64_t{1} << (right - 1);
  if (rounding == Rounding::to_nearest && static_cast<int64_t>(product) < 0) --half;
  return static_cast<int32_t>(static_cast<int64_t>(product + half) >> right);
}

namespace {

// Computes in floats of type F; std::round takes halves away from zero.
template <typename F>
int64_t multiply_float(int32_t x, double factor, int32_t zero, Rounding rounding) {
  const F product = static_cast<F>(x) * static_cast<F>(factor);
  const F sum = product + static_cast<F>(zero);
  const F whole = rounding == Rounding::upward ? std::floor(sum + static_cast<F>(0.5)) : std::round(sum);
  return convert_number<int64_t>(whole);
}

int64_t requantize_number(int32_t x, double factor, FixedPoint fixed, int32_t zero, const Requantizing& how) {
  switch (how.arithmetic) {
    case RescaleIn::int64:
      return wrapping_add(multiply_fixed(x, fixed, how.rounding), zero);
    case RescaleIn::float32:
      return multiply_float<float>(x, factor, zero, how.rounding);
    case RescaleIn::float64:
      return multiply_float<double>(x, factor, zero, how.rounding);
  }
  return 0;
}

// Returns the factors of the channels, or the one of all.
std::vector<double> factors_of(const NDArray& from, const NDArray& to) {
  std::vector<double> factors;
  for (int64_t i = 0; i < from.num_elements(); ++i)
    factors.push_back(element_as_double(from.tensor(), i) / element_as_double(to.tensor(), 0));
  return factors;
}

bool is_requantized(DataType dtype) { return (dtype.is_int() && dtype.bits() <= 32) || dtype == DataType::uint(8); }

Rounding rounding_of(const RequantizeAttrs& attrs) {
  return attrs.rounding == "TONEAREST" ? Rounding::to_nearest : Rounding::upward;
}

Requantizing requantizing_of(const RequantizeAttrs& attrs) {
  const RescaleIn arithmetic = attrs.compute_dtype == "float32"   ? RescaleIn::float32
                               : attrs.compute_dtype == "float64" ? RescaleIn::float64
                                                                  : RescaleIn::int64;
  return {rounding_of(attrs), arithmetic, attrs.out_dtype, attrs.axis};
}

Type relate_requantize(const RelationInput& input) {
  const auto& attrs = input.call.attrs_as<RequantizeAttrs>();
  check_one_of(input, "rounding", attrs.rounding, {"None", "UPWARD", "TONEAREST"});
  check_one_of(input, "compute_dtype", attrs.compute_dtype, {"None", "int64", "float32", "float64"});
  if (!is_requantized(attrs.out_dtype))
    input.fail(fmt::format("out_dtype is {}, expected int8, uint8, int16 or int32", attrs.out_dtype.to_string()));
  const TensorType data = input.tensor(0);
  if (!data) return {};
  if (!is_requantized(data->dtype) && data->dtype != DataType::int_(64))
    input.fail(fmt::format("data must have dtype int8, uint8, int16, int32 or int64, got {}", show(data)));
  const TensorType scale = input.tensor(1), zero = input.tensor(2);
  if (!scale || !zero) return {};
  PrimExpr size;  // asked for where something has it, since a scalar has no axis
  if (!scale->shape.empty() || !zero->shape.empty())
    size = data->shape[normal_axis(input, attrs.axis, data->shape.size())];
  const bool from = check_scale(input, 1, size) && check_zero_point(input, 2, size);
  const bool to = check_scale(input, 3) && check_zero_point(input, 4);
  if (requantizing_of(attrs).arithmetic == RescaleIn::int64)
    check_factor(input, {input.arg_constant(1)}, input.arg_constant(3));
  return from && to ? Type(make_tensor_type(data->shape, attrs.out_dtype)) : Type();
}

std::vector<NDArray> eval_requantize(const EvalInput& input) {
  const auto& args = input.args;
  return {
      requantized(args[0], {args[1], args[2]}, {args[3], args[4]}, requantizing_of(input.attrs<RequantizeAttrs>()))};
}

Expr requantize_form(const relay::CallNode& call, const Array<Type>& types) {
  const auto given = [&](size_t i) { return parameter(call, types, i); };
  return requantized(call.args[0], types[0], {given(1), given(2)}, {given(3), given(4)},
                     requantizing_of(call.attrs_as<RequantizeAttrs>()), call.span);
}

}  // namespace

NDArray requantized(const NDArray& data, const TensorSteps& from, const TensorSteps& to, const Requantizing& how) {
  const NDArray sums = less_zero_point(data, from.zero_point, how.axis);
  const std::vector<double> factors = factors_of(from.scale, to.scale);
  std::vector<FixedPoint> fixed;
  for (const double factor : factors) fixed.push_back(fixed_point_of(factor));
  const int32_t zero = Elements<int32_t>(to.zero_point)[0];
  const NDArray out = NDArray::empty(data.shape(), how.out_dtype);
  const Elements<int32_t> x(sums);
  dispatch_int(how.out_dtype, [&]<typename T>() {
    const Elements<T> y(out);
    for_each_channel(data.shape(), how.axis, !from.scale.shape().empty(), [&](int64_t i, int64_t channel) {
      const auto c = static_cast<size_t>(channel);
      const int64_t value = requantize_number(x[i], factors[c], fixed[c], zero, how);
      y.set(i, static_cast<T>(std::clamp(value, least_integer(how.out_dtype), most_integer(how.out_dtype))));
    });
  });
  return out;
}

void register_requantize_op() {
  OpBuilder("qnn.requantize",
            "(data - input_zero_point) * (input_scale / output_scale) + output_zero_point as an integer, cut to the "
            "range of out_dtype: data int8, uint8, int16, int32 or int64[...] -> out_dtype[...]. compute_dtype int64 "
            "takes the factor as 31 bits and a power of two, with a product of 64 bits, which is rounded, and a sum of "
            "int32 that wrap; floats take it as one of theirs and round the sum. The difference is of int32, to which "
            "int64 wraps.")
      .arg("data", "Tensor", "int8, uint8, int16, int32 or int64[...]: the integers")
      .arg("input_scale", "Tensor", "float32[] or float32[data's dimension along axis]: the scale of data")
      .arg("input_zero_point", "Tensor", "int32[] or int32[data's dimension along axis]: the zero point of data")
      .arg("output_scale", "Tensor", "float32[]: the scale of the result")
      .arg("output_zero_point", "Tensor", "int32[]: the zero point of the result")
      .attrs<RequantizeAttrs>()
      .relation(relate_requantize)
      .fusion(FusionKind::opaque)
      .level(11)
      .eval(eval_requantize)
      .fact(kPlainForm, requantize_form);
}

}  // namespace headrace::ops
