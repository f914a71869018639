// Rules of binary ops with numpy's broadcasting, where, bias_add.
#include "ops/tensor/broadcast.h"

#include "lower/rules/rule.h"

namespace headrace::lower {

namespace {

using Binary = std::function<PrimExpr(const PrimExpr&, const PrimExpr&)>;

// Makes the rule that applies `f` to the two elements in their wide dtype.
void binary_rule(std::string_view op, Binary f) {
  set_rule(op, [f = std::move(f)](const RuleInput& input) {
    return map_rule(input, [&](const Index& i) {
      return f(wide(load_broadcast(input.inputs[0], i)), wide(load_broadcast(input.inputs[1], i)));
    });
  });
}

void binary_rule(std::string_view op, BinaryOp kind) {
  binary_rule(op, [kind](const PrimExpr& a, const PrimExpr& b) { return make_binary(kind, a, b); });
}

void bits_rule(std::string_view op, Intrinsic intrinsic) {
  binary_rule(
      op, [intrinsic](const PrimExpr& a, const PrimExpr& b) { return make_intrinsic(intrinsic, a->dtype, {a, b}); });
}

PrimExpr trunc_divide(const PrimExpr& a, const PrimExpr& b) {
  const PrimExpr quotient = divide(a, b);
  return a->dtype.is_float() ? make_intrinsic(Intrinsic::trunc, a->dtype, {quotient}) : quotient;
}

// Returns the value of argument `i` if it is a constant scalar.
std::optional<double> constant_scalar(const RuleInput& input, size_t i) {
  const auto* constant = input.call.args[i].as<relay::ConstantNode>();
  if (constant == nullptr || constant->data.num_elements() != 1) return std::nullopt;
  return element_as_double(constant->data.to_dense().tensor(), 0);
}

Compute power_rule(const RuleInput& input) {
  const bool is_square = constant_scalar(input, 1) == 2.0;
  return map_rule(input, [&](const Index& i) {
    const PrimExpr a = wide(load_broadcast(input.inputs[0], i));
    if (is_square) return a * a;
    return make_intrinsic(Intrinsic::pow, a->dtype, {a, wide(load_broadcast(input.inputs[1], i))});
  });
}

Compute where_rule(const RuleInput& input) {
  return map_rule(input, [&](const Index& i) {
    const PrimExpr condition = load_broadcast(input.inputs[0], i);
    const bool is_bool = input.in_types[0]->dtype.is_bool();
    const PrimExpr value = wide(condition);
    return make_select(is_bool ? condition : make_binary(BinaryOp::ne, value, number_like(0, value)),
                       load_broadcast(input.inputs[1], i), load_broadcast(input.inputs[2], i));
  });
}

Compute bias_add_rule(const RuleInput& input) {
  const size_t axis = normal_axis(input.attrs<ops::BiasAddAttrs>().axis, input.in_types[0]->shape.size());
  return map_rule(input, [&](const Index& i) {
    // A bias of one element is broadcast: type inference allows it for an axis of unknown size.
    const PrimExpr at = is_int(input.in_types[1]->shape[0], 1) ? make_int(0) : i[axis];
    return wide(load(input.inputs[0], i)) + wide(load(input.inputs[1], {at}));
  });
}

}  // namespace

void register_broadcast_rules() {
  static constexpr std::pair<std::string_view, BinaryOp> kOps[] = {
      {"add", BinaryOp::add},
      {"subtract", BinaryOp::sub},
      {"multiply", BinaryOp::mul},
      {"divide", BinaryOp::div},
      {"floor_divide", BinaryOp::floor_div},
      {"mod", BinaryOp::mod},
      {"trunc_mod", BinaryOp::mod},
      {"floor_mod", BinaryOp::floor_mod},
      {"maximum", BinaryOp::max},
      {"minimum", BinaryOp::min},
      {"equal", BinaryOp::eq},
      {"not_equal", BinaryOp::ne},
      {"less", BinaryOp::lt},
      {"less_equal", BinaryOp::le},
      {"greater", BinaryOp::gt},
      {"greater_equal", BinaryOp::ge},
      {"logical_and", BinaryOp::logical_and},
      {"logical_or", BinaryOp::logical_or},
      {"logical_xor", BinaryOp::ne},
  };
  for (const auto& [op, kind] : kOps) binary_rule(op, kind);
  binary_rule("trunc_divide", trunc_divide);
  bits_rule("bitwise_and", Intrinsic::bitwise_and);
  bits_rule("bitwise_or", Intrinsic::bitwise_or);
  bits_rule("bitwise_xor", Intrinsic::bitwise_xor);
  bits_rule("left_shift", Intrinsic::shift_left);
  bits_rule("right_shift", Intrinsic::shift_right);
  set_rule("power", power_rule);
  set_rule("where", where_rule);
  set_rule("nn.bias_add", bias_add_rule);
}

}  // namespace headrace::lower
