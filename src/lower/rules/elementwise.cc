// Rules of unary functions and activations.
#include "ops/tensor/elementwise.h"

#include <cmath>

#include "lower/rules/rule.h"
#include "ops/tensor/fixed_point.h"
#include "tensor/convert_number.h"

namespace headrace::lower {

namespace {

using Unary = std::function<PrimExpr(const PrimExpr&)>;

// Makes the rule that applies `f` to the element in its wide dtype.
void unary_rule(std::string_view op, Unary f) {
  set_rule(op, [f = std::move(f)](const RuleInput& input) {
    return map_rule(input, [&](const Index& i) { return f(wide(load(input.inputs[0], i))); });
  });
}

PrimExpr is_positive(const PrimExpr& x) { return make_binary(BinaryOp::gt, x, number_like(0, x)); }
PrimExpr is_negative(const PrimExpr& x) { return make_binary(BinaryOp::lt, x, number_like(0, x)); }

PrimExpr sign(const PrimExpr& x) {
  const PrimExpr down = x->dtype.is_uint() ? x : make_select(is_negative(x), number_like(-1, x), x);
  return make_select(is_positive(x), number_like(1, x), down);
}

PrimExpr sigmoid(const PrimExpr& x) {
  const PrimExpr one = number_like(1, x);
  return divide(one, one + call(Intrinsic::exp, negative(x)));
}

// Whether a float is infinite or NaN; integers are neither.
PrimExpr is(Intrinsic predicate, const PrimExpr& x) {
  return x->dtype.is_float() ? make_intrinsic(predicate, DataType::bool_(), {x}) : make_bool(false);
}

PrimExpr inverted(const PrimExpr& x) { return x->dtype.is_bool() ? make_not(x) : call(Intrinsic::bitwise_not, x); }

// Returns `bound` converted to `dtype` (saturating for integers), as a number of the computation's dtype `wide`.
PrimExpr bound_in(double bound, DataType dtype, DataType wide) {
  if (dtype.is_float()) return make_float(round_number(bound, dtype), wide);
  const PrimExpr least = tir::identity_of(Combiner::max, dtype), most = tir::identity_of(Combiner::min, dtype);
  const bool is_signed = dtype.is_int();
  const double low = is_signed ? -std::ldexp(1.0, dtype.bits() - 1) : 0.0;
  const double high = std::ldexp(1.0, is_signed ? dtype.bits() - 1 : dtype.bits());  // one past the greatest
  if (bound <= low) return least;
  if (bound >= high - 1) return most;
  return make_int(bound < 0x1p63 ? static_cast<int64_t>(bound) : static_cast<int64_t>(static_cast<uint64_t>(bound)),
                  dtype);
}

Compute clip_rule(const RuleInput& input) {
  const auto& attrs = input.attrs<ops::ClipAttrs>();
  return map_rule(input, [&](const Index& i) {
    const PrimExpr x = wide(load(input.inputs[0], i));
    const DataType dtype = input.in_types[0]->dtype;
    return clamp(x, bound_in(attrs.a_min, dtype, x->dtype), bound_in(attrs.a_max, dtype, x->dtype));
  });
}

Compute leaky_relu_rule(const RuleInput& input) {
  return map_rule(input, [&](const Index& i) {
    const PrimExpr x = wide(load(input.inputs[0], i));
    return rectified(x, number_like(input.attrs<ops::LeakyReluAttrs>().alpha, x));
  });
}

Compute prelu_rule(const RuleInput& input) {
  const size_t axis = normal_axis(input.attrs<ops::PReluAttrs>().axis, input.in_types[0]->shape.size());
  return map_rule(input, [&](const Index& i) {
    return rectified(wide(load(input.inputs[0], i)), wide(load(input.inputs[1], {i[axis]})));
  });
}

Compute copy_rule(const RuleInput& input) {
  return map_rule(input, [&](const Index& i) { return load(input.inputs[0], i); });
}

// Copies each tensor of a value that may be a tuple.
Compute checkpoint_rule(const RuleInput& input) {
  Compute compute{.inputs = input.inputs, .stages = {}, .outputs = {}};
  for (size_t i = 0; i < input.inputs.size(); ++i) {
    const Buffer output = input.make_output(i);
    compute.stages.push_back(map_stage(output, [&](const Index& at) { return load(input.inputs[i], at); }));
    compute.outputs.push_back(output);
  }
  return compute;
}

ComputeRuleFn fill_rule(double number) {
  return [number](const RuleInput& input) {
    return map_rule(input, [&](const Index&) { return make_const(number, input.out_types[0]->dtype); });
  };
}

Compute dropout_rule(const RuleInput& input) {
  Compute compute = copy_rule(input);
  const Buffer mask = input.make_output(1);
  compute.stages.push_back(map_stage(mask, [&](const Index&) { return make_const(1, mask->dtype); }));
  compute.outputs.push_back(mask);
  return compute;
}

void register_functions_of_one() {
  static constexpr std::pair<std::string_view, Intrinsic> kFunctions[] = {
      {"exp", Intrinsic::exp},        {"log", Intrinsic::log},     {"log2", Intrinsic::log2},
      {"log10", Intrinsic::log10},    {"sqrt", Intrinsic::sqrt},   {"rsqrt", Intrinsic::rsqrt},
      {"erf", Intrinsic::erf},        {"sin", Intrinsic::sin},     {"cos", Intrinsic::cos},
      {"tan", Intrinsic::tan},        {"asin", Intrinsic::asin},   {"acos", Intrinsic::acos},
      {"atan", Intrinsic::atan},      {"sinh", Intrinsic::sinh},   {"cosh", Intrinsic::cosh},
      {"tanh", Intrinsic::tanh},      {"asinh", Intrinsic::asinh}, {"acosh", Intrinsic::acosh},
      {"atanh", Intrinsic::atanh},    {"abs", Intrinsic::abs},     {"fast_exp", Intrinsic::exp},
      {"fast_tanh", Intrinsic::tanh}, {"fast_erf", Intrinsic::erf}};
  for (const auto& [op, intrinsic] : kFunctions) {
    unary_rule(op, [intrinsic](const PrimExpr& x) { return call(intrinsic, x); });
  }
  static constexpr std::pair<std::string_view, Intrinsic> kRoundings[] = {{"floor", Intrinsic::floor},
                                                                          {"ceil", Intrinsic::ceil},
                                                                          {"trunc", Intrinsic::trunc},
                                                                          {"round", Intrinsic::round},
                                                                          {"nearbyint", Intrinsic::nearbyint}};
  for (const auto& [op, intrinsic] : kRoundings) {
    unary_rule(op, [intrinsic](const PrimExpr& x) { return x->dtype.is_float() ? call(intrinsic, x) : x; });
  }
}

// Returns floor(x * 2^left * multiplier / 2^(31 + right) + 1/2), computed in 64 bits.
PrimExpr fixed_product(const PrimExpr& x, const PrimExpr& multiplier, const PrimExpr& left, const PrimExpr& right) {
  const DataType dtype = DataType::int_(64);
  const auto shifted = [&](Intrinsic shift, const PrimExpr& value, const PrimExpr& by) {
    return make_intrinsic(shift, dtype, {value, by});
  };
  const PrimExpr product = shifted(Intrinsic::shift_left, make_cast(dtype, x), left) * make_cast(dtype, multiplier);
  const PrimExpr half = shifted(Intrinsic::shift_left, make_int(1), right + (ops::kFixedBits - 1));
  return make_cast(DataType::int_(32), shifted(Intrinsic::shift_right, product + half, right + ops::kFixedBits));
}

Compute fixed_point_rule(const RuleInput& input) {
  const auto& attrs = input.attrs<ops::FixedPointMultiplyAttrs>();
  const PrimExpr left = make_int(std::max(attrs.shift, 0)), right = make_int(std::max(-attrs.shift, 0));
  return map_rule(input, [&](const Index& i) {
    return fixed_product(load(input.inputs[0], i), make_int(attrs.multiplier), left, right);
  });
}

Compute fixed_point_per_axis_rule(const RuleInput& input) {
  const auto& attrs = input.attrs<ops::FixedPointMultiplyPerAxisAttrs>();
  return map_rule(input, [&](const Index& i) {
    Index own;
    for (const int64_t axis : attrs.axes) own.push_back(i[normal_axis(axis, i.size())]);
    const auto shift = [&](bool is_read, size_t argument) {
      if (!is_read) return make_int(0);
      const PrimExpr count = make_cast(DataType::int_(64), load(input.inputs[argument], own));
      return clamp(count, make_int(0), make_int(ops::kMostFixedShift));
    };
    return fixed_product(load(input.inputs[0], i), load(input.inputs[1], own), shift(attrs.is_lshift_required, 2),
                         shift(attrs.is_rshift_required, 3));
  });
}

}  // namespace

void register_elementwise_rules() {
  register_functions_of_one();
  unary_rule("sigmoid", sigmoid);
  unary_rule("negative", negative);
  unary_rule("sign", sign);
  unary_rule("isnan", [](const PrimExpr& x) { return is(Intrinsic::isnan, x); });
  unary_rule("isinf", [](const PrimExpr& x) { return is(Intrinsic::isinf, x); });
  unary_rule("isfinite", [](const PrimExpr& x) {
    return make_not(make_binary(BinaryOp::logical_or, is(Intrinsic::isnan, x), is(Intrinsic::isinf, x)));
  });
  unary_rule("logical_not", make_not);
  unary_rule("bitwise_not", inverted);
  // The maximum keeps NaN.
  unary_rule("nn.relu", [](const PrimExpr& x) { return most(x, number_like(0, x)); });
  set_rule("nn.leaky_relu", leaky_relu_rule);
  set_rule("nn.prelu", prelu_rule);
  set_rule("clip", clip_rule);
  set_rule("cast", copy_rule);
  set_rule("cast_like", copy_rule);
  set_rule("copy", copy_rule);
  set_rule("on_device", copy_rule);
  set_rule("device_copy", copy_rule);
  set_rule("annotation.stop_fusion", copy_rule);
  set_rule("annotation.checkpoint", checkpoint_rule);
  set_rule("annotation.compiler_begin", copy_rule);
  set_rule("annotation.compiler_end", copy_rule);
  set_rule("fixed_point_multiply", fixed_point_rule);
  set_rule("fixed_point_multiply_per_axis", fixed_point_per_axis_rule);
  set_rule("zeros_like", fill_rule(0));
  set_rule("ones_like", fill_rule(1));
  set_rule("nn.dropout", dropout_rule);
}

}  // namespace headrace::lower
