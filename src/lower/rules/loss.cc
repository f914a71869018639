// Rules of losses.
#include "ops/nn/loss.h"

#include "lower/rules/rule.h"

namespace headrace::lower {

namespace {

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

// The terms of one target: whether it counts, its weight and its loss.
struct NllTerms {
  const RuleInput& input;
  int64_t ignored;
  PrimExpr classes;

  PrimExpr target(const Index& i) const { return as_index(load(input.inputs[1], i)); }
  PrimExpr counts(const Index& i) const { return make_binary(BinaryOp::ne, target(i), make_int(ignored)); }
  // Clamps the class, so that a read stays inside the buffer even before the check reports a bad target.
  PrimExpr safe(const Index& i) const { return clamp(target(i), make_int(0), classes - 1); }
  PrimExpr weight(const Index& i) const {
    const PrimExpr w = wide(load(input.inputs[2], {safe(i)}));
    return make_select(counts(i), w, number_like(0, w));
  }
  PrimExpr loss(const Index& i) const {
    Index at = i;
    at.insert(at.begin() + 1, safe(i));
    const PrimExpr x = wide(load(input.inputs[0], at));
    return make_select(counts(i), negative(x) * wide(load(input.inputs[2], {safe(i)})), number_like(0, x));
  }
  ComputeStage check(const Array<PrimExpr>& places) const {
    return check_stage(places, "nn.nll_loss: a class is out of range", [&](const Index& i) {
      return make_binary(BinaryOp::logical_or, make_not(counts(i)), is_within(target(i), make_int(0), classes));
    });
  }
};

Compute nll_loss_rule(const RuleInput& input) {
  const auto& attrs = input.attrs<ops::NLLLossAttrs>();
  const Array<PrimExpr>& places = input.in_types[1]->shape;
  const NllTerms terms{input, attrs.ignore_index, input.in_types[0]->shape[1]};
  if (is_int(terms.classes, 0)) fail_rule(input, "there are no classes");
  Compute compute{input.inputs, {terms.check(places)}, {input.make_output()}};
  const Buffer& out = compute.outputs[0];
  if (attrs.reduction == "none") {
    compute.stages.push_back(map_stage(out, [&](const Index& i) { return make_cast(out->dtype, terms.loss(i)); }));
    return compute;
  }
  const auto total = [&](const Buffer& buffer, PrimExpr (NllTerms::*term)(const Index&) const) {
    return reduce_stage(buffer, Combiner::sum, places.to_vector(),
                        [&](const Index&, const Index& r) { return (terms.*term)(r); });
  };
  if (attrs.reduction == "sum") {
    compute.stages.push_back(rounded(total(out, &NllTerms::loss)));
    return compute;
  }
  const Buffer weights = make_stage_buffer("weights", wide_type(out->dtype), {});
  compute.stages.push_back(total(weights, &NllTerms::weight));
  compute.stages.push_back(
      finished(total(out, &NllTerms::loss), [&](const PrimExpr& sum) { return divide(sum, load(weights, {})); }));
  return compute;
}

}  // namespace

void register_loss_rules() {
  set_rule("nn.cross_entropy", cross_entropy_rule(true));
  set_rule("nn.cross_entropy_with_logits", cross_entropy_rule(false));
  set_rule("nn.nll_loss", nll_loss_rule);
}

}  // namespace headrace::lower
