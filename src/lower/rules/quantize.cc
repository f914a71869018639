// Rules of quantized ops.
#include "ops/qnn/quantize.h"

#include "lower/rules/rule.h"

namespace headrace::lower {

namespace {

// Loads a scale or zero point: the scalar, or the element of index `i` along the axis.
PrimExpr per_axis(const RuleInput& input, size_t argument, const Index& i, int64_t axis) {
  if (input.in_types[argument]->shape.empty()) return load(input.inputs[argument], {});
  return load(input.inputs[argument], {i[normal_axis(axis, i.size())]});
}

Compute quantize_rule(const RuleInput& input) {
  const auto& attrs = input.attrs<ops::QuantizeAttrs>();
  const DataType out = input.out_types[0]->dtype, sum = ops::quantize_sum_dtype(out);
  return map_rule(input, [&](const Index& i) {
    const PrimExpr quotient = divide(load(input.inputs[0], i), per_axis(input, 1, i, attrs.axis));
    const PrimExpr rounded = call(Intrinsic::round, quotient);
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
}

}  // namespace headrace::lower
