// Rules of ops that concatenate and split tensors. There is one stage for each part, which reads or writes its own box.
#include "lower/rules/rule.h"
#include "ops/tensor/join.h"

namespace headrace::lower {

namespace {

Compute concatenate_rule(const RuleInput& input) {
  const size_t axis = normal_axis(input.attrs<ops::ConcatenateAttrs>().axis, input.in_types[0]->shape.size());
  const Buffer out = input.make_output();
  Compute compute{input.inputs, {}, {out}};
  PrimExpr begin = make_int(0);
  for (const Buffer& part : input.inputs) {
    std::vector<PrimExpr> origin(out->shape.size(), make_int(0));
    origin[axis] = begin;
    compute.stages.push_back(part_stage(out, origin, part->shape, [&](const Index& i) { return load(part, i); }));
    begin = begin + part->shape[axis];
  }
  return compute;
}

Compute stack_rule(const RuleInput& input) {
  const size_t axis = normal_axis(input.attrs<ops::StackAttrs>().axis, input.in_types[0]->shape.size() + 1);
  const Buffer out = input.make_output();
  Compute compute{input.inputs, {}, {out}};
  for (size_t k = 0; k < input.inputs.size(); ++k) {
    std::vector<PrimExpr> origin(out->shape.size(), make_int(0)), extents = out->shape.to_vector();
    origin[axis] = make_int(static_cast<int64_t>(k));
    extents[axis] = make_int(1);
    compute.stages.push_back(part_stage(out, origin, Array<PrimExpr>(extents), [&](Index i) {
      i.erase(i.begin() + static_cast<std::ptrdiff_t>(axis));
      return load(input.inputs[k], i);
    }));
  }
  return compute;
}

Compute split_rule(const RuleInput& input) {
  const size_t axis = normal_axis(input.attrs<ops::SplitAttrs>().axis, input.in_types[0]->shape.size());
  Compute compute{input.inputs, {}, {}};
  PrimExpr begin = make_int(0);
  for (size_t k = 0; k < input.out_types.size(); ++k) {
    const Buffer part = input.make_output(k);
    compute.outputs.push_back(part);
    compute.stages.push_back(map_stage(part, [&](Index i) {
      i[axis] = i[axis] + begin;
      return load(input.inputs[0], i);
    }));
    begin = begin + part->shape[axis];
  }
  return compute;
}

}  // namespace

void register_join_rules() {
  set_rule("concatenate", concatenate_rule);
  set_rule("stack", stack_rule);
  set_rule("split", split_rule);
}

}  // namespace headrace::lower
