// qnn.softmax: Shiftmax of I-ViT (arXiv 2207.01405, algorithm 1) with the numbers of bits that Relay chose. It computes
// in int32: e^x is 2^(x log2(e)), log2(e) is taken as 1 + 1/2 - 1/16, and 2^r as 1 + r/2 for r in (-1, 0].
#include <cmath>

#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "ops/nn/normalization.h"
#include "ops/op_handles.h"
#include "ops/qnn/requantize.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/reduce.h"

namespace headrace::ops {

namespace {

constexpr DataType kFloat = DataType::float_(32);
constexpr int32_t kExponentialBits = 8;  // bits behind the point of an exponential
constexpr int32_t kInverseBits = 30;     // bits of the numerator that is divided by the sum
constexpr int32_t kShareBits = 7;        // bits behind the point of a result before it is rescaled
constexpr float kShareScale = 1.0F / (1 << kShareBits);

NDArray scalar_array(double value, DataType dtype) {
  const NDArray made = NDArray::empty({}, dtype);
  set_element(made.tensor(), 0, value);
  return made;
}

// Returns how many steps of `scale` make 1; halves go away from zero, as in the op `round`.
int32_t steps_of_one(float scale) { return convert_number<int32_t>(std::round(1.0F / scale)); }

Type relate_quantized_softmax(const RelationInput& input) {
  const TensorType x = input.tensor(0);
  if (!x) return {};
  if (x->dtype != DataType::int_(8)) input.fail(fmt::format("x must have dtype int8, got {}", show(x)));
  normal_axis(input, input.call.attrs_as<SoftmaxAttrs>().axis, x->shape.size());
  const bool from = check_scale(input, 1) && check_zero_point(input, 2);
  const bool to = check_scale(input, 3) && check_zero_point(input, 4);
  if (const NDArray scale = input.arg_constant(1)) {
    const auto value = static_cast<float>(element_as_double(scale.tensor(), 0));
    if (steps_of_one(value) < 1) input.fail(fmt::format("scale is {}, expected at most 2", value));
  }
  check_factor(input, {scalar_array(kShareScale, kFloat)}, input.arg_constant(3));
  return from && to ? Type(x) : Type();
}

// ---- evaluation

int32_t wrapping_subtract(int32_t a, int32_t b) { return wrapping_add(a, wrapping_mul(b, -1)); }

// Returns what the op divide makes of integers: truncates, and gives 0 for a divisor 0.
int32_t truncated_quotient(int32_t a, int32_t b) { return b == 0 ? 0 : static_cast<int32_t>(int64_t{a} / b); }

// Returns e^(x / one) * one * 2^kExponentialBits for x <= 0; 0 where e^(x / one) is 2^-(kExponentialBits + 1) or less.
int32_t exponential(int32_t x, int32_t one) {
  const int32_t power = wrapping_subtract(wrapping_add(x, x >> 1), x >> 4);
  const int32_t halvings = truncated_quotient(power, wrapping_mul(one, -1));
  const int32_t rest = wrapping_add(power, wrapping_mul(halvings, one));
  const int32_t base = wrapping_add(rest >> 1, one);
  const int32_t bits = wrapping_subtract(kExponentialBits, halvings);
  return bits < 0 || bits > 31 ? 0 : static_cast<int32_t>(static_cast<uint32_t>(base) << bits);
}

// Computes `size` elements of x that are `step` apart.
void quantized_softmax_line(const Elements<int32_t>& x, const Elements<int32_t>& y, int64_t size, int64_t step,
                            int32_t one) {
  int32_t greatest = std::numeric_limits<int32_t>::min(), sum = 0;
  for (int64_t i = 0; i < size; ++i) greatest = std::max(greatest, x[i * step]);
  for (int64_t i = 0; i < size; ++i) {
    y.set(i * step, exponential(wrapping_subtract(x[i * step], greatest), one));
    sum = wrapping_add(sum, y[i * step]);
  }
  const int32_t inverse = truncated_quotient(int32_t{1} << kInverseBits, sum);
  for (int64_t i = 0; i < size; ++i) y.set(i * step, wrapping_mul(inverse, y[i * step]) >> (kInverseBits - kShareBits));
}

std::vector<NDArray> eval_quantized_softmax(const EvalInput& input) {
  const auto& args = input.args;
  const Shape& shape = args[0].shape();
  const size_t axis = normal_axis(input.attrs<SoftmaxAttrs>().axis, shape.size());
  const NDArray numbers = less_zero_point(args[0], args[2]), shares = NDArray::empty(shape, kQuantizedSum);
  const int32_t one = steps_of_one(static_cast<float>(element_as_double(args[1].tensor(), 0)));
  int64_t inner = 1;
  for (size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
  const int64_t size = shape[axis];
  for (int64_t line = 0; size > 0 && line < shares.num_elements() / size; ++line) {
    const int64_t start = line / inner * inner * size + line % inner;
    const auto from_start = [&](const NDArray& array) {
      Elements<int32_t> elements(array);
      elements.data += start;
      return elements;
    };
    quantized_softmax_line(from_start(numbers), from_start(shares), size, inner, one);
  }
  const TensorSteps from{scalar_array(kShareScale, kFloat), scalar_array(0, kQuantizedSum)};
  return {requantized(shares, from, {args[3], args[4]}, {.out_dtype = DataType::int_(8)})};
}

// ---- expression

Expr quantized_softmax_form(const relay::CallNode& call, const Array<Type>& types) {
  const Span& span = call.span;
  const Shape axis{call.attrs_as<SoftmaxAttrs>().axis};
  const auto number = [&](double value, DataType dtype = kQuantizedSum) {
    return Expr(relay::make_constant(scalar_array(value, dtype), span));
  };
  const auto shifted_right = [&](const Expr& x, int32_t bits) {
    return binary(op::kRightShift, x, number(bits), span);
  };
  const Expr ones = unary(op::kRound, divide(number(1, kFloat), call.args[1], span), span);
  const Expr one = cast(ones, kQuantizedSum, span), minus_one = unary(op::kNegative, one, span);
  const Expr numbers = less_zero_point(call.args[0], types[0], parameter(call, types, 2), -1, span);
  const Expr x = subtract(numbers, reduce(op::kMax, numbers, axis, true, false, span), span);
  const Expr power = subtract(add(x, shifted_right(x, 1), span), shifted_right(x, 4), span);
  const Expr halvings = divide(power, minus_one, span);
  const Expr rest = add(power, multiply(halvings, one, span), span);
  const Expr base = add(shifted_right(rest, 1), one, span);
  const Expr bits = subtract(number(kExponentialBits), halvings, span);
  const Expr exponentials = binary(op::kLeftShift, base, bits, span);
  const Expr inverse = divide(number(1 << kInverseBits), reduce(op::kSum, exponentials, axis, true, false, span), span);
  const Expr shares = shifted_right(multiply(inverse, exponentials, span), kInverseBits - kShareBits);
  return requantized(shares, sum_type(types[0]), {{number(kShareScale, kFloat)}, {number(0)}},
                     {parameter(call, types, 3), parameter(call, types, 4)}, {.out_dtype = DataType::int_(8)}, span);
}

}  // namespace

void register_quantized_softmax_op() {
  OpBuilder(
      "qnn.softmax",
      "nn.softmax of quantized numbers, in integers as Relay defines it: x int8[...] -> the same type. With one = "
      "round(1 / scale), d = x - max(x) over axis, p = d + (d >> 1) - (d >> 4), q = p / -one and r = p + q * "
      "one, an exponential is e = ((r >> 1) + one) << (8 - q), 0 for q above 8; the result is 2^30 / sum(e) * e "
      ">> 23, of scale 1/128, brought to the result's scale as qnn.requantize does. Quotients truncate and int32 "
      "wraps. The method is Shiftmax of I-ViT (arXiv 2207.01405, algorithm 1).")
      .arg("x", "Tensor", "int8[...]: the scores")
      .arg("scale", "Tensor", "float32[]: the scale of x, at most 2")
      .arg("zero_point", "Tensor", "int32[]: the zero point of x")
      .arg("output_scale", "Tensor", "float32[]: the scale of the result")
      .arg("output_zero_point", "Tensor", "int32[]: the zero point of the result")
      .attrs<SoftmaxAttrs>()
      .relation(relate_quantized_softmax)
      .fusion(FusionKind::opaque)
      .level(11)
      .eval(eval_quantized_softmax)
      .fact(kPlainForm, quantized_softmax_form);
}

}  // namespace headrace::ops
