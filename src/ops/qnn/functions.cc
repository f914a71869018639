// Functions of single quantized numbers: qnn.leaky_relu, and those of floats, which a table of 256 numbers gives.
#include <cmath>

#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "ops/op_handles.h"
#include "ops/qnn/quantize.h"
#include "ops/qnn/requantize.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/slice.h"

namespace headrace::ops {

namespace {

constexpr DataType kReal = DataType::float_(32);

Type relate_function(const RelationInput& input) {
  const TensorType data = byte_argument(input, 0);
  if (!data) return {};
  const bool from = check_scale(input, 1) && check_zero_point(input, 2);
  const bool to = check_scale(input, 3) && check_zero_point(input, 4);
  return from && to ? Type(data) : Type();
}

// Names the arguments as Relay's functions in Python do; `side` stands before the scale and zero point of x.
OpBuilder with_arguments(OpBuilder op, std::string_view side) {
  op.arg("x", "Tensor", "int8 or uint8[...]: the integers")
      .arg(fmt::format("{}scale", side), "Tensor", "float32[]: the scale of x")
      .arg(fmt::format("{}zero_point", side), "Tensor", "int32[]: the zero point of x")
      .arg("output_scale", "Tensor", "float32[]: the scale of the result")
      .arg("output_zero_point", "Tensor", "int32[]: the zero point of the result")
      .fusion(FusionKind::opaque)
      .level(11);
  return op;
}

// ---- leaky_relu

Type relate_quantized_leaky_relu(const RelationInput& input) {
  const double alpha = input.call.attrs_as<LeakyReluAttrs>().alpha;
  if (!(alpha >= 0 && alpha <= 1)) input.fail(fmt::format("alpha is {}, expected 0 to 1", alpha));
  const Type type = relate_function(input);
  check_factor(input, {input.arg_constant(1)}, input.arg_constant(3));
  return type;
}

// Brings x to the result's scale and its zero point z: q. Below its own zero point, x becomes alpha * q + (1 - alpha) *
// z, each product rounded.
std::vector<NDArray> eval_quantized_leaky_relu(const EvalInput& input) {
  const double alpha = input.attrs<LeakyReluAttrs>().alpha;
  const FixedPoint slope = fixed_point_of(alpha), rest = fixed_point_of(1 - alpha);
  const NDArray& data = input.args[0];
  const NDArray there = requantized(data, {input.args[1], input.args[2]}, {input.args[3], input.args[4]}, {});
  const int32_t zero = Elements<int32_t>(input.args[2])[0];
  const int32_t offset = multiply_fixed(Elements<int32_t>(input.args[4])[0], rest, Rounding::upward);
  const NDArray bent = NDArray::empty(data.shape(), kQuantizedSum);
  const auto data_at = reader_as<int32_t>(data.dtype());
  const Elements<int32_t> q(there), y(bent);
  for (int64_t i = 0; i < bent.num_elements(); ++i) {
    const bool is_below = data_at(data, i) < zero;
    y.set(i, is_below ? wrapping_add(multiply_fixed(q[i], slope, Rounding::upward), offset) : q[i]);
  }
  return {saturated(bent, input.out_types[0]->dtype)};
}

Expr leaky_relu_form(const relay::CallNode& call, const Array<Type>& types) {
  const double alpha = call.attrs_as<LeakyReluAttrs>().alpha;
  const Span& span = call.span;
  const auto given = [&](size_t i) { return parameter(call, types, i); };
  const Expr x = cast(call.args[0], kQuantizedSum, span);
  const Expr q = requantized(x, sum_type(types[0]), {given(1), given(2)}, {given(3), given(4)}, {}, span);
  const Expr below = add(multiplied_fixed(q, fixed_point_of(alpha), span),
                         multiplied_fixed(call.args[4], fixed_point_of(1 - alpha), span), span);
  const Expr bent = where(binary(op::kLess, x, call.args[2], span), below, q, span);
  return saturated(bent, dtype_of(types[0]), span);
}

// ---- functions of floats

struct RealFunction {
  const char* name;
  float (*compute)(float);
  Expr (*form)(const Expr& x, const Span& span);
};

template <const OpHandle& op>
Expr unary_form(const Expr& x, const Span& span) {
  return unary(op, x, span);
}

Expr real(double value, const Span& span) { return relay::make_constant(relay::make_scalar(value, kReal)->data, span); }

Expr hardswish_form(const Expr& x, const Span& span) {
  const Expr gate = clip(add(x, real(3, span), span), 0, 6, span);
  return divide(multiply(x, gate, span), real(6, span), span);
}

constexpr RealFunction kFunctions[] = {
    {"qnn.tanh", [](float x) { return std::tanh(x); }, unary_form<op::kTanh>},
    {"qnn.exp", [](float x) { return std::exp(x); }, unary_form<op::kExp>},
    {"qnn.sqrt", [](float x) { return std::sqrt(x); }, unary_form<op::kSqrt>},
    {"qnn.rsqrt", [](float x) { return 1.0f / std::sqrt(x); }, unary_form<op::kRsqrt>},
    {"qnn.erf", [](float x) { return std::erf(x); }, unary_form<op::kErf>},
    {"qnn.sigmoid", [](float x) { return 1.0f / (1.0f + std::exp(-x)); }, unary_form<op::kSigmoid>},
    {"qnn.hardswish", [](float x) { return x * std::clamp(x + 3.0f, 0.0f, 6.0f) / 6.0f; }, hardswish_form},
    {"qnn.log", [](float x) { return std::log(x); }, unary_form<op::kLog>},
    {"qnn.abs", [](float x) { return std::abs(x); }, unary_form<op::kAbs>},
};

// Returns what qnn.quantize makes of a number: halves go to even, and NaN becomes the least integer.
int64_t quantized(float x, float scale, int32_t zero, DataType dtype) {
  const auto bound = static_cast<float>(quantize_bound(dtype));
  const float rounded = std::nearbyint(x / scale);
  float cut = rounded > -bound ? rounded : -bound;
  cut = cut < bound ? cut : bound;
  const int32_t sum = wrapping_add(static_cast<int32_t>(cut), zero);
  return std::clamp<int64_t>(sum, least_integer(dtype), most_integer(dtype));
}

std::vector<NDArray> eval_function(const EvalInput& input, const RealFunction& function) {
  const NDArray out = input.make_output();
  const NDArray sums = less_zero_point(input.args[0], input.args[2]);
  const auto scale_of = [&](size_t i) { return static_cast<float>(element_as_double(input.args[i].tensor(), 0)); };
  const float from = scale_of(1), to = scale_of(3);
  const int32_t zero = Elements<int32_t>(input.args[4])[0];
  const Elements<int32_t> x(sums);
  dispatch_int(out.dtype(), [&]<typename T>() {
    const Elements<T> y(out);
    for (int64_t i = 0; i < out.num_elements(); ++i)
      y.set(i, static_cast<T>(quantized(function.compute(static_cast<float>(x[i]) * from), to, zero, out.dtype())));
  });
  return {out};
}

// Returns all integers of a dtype of 8 bits, from the least.
NDArray all_integers(DataType dtype) {
  const NDArray all = NDArray::empty({256}, dtype);
  for (int64_t i = 0; i < 256; ++i) set_element_int(all.tensor(), i, least_integer(dtype) + i);
  return all;
}

// Looks the result up in the table of all integers, so that constant scales leave no arithmetic of floats to a run.
Expr function_form(const relay::CallNode& call, const Array<Type>& types, const RealFunction& function) {
  const Span& span = call.span;
  const DataType dtype = dtype_of(types[0]);
  const Expr all = relay::make_constant(all_integers(dtype), span);
  const Expr x = dequantize(all, call.args[1], call.args[2], kReal, -1, span);
  const Expr table = quantize(function.form(x, span), call.args[3], call.args[4], dtype, -1, span);
  const Expr wide = cast(call.args[0], kQuantizedSum, span);
  const int64_t least = least_integer(dtype);
  const Expr place =
      least == 0
          ? wide
          : subtract(wide,
                     relay::make_constant(relay::make_scalar(static_cast<double>(least), kQuantizedSum)->data, span),
                     span);
  return take(table, place, 0, "clip", 0, span);
}

}  // namespace

void register_quantized_functions() {
  with_arguments(
      OpBuilder(
          "qnn.leaky_relu",
          "q, which is x brought to the result's scale; where x is below its zero point, alpha * q + (1 - alpha) * "
          "output_zero_point: x int8 or uint8[...] -> the same type. Each of these products is rounded, halves up; "
          "factors are of 31 bits and a power of two. alpha is 0 to 1."),
      "input_")
      .attrs<LeakyReluAttrs>()
      .relation(relate_quantized_leaky_relu)
      .eval(eval_quantized_leaky_relu)
      .fact(kPlainForm, leaky_relu_form);
  for (const RealFunction& row : kFunctions) {
    with_arguments(
        OpBuilder(row.name, fmt::format("qnn.quantize({}(qnn.dequantize(x))): x int8 or uint8[...] -> the same type. "
                                        "Computes in float32; halves go to even, and NaN gives the least integer.",
                                        std::string_view(row.name).substr(4))),
        "")
        .relation(relate_function)
        .eval([&row](const EvalInput& input) { return eval_function(input, row); })
        .fact(kPlainForm, [&row](const relay::CallNode& call, const Array<Type>& types) {
          return function_form(call, types, row);
        });
  }
}

}  // namespace headrace::ops
