// Losses.
#include "ops/loss.h"

#include "lower/rules/rule.h"

namespace headrace::lower {

namespace {

PrimExpr negative(const PrimExpr& x) { return make_float(-0.0, x->dtype) - x; }
PrimExpr divide(const PrimExpr& a, const PrimExpr& b) { return make_binary(BinaryOp::div, a, b); }

ComputeRuleFn cross_entropy_rule(bool takes_logarithm) {
  return [takes_logarithm](const RuleInput& input) {
    const Array<PrimExpr>& shape = input.in_types[0]->shape;
    ComputeStage stage =
        reduce_stage(input.make_output(), Combiner::sum, shape.to_vector(), [&](const Index&, const Index& r) {
          const PrimExpr x = wide(load(input.inputs[0], r)), y = wide(load(input.inputs[1], r));
          return (takes_logarithm ? make_intrinsic(Intrinsic::log, x->dtype, {x}) : x) * y;
        });
    return single_stage(input, finished(std::move(stage), [&](const PrimExpr& total) {
                          return divide(negative(total), make_cast(total->dtype, shape[0]));
                        }));
  };
}

Compute nll_loss_rule(const RuleInput& input) {
  const auto& attrs = input.attrs<ops::NLLLossAttrs>();
  const PrimExpr classes = input.in_types[0]->shape[1];
  const Array<PrimExpr>& places = input.in_types[1]->shape;
  const auto target = [&](const Index& i) { return make_cast(kIndexType, load(input.inputs[1], i)); };
  const auto counts = [&](const Index& i) {
    return make_binary(BinaryOp::ne, target(i), make_int(attrs.ignore_index));
  };
  // Within memory, whatever the check says.
  const auto safe = [&](const Index& i) { return clamp(target(i), make_int(0), classes - 1); };
  const auto weight = [&](const Index& i) {
    const PrimExpr w = wide(load(input.inputs[2], {safe(i)}));
    return make_select(counts(i), w, number_like(0, w));
  };
  const auto loss = [&](const Index& i) {
    Index at = i;
    at.insert(at.begin() + 1, safe(i));
    const PrimExpr x = wide(load(input.inputs[0], at));
    return make_select(counts(i), negative(x) * wide(load(input.inputs[2], {safe(i)})), number_like(0, x));
  };
  if (is_int(classes, 0)) fail_rule(input, "there are no classes");
  Compute compute{input.inputs, {}, {input.make_output()}};
  compute.stages.push_back(check_stage(places, "nn.nll_loss: a class is out of range", [&](const Index& i) {
    return make_binary(BinaryOp::logical_or, make_not(counts(i)), is_within(target(i), make_int(0), classes));
  }));
  const Buffer& out = compute.outputs[0];
  if (attrs.reduction == "none") {
    compute.stages.push_back(map_stage(out, [&](const Index& i) { return make_cast(out->dtype, loss(i)); }));
    return compute;
  }
  const auto total = [&](const Buffer& buffer, const std::function<PrimExpr(const Index&)>& term) {
    return reduce_stage(buffer, Combiner::sum, places.to_vector(),
                        [&](const Index&, const Index& r) { return term(r); });
  };
  if (attrs.reduction == "sum") {
    compute.stages.push_back(rounded(total(out, loss)));
    return compute;
  }
  const DataType dtype = wide_type(out->dtype);
  const Buffer weights = make_stage_buffer("weights", dtype, {});
  compute.stages.push_back(total(weights, weight));
  compute.stages.push_back(
      finished(total(out, loss), [&](const PrimExpr& sum) { return divide(sum, load(weights, {})); }));
  return compute;
}

}  // namespace

void register_loss_rules() {
  set_rule("nn.cross_entropy", cross_entropy_rule(true));
  set_rule("nn.cross_entropy_with_logits", cross_entropy_rule(false));
  set_rule("nn.nll_loss", nll_loss_rule);
}

}  // namespace headrace::lower
