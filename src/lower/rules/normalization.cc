// Rules of normalizations: batch_norm, layer_norm, softmax, log_softmax, lrn.
#include "ops/nn/normalization.h"

#include "lower/rules/rule.h"

namespace headrace::lower {

namespace {

// Remove the axis from an index, and insert `at` in its place.
Index without(const Index& index, size_t axis) {
  Index rest = index;
  rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(axis));
  return rest;
}
Index with(const Index& index, size_t axis, const PrimExpr& at) {
  Index whole = index;
  whole.insert(whole.begin() + static_cast<std::ptrdiff_t>(axis), at);
  return whole;
}

// Makes stages that reduce the lines along an axis to one value each.
struct Lines {
  const RuleInput& input;
  size_t axis;
  DataType dtype;  // the dtype of the computation

  Lines(const RuleInput& input, int64_t axis)
      : input(input),
        axis(normal_axis(axis, input.in_types[0]->shape.size())),
        dtype(wide_type(input.in_types[0]->dtype)) {}

  PrimExpr size() const { return input.in_types[0]->shape[axis]; }
  PrimExpr data(const Index& index) const { return wide(load(input.inputs[0], index)); }
  PrimExpr of_line(const ComputeStage& stage, const Index& index) const {
    return load(stage.output, without(index, axis));
  }
  // Makes a stage that combines the elements of each line.
  ComputeStage combine(const char* name, Combiner combiner, const std::function<PrimExpr(const Index&)>& value) const {
    const Buffer buffer = make_stage_buffer(name, dtype, without(to_vector(input.in_types[0]->shape), axis));
    return reduce_stage(buffer, combiner, {size()},
                        [&](const Index& i, const Index& r) { return value(with(i, axis, r[0])); });
  }
  ComputeStage result(const std::function<PrimExpr(const Index&)>& element) const {
    const Buffer out = input.make_output();
    return map_stage(out, [&](const Index& i) { return make_cast(out->dtype, element(i)); });
  }
  Compute joined(std::vector<ComputeStage> stages) const {
    const Buffer out = stages.back().output;
    return {input.inputs, std::move(stages), {out}};
  }
  static Index to_vector(const Array<PrimExpr>& dims) { return dims.to_vector(); }
};

// Returns normal * gamma + beta, without the factor or the term that the attributes turn off.
template <typename A>
PrimExpr scaled(const RuleInput& input, const A& attrs, const PrimExpr& normal, const PrimExpr& channel) {
  const PrimExpr grown = attrs.scale ? normal * wide(load(input.inputs[1], {channel})) : normal;
  return attrs.center ? grown + wide(load(input.inputs[2], {channel})) : grown;
}

Compute batch_norm_rule(const RuleInput& input) {
  const auto& attrs = input.attrs<ops::BatchNormAttrs>();
  const Lines lines(input, attrs.axis);
  Compute compute{input.inputs, {}, {}};
  compute.stages.push_back(lines.result([&](const Index& i) {
    const PrimExpr c = i[lines.axis], mean = wide(load(input.inputs[3], {c})), var = wide(load(input.inputs[4], {c}));
    const PrimExpr deviation = call(Intrinsic::sqrt, var + number_like(attrs.epsilon, var));
    return scaled(input, attrs, divide(lines.data(i) - mean, deviation), c);
  }));
  for (size_t k : {1u, 2u}) {
    compute.stages.push_back(
        map_stage(input.make_output(k), [&](const Index& i) { return load(input.inputs[2 + k], i); }));
  }
  for (const ComputeStage& stage : compute.stages) compute.outputs.push_back(stage.output);
  return compute;
}

Compute layer_norm_rule(const RuleInput& input) {
  const auto& attrs = input.attrs<ops::LayerNormAttrs>();
  const Lines lines(input, attrs.axis);
  const PrimExpr count = make_cast(lines.dtype, lines.size());
  const ComputeStage mean =
      finished(lines.combine("mean", Combiner::sum, [&](const Index& i) { return lines.data(i); }),
               [&](const PrimExpr& sum) { return divide(sum, count); });
  const ComputeStage deviation = finished(
      lines.combine("deviation", Combiner::sum,
                    [&](const Index& i) {
                      const PrimExpr d = lines.data(i) - lines.of_line(mean, i);
                      return d * d;
                    }),
      [&](const PrimExpr& sum) { return call(Intrinsic::sqrt, divide(sum, count) + number_like(attrs.epsilon, sum)); });
  const ComputeStage result = lines.result([&](const Index& i) {
    const PrimExpr normal = divide(lines.data(i) - lines.of_line(mean, i), lines.of_line(deviation, i));
    return scaled(input, attrs, normal, i[lines.axis]);
  });
  return lines.joined({mean, deviation, result});
}

// Subtracts the greatest element first, so that exp cannot overflow.
Compute softmax_rule(const RuleInput& input) {
  const Lines lines(input, input.attrs<ops::SoftmaxAttrs>().axis);
  const ComputeStage greatest = lines.combine("greatest", Combiner::max, [&](const Index& i) { return lines.data(i); });
  const Buffer buffer = make_buffer("powers", lines.dtype, input.in_types[0]->shape);
  ComputeStage powers = map_stage(
      buffer, [&](const Index& i) { return call(Intrinsic::exp, lines.data(i) - lines.of_line(greatest, i)); });
  powers.is_layout = true;  // one exp an element, not two
  const ComputeStage total = lines.combine("total", Combiner::sum, [&](const Index& i) { return load(buffer, i); });
  const ComputeStage result =
      lines.result([&](const Index& i) { return divide(load(buffer, i), lines.of_line(total, i)); });
  return lines.joined({greatest, powers, total, result});
}

Compute log_softmax_rule(const RuleInput& input) {
  const Lines lines(input, input.attrs<ops::SoftmaxAttrs>().axis);
  const ComputeStage greatest = lines.combine("greatest", Combiner::max, [&](const Index& i) { return lines.data(i); });
  const auto shifted = [&](const Index& i) { return lines.data(i) - lines.of_line(greatest, i); };
  const ComputeStage log_total = finished(
      lines.combine("log_total", Combiner::sum, [&](const Index& i) { return call(Intrinsic::exp, shifted(i)); }),
      [](const PrimExpr& sum) { return call(Intrinsic::log, sum); });
  const ComputeStage result = lines.result([&](const Index& i) { return shifted(i) - lines.of_line(log_total, i); });
  return lines.joined({greatest, log_total, result});
}

Compute lrn_rule(const RuleInput& input) {
  const auto& attrs = input.attrs<ops::LRNAttrs>();
  const Lines lines(input, attrs.axis);
  // A window of even size has its extra channel after the centre. Channels outside the data count as zero.
  const int64_t channels = static_dim(input, lines.size()), size = std::min(attrs.size, 2 * channels + 1);
  const int64_t before = (size - 1) / 2;
  const Buffer buffer = make_buffer("squares", lines.dtype, input.in_types[0]->shape);
  const ComputeStage squares =
      reduce_stage(buffer, Combiner::sum, {make_int(size)}, [&](const Index& i, const Index& r) {
        Index at = i;
        at[lines.axis] = i[lines.axis] + r[0] - before;
        const PrimExpr x = lines.data(at);
        return guarded(is_within(at[lines.axis], make_int(0), make_int(channels)), x * x, number_like(0, x));
      });
  const ComputeStage result = lines.result([&](const Index& i) {
    const PrimExpr x = lines.data(i);
    // Rounds alpha / size in this dtype, as the op's definition does.
    const PrimExpr slope = divide(number_like(attrs.alpha, x), make_float(static_cast<double>(attrs.size), x->dtype));
    const PrimExpr base = number_like(attrs.bias, x) + slope * load(buffer, i);
    return divide(x, make_intrinsic(Intrinsic::pow, x->dtype, {base, number_like(attrs.beta, x)}));
  });
  return lines.joined({squares, result});
}

}  // namespace

void register_normalization_rules() {
  set_rule("nn.batch_norm", batch_norm_rule);
  set_rule("nn.layer_norm", layer_norm_rule);
  set_rule("nn.softmax", softmax_rule);
  set_rule("nn.fast_softmax", softmax_rule);
  set_rule("nn.log_softmax", log_softmax_rule);
  set_rule("nn.lrn", lrn_rule);
}

}  // namespace headrace::lower
