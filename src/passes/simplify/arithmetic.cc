#include "interp/evaluate.h"
#include "ops/op_handles.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "passes/simplify/joined_constants.h"
#include "passes/simplify/law.h"

namespace headrace::passes::simplify {

using relay::CallNode;
using relay::ConstantNode;

namespace {

// x + 0 == 0 + x == x - 0 == x
Expr drop_zero(const Site& s) {
  if (all_elements_are(s.arg(1), 0)) return s.operand(0);
  return s.is(op::kAdd) && all_elements_are(s.arg(0), 0) ? s.operand(1) : Expr();
}

// x * 1 == 1 * x == x / 1 == pow(x, 1) == x
Expr drop_one(const Site& s) {
  if (all_elements_are(s.arg(1), 1)) return s.operand(0);
  return s.is(op::kMultiply) && all_elements_are(s.arg(0), 1) ? s.operand(1) : Expr();
}

// The scalar that all elements of a call of zeros, ones or full are; null for any other expression.
Expr filling(const Expr& expr) {
  if (!expr->has_checked_type()) return {};
  const DataType dtype = dtype_of(expr);
  if (relay::is_call(expr, op::kZeros)) return relay::make_scalar(0, dtype);
  if (relay::is_call(expr, op::kOnes)) return relay::make_scalar(1, dtype);
  const auto* full = relay::call_of(expr, op::kFull);
  return full != nullptr && scalar_value(full->args[0]) && dtype_of(full->args[0]) == dtype ? full->args[0] : Expr();
}

// x + full(c) == x + c, also with -, *, /, and with the operands the other way round, where x has the call's shape
Expr scalar_of_filled(const Site& s) {
  for (const size_t side : {size_t{0}, size_t{1}}) {
    const Expr scalar = filling(s.arg(side));
    if (!scalar || !s.operand(1 - side)) continue;
    return side == 0 ? ops::binary(s.op().name, scalar, s.arg(1), s.span())
                     : ops::binary(s.op().name, s.arg(0), scalar, s.span());
  }
  return {};
}

// x + x == x * 2
Expr double_itself(const Site& s) {
  if (s.arg(0) != s.arg(1)) return {};
  return ops::multiply(s.arg(0), relay::make_scalar(2, s.dtype()), s.span());
}

NDArray constant_data(const Expr& constant) { return constant.as<ConstantNode>()->data; }

// Which sums and products of two constants may take the place of two operations on a variable.
bool may_join(const CallNode& binary, const NDArray& a, const NDArray& b) {
  if (!a.dtype().is_float()) return true;
  if (relay::is_call(binary, op::kMultiply)) return keeps_range(a, b);
  const Signs signs = signs_of(a);
  return !(relay::is_call(binary, op::kSubtract) ? signs.negated() : signs).oppose(signs_of(b));
}

// The shape that both broadcast to.
Shape broadcast_shape(const Shape& a, const Shape& b) {
  const Shape& longer = a.size() < b.size() ? b : a;
  const Shape& shorter = a.size() < b.size() ? a : b;
  Shape shape = longer;
  for (size_t i = 0; i < shorter.size(); ++i) {
    int64_t& dim = shape[longer.size() - 1 - i];
    if (dim == 1) dim = shorter[shorter.size() - 1 - i];
  }
  return shape;
}

// Returns the value of a binary call of constants; nothing where joining them could change more than the last bits, or
// would make a constant that is larger than both.
std::optional<NDArray> joined(const Expr& call) {
  const CallNode& binary = *call.as<CallNode>();
  const NDArray a = constant_data(binary.args[0]).to_dense(), b = constant_data(binary.args[1]).to_dense();
  if (!may_join(binary, a, b)) return {};
  // An outer product of the two would be larger than both.
  const Shape shape = broadcast_shape(a.shape(), b.shape());
  if (num_elements(shape) > std::max(a.num_elements(), b.num_elements())) return {};
  interp::ConstantBudget budget(a.size_bytes() + b.size_bytes());  // the work is linear in the program's constants
  const interp::Evaluation result = interp::evaluate(call, budget);
  if (result.outcome != interp::Evaluation::Outcome::done) return {};
  const NDArray data = result.value.as<NDArray>();
  const bool is_product = relay::is_call(binary, op::kMultiply);
  const bool is_good = is_product ? is_good_product(a, b, data) : is_good_sum(data);
  return is_good ? std::optional(data) : std::nullopt;
}

// The constant and the other operand of a commutative call.
struct WithConstant {
  Expr other, constant;
};
std::optional<WithConstant> split_constant(const CallNode& call) {
  const Expr a = call.args[0], b = call.args[1];
  if (b.is<ConstantNode>() && !a.is<ConstantNode>()) return WithConstant{a, b};
  if (a.is<ConstantNode>() && !b.is<ConstantNode>()) return WithConstant{b, a};
  return std::nullopt;
}

// (x + c) + d == x + (c + d) where c and d have one sign; (x * c) * d == x * (c * d); up to rounding
Expr join_constants(const Site& s) {
  const auto outer = split_constant(s.call);
  const auto* inner_call = outer ? relay::call_of(outer->other, s.op()) : nullptr;
  const auto inner = inner_call == nullptr ? std::nullopt : split_constant(*inner_call);
  if (!inner) return {};
  const auto data = joined(ops::binary(s.op().name, inner->constant, outer->constant));
  if (!data) return {};
  return ops::binary(s.op().name, inner->other, relay::make_constant(*data, s.call.span), s.call.span);
}

// (x + c) * d == x * d + c * d, and (x * b + c) * d == x * (b * d) + c * d; up to rounding
Expr distribute(const Site& s) {
  const auto outer = split_constant(s.call);
  const auto* sum = outer ? relay::call_of(outer->other, op::kAdd) : nullptr;
  const auto inner = sum == nullptr ? std::nullopt : split_constant(*sum);
  if (!inner || !s.has_type_of(inner->other)) return {};
  const auto offset = joined(ops::multiply(inner->constant, outer->constant));
  if (!offset) return {};
  Expr data = inner->other, factor = outer->constant;
  const auto* product = relay::call_of(data, op::kMultiply);
  const auto scaled = product == nullptr ? std::nullopt : split_constant(*product);
  if (const auto both = scaled ? joined(ops::multiply(scaled->constant, factor)) : std::nullopt) {
    data = scaled->other;
    factor = relay::make_constant(*both, s.span());
  }
  const Expr times = ops::multiply(data, factor, s.span());
  times->set_checked_type(s.type);
  return ops::add(times, relay::make_constant(*offset, s.span()), s.span());
}

// bias_add(x, b) + c == x + (b' + c), where b' is b along its axis and has the sign of c; up to rounding
Expr join_bias(const Site& s) {
  const auto outer = split_constant(s.call);
  const auto* inner = outer ? relay::call_of(outer->other, op::kBiasAdd) : nullptr;
  if (inner == nullptr || !inner->args[1].is<ConstantNode>() || !s.has_type_of(outer->other)) return {};
  const auto rank = s.type.as<TensorTypeNode>()->shape.size();
  const size_t axis = ops::normal_axis(inner->attrs_as<ops::BiasAddAttrs>().axis, rank);
  const NDArray bias = constant_data(inner->args[1]);
  Shape along(rank - axis, 1);
  along[0] = bias.num_elements();
  const auto data = joined(ops::add(relay::make_constant(bias.reshaped(along)), outer->constant));
  return data ? ops::add(inner->args[0], relay::make_constant(*data, s.call.span), s.call.span) : Expr();
}

// (x - c) - d == x - (c + d) where c and d have one sign; up to rounding
Expr join_subtractions(const Site& s) {
  const auto* inner = relay::call_of(s.arg(0), op::kSubtract);
  if (inner == nullptr || !s.arg(1).is<ConstantNode>() || !inner->args[1].is<ConstantNode>()) return {};
  const auto data = joined(ops::add(inner->args[1], s.arg(1)));
  return data ? ops::subtract(inner->args[0], relay::make_constant(*data, s.span()), s.span()) : Expr();
}

// (x - c) + d == x + (d - c) where c and d have opposite signs; up to rounding
Expr add_after_subtract(const Site& s) {
  const auto outer = split_constant(s.call);
  const auto* inner = outer ? relay::call_of(outer->other, op::kSubtract) : nullptr;
  if (inner == nullptr || !inner->args[1].is<ConstantNode>()) return {};
  const auto data = joined(ops::subtract(outer->constant, inner->args[1]));
  return data ? ops::add(inner->args[0], relay::make_constant(*data, s.span()), s.span()) : Expr();
}

// (x + c) - d == x + (c - d) where c and d have opposite signs; up to rounding
Expr subtract_after_add(const Site& s) {
  const auto* call = relay::call_of(s.arg(0), op::kAdd);
  const auto inner = call == nullptr ? std::nullopt : split_constant(*call);
  if (!inner || !s.arg(1).is<ConstantNode>()) return {};
  const auto data = joined(ops::subtract(inner->constant, s.arg(1)));
  return data ? ops::add(inner->other, relay::make_constant(*data, s.span()), s.span()) : Expr();
}

// x - x == 0, of integers
Expr subtract_itself(const Site& s) { return s.arg(0) == s.arg(1) ? filled(s, 0) : Expr(); }

// x * 0 == 0 * x == 0, of integers
Expr multiply_by_zero(const Site& s) {
  return all_elements_are(s.arg(0), 0) || all_elements_are(s.arg(1), 0) ? filled(s, 0) : Expr();
}

const CallNode* as_negative(const Expr& expr) { return relay::call_of(expr, op::kNegative); }

// 0 - x == -x
Expr subtract_from_zero(const Site& s) {
  return all_elements_are(s.arg(0), 0) && s.operand(1) ? ops::unary(op::kNegative, s.arg(1), s.span()) : Expr();
}

// x * -1 == -1 * x == -x
Expr multiply_by_minus_one(const Site& s) {
  for (const size_t side : {size_t{0}, size_t{1}}) {
    if (all_elements_are(s.arg(1 - side), -1) && s.operand(side))
      return ops::unary(op::kNegative, s.arg(side), s.span());
  }
  return {};
}

// x + -y == x - y; -x + y == y - x
Expr add_negative(const Site& s) {
  if (const auto* y = as_negative(s.arg(1))) return ops::subtract(s.arg(0), y->args[0], s.span());
  const auto* x = as_negative(s.arg(0));
  return x == nullptr ? Expr() : ops::subtract(s.arg(1), x->args[0], s.span());
}

// x - -y == x + y
Expr subtract_negative(const Site& s) {
  const auto* y = as_negative(s.arg(1));
  return y == nullptr ? Expr() : ops::add(s.arg(0), y->args[0], s.span());
}

// -x * -y == x * y; -x / -y == x / y, of floats: the least integer is its own negative, and unsigned ones have none
Expr drop_two_negatives(const Site& s) {
  const auto *x = as_negative(s.arg(0)), *y = as_negative(s.arg(1));
  return x == nullptr || y == nullptr ? Expr() : ops::binary(s.op().name, x->args[0], y->args[0], s.span());
}

// -(x - y) == y - x
Expr negate_difference(const Site& s) {
  const auto* inner = relay::call_of(s.arg(0), op::kSubtract);
  return inner == nullptr ? Expr() : ops::subtract(inner->args[1], inner->args[0], s.span());
}

// pow(x, 2) == x * x; up to rounding
Expr square(const Site& s) {
  return all_elements_are(s.arg(1), 2) && s.operand(0) ? ops::multiply(s.arg(0), s.arg(0), s.span()) : Expr();
}

// pow(x, 3) == x * x * x; up to rounding
Expr cube(const Site& s) {
  if (!all_elements_are(s.arg(1), 3) || !s.operand(0)) return {};
  const Expr square = ops::multiply(s.arg(0), s.arg(0), s.span());
  square->set_checked_type(s.type);
  return ops::multiply(square, s.arg(0), s.span());
}

// pow(x, -1) == 1 / x, of floats; up to rounding
Expr invert(const Site& s) {
  if (!all_elements_are(s.arg(1), -1) || !s.operand(0)) return {};
  return ops::divide(relay::make_scalar(1, s.dtype()), s.arg(0), s.span());
}

// 1 / sqrt(x) == rsqrt(x) and c / sqrt(x) == c * rsqrt(x), c a constant; up to rounding
Expr invert_root(const Site& s) {
  const auto* root = relay::call_of(s.arg(1), op::kSqrt);
  if (root == nullptr || !s.operand(1)) return {};
  const bool is_inverse = all_elements_are(s.arg(0), 1);
  if (!is_inverse && !s.arg(0).is<relay::ConstantNode>()) return {};
  const Expr inverse = ops::unary(op::kRsqrt, root->args[0], s.span());
  inverse->set_checked_type(s.arg(1)->checked_type());
  return is_inverse ? inverse : ops::multiply(s.arg(0), inverse, s.span());
}

// floor_divide(x, 1) == trunc_divide(x, 1) == x, of integers
Expr divide_by_one(const Site& s) { return all_elements_are(s.arg(1), 1) ? s.operand(0) : Expr(); }

// mod(x, 1) == floor_mod(x, 1) == 0, of integers
Expr rest_of_one(const Site& s) { return all_elements_are(s.arg(1), 1) ? filled(s, 0) : Expr(); }

// bias_add(x, 0) == x
Expr drop_zero_bias(const Site& s) { return all_elements_are(s.arg(1), 0) ? s.arg(0) : Expr(); }

// -(-x) == x
Expr drop_double_negative(const Site& s) {
  const auto* inner = as_negative(s.arg(0));
  return inner == nullptr ? Expr() : inner->args[0];
}

constexpr auto kAll = LawDtypes::all;
constexpr auto kAny = LawShape::any;
constexpr auto kZeroSign = LawNumerics::zero_sign;
constexpr auto kExact = LawNumerics::exact;
constexpr auto kRounding = LawNumerics::rounding;

constexpr Law kArithmeticLaws[] = {
    {op::kAdd, drop_zero, kAll, kAny, kZeroSign},
    {op::kAdd, join_constants, kAll, kAny, kRounding},
    {op::kAdd, join_bias, kAll, kAny, kRounding},
    {op::kAdd, add_after_subtract, kAll, kAny, kRounding},
    {op::kAdd, add_negative},
    {op::kAdd, double_itself, kAll, kAny, kExact, LawScope::as_named},
    {op::kAdd, scalar_of_filled},
    {op::kSubtract, drop_zero, kAll, kAny, kZeroSign},  // exact but where the zero is -0
    {op::kSubtract, subtract_itself, LawDtypes::exact, LawShape::known},
    {op::kSubtract, subtract_from_zero, kAll, kAny, kZeroSign, LawScope::builds},
    {op::kSubtract, join_subtractions, kAll, kAny, kRounding},
    {op::kSubtract, subtract_after_add, kAll, kAny, kRounding},
    {op::kSubtract, subtract_negative},
    {op::kSubtract, scalar_of_filled},
    {op::kMultiply, drop_one},
    {op::kMultiply, multiply_by_zero, LawDtypes::exact, LawShape::known},
    {op::kMultiply, multiply_by_minus_one},
    {op::kMultiply, join_constants, kAll, kAny, kRounding},
    {op::kMultiply, drop_two_negatives},
    {op::kMultiply, distribute, kAll, kAny, kRounding, LawScope::as_named},
    {op::kMultiply, scalar_of_filled},
    {op::kDivide, drop_one},
    {op::kDivide, drop_two_negatives, LawDtypes::floats},
    {op::kDivide, invert_root, kAll, kAny, kRounding},
    {op::kDivide, scalar_of_filled},
    {op::kFloorDivide, divide_by_one, LawDtypes::exact},
    {op::kTruncDivide, divide_by_one, LawDtypes::exact},
    {op::kMod, rest_of_one, LawDtypes::exact, LawShape::known},
    {op::kTruncMod, rest_of_one, LawDtypes::exact, LawShape::known},
    {op::kFloorMod, rest_of_one, LawDtypes::exact, LawShape::known},
    {op::kPower, drop_one},
    {op::kPower, square, kAll, kAny, kRounding},
    {op::kPower, cube, kAll, kAny, kRounding},
    {op::kPower, invert, LawDtypes::floats, kAny, kRounding},
    {op::kNegative, drop_double_negative},
    {op::kNegative, negate_difference, kAll, kAny, kZeroSign},
    {op::kBiasAdd, drop_zero_bias, kAll, kAny, kZeroSign},
};

}  // namespace

std::span<const Law> arithmetic_laws() { return kArithmeticLaws; }

}  // namespace headrace::passes::simplify
