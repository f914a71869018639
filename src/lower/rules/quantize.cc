// Rules of quantized ops.
#include "ops/qnn/quantize.h"

#include "lower/rules/rule.h"
#include "ops/qnn/simulated.h"

namespace headrace::lower {

namespace {

// Loads a scale or zero point: the scalar, the only element, or the element of index `i` along the axis.
PrimExpr per_axis(const RuleInput& input, size_t argument, const Index& i, int64_t axis) {
  const auto& shape = input.in_types[argument]->shape;
  if (shape.empty()) return load(input.inputs[argument], {});
  if (as_int(shape[0]) == 1) return load(input.inputs[argument], {make_int(0)});
  return load(input.inputs[argument], {i[normal_axis(axis, i.size())]});
}

Compute quantize_rule(const RuleInput& input) {
  const auto& attrs = input.attrs<ops::QuantizeAttrs>();
  const DataType out = input.out_types[0]->dtype, sum = ops::quantize_sum_dtype(out);
  return map_rule(input, [&](const Index& i) {
    const PrimExpr quotient = divide(load(input.inputs[0], i), per_axis(input, 1, i, attrs.axis));
    const PrimExpr rounded = call(Intrinsic::nearbyint, quotient);
    const PrimExpr low = number_like(-ops::quantize_bound(out), rounded),
                   high = number_like(ops::quantize_bound(out), rounded);
    const PrimExpr above = make_select(make_binary(BinaryOp::gt, rounded, low), rounded, low);  // NaN becomes low
    const PrimExpr cut = make_select(make_binary(BinaryOp::lt, above, high), above, high);
    const PrimExpr shifted = make_cast(sum, cut) + make_cast(sum, per_axis(input, 2, i, attrs.axis));
    return clamp(shifted, make_int(ops::least_integer(out), sum), make_int(ops::most_integer(out), sum));
  });
}

Compute dequantize_rule(const RuleInput& input) {
  const auto& attrs = input.attrs<ops::DequantizeAttrs>();
  return map_rule(input, [&](const Index& i) {
    const PrimExpr x = make_cast(DataType::int_(32), load(input.inputs[0], i));
    const PrimExpr scale = per_axis(input, 1, i, attrs.axis);
    return make_cast(scale->dtype, x - per_axis(input, 2, i, attrs.axis)) * scale;
  });
}

// Cuts a float to the range of a dtype; NaN becomes its least integer.
PrimExpr cut_to(const PrimExpr& x, const ops::SimulatedDtype& dtype) {
  const PrimExpr least = number_like(static_cast<double>(dtype.least), x),
                 greatest = number_like(static_cast<double>(dtype.greatest), x);
  const PrimExpr above = make_select(make_binary(BinaryOp::gt, x, least), x, least);
  return make_select(make_binary(BinaryOp::lt, above, greatest), above, greatest);
}

// The numbers of one element: the data, and the scale and zero point that it has.
struct SimulatedElement {
  PrimExpr x, scale, zero;
};

// Chooses by the code among what `compute` makes for each dtype; the data stays where the code is no dtype's.
Compute simulated_rule(const RuleInput& input,
                       PrimExpr (*compute)(const SimulatedElement& element, const ops::SimulatedDtype& dtype)) {
  const int64_t axis = input.attrs<ops::SimulatedQuantizeAttrs>().axis;
  return map_rule(input, [&](const Index& i) {
    const PrimExpr x = load(input.inputs[0], i), code = load(input.inputs[1], {});
    const SimulatedElement element{x, per_axis(input, 2, i, axis), make_cast(x->dtype, per_axis(input, 3, i, axis))};
    PrimExpr chosen = x;
    for (const ops::SimulatedDtype& dtype : ops::kSimulatedDtypes)
      chosen = make_select(make_binary(BinaryOp::eq, code, make_int(dtype.code, code->dtype)), compute(element, dtype),
                           chosen);
    return chosen;
  });
}

Compute simulated_quantize_rule(const RuleInput& input) {
  return simulated_rule(input, [](const SimulatedElement& element, const ops::SimulatedDtype& dtype) {
    return cut_to(call(Intrinsic::nearbyint, divide(element.x, element.scale)) + element.zero, dtype);
  });
}

Compute simulated_dequantize_rule(const RuleInput& input) {
  return simulated_rule(input, [](const SimulatedElement& element, const ops::SimulatedDtype&) {
    return (element.x - element.zero) * element.scale;
  });
}

Compute quantized_dense_rule(const RuleInput& input) {
  const auto less_zero = [&](size_t argument, const Index& at, const PrimExpr& unit) {
    const Index zero = input.in_types[argument + 2]->shape.empty() ? Index{} : Index{unit};
    return make_cast(DataType::int_(32), load(input.inputs[argument], at)) - load(input.inputs[argument + 2], zero);
  };
  ComputeStage stage = reduce_stage(input.make_output(), Combiner::sum, {input.in_types[1]->shape[1]},
                                    [&](const Index& i, const Index& k) {
                                      return less_zero(0, {i[0], k[0]}, i[1]) * less_zero(1, {i[1], k[0]}, i[1]);
                                    });
  return single_stage(input, rounded(std::move(stage)));
}

}  // namespace

void register_quantize_rules() {
  set_rule("qnn.quantize", quantize_rule);
  set_rule("qnn.dequantize", dequantize_rule);
  set_rule("qnn.dense", quantized_dense_rule);
  set_rule("qnn.simulated_quantize", simulated_quantize_rule);
  set_rule("qnn.simulated_dequantize", simulated_dequantize_rule);
}

}  // namespace headrace::lower
