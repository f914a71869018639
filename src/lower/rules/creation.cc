// Rules of ops that create tensors.
#include "ops/tensor/creation.h"

#include "lower/rules/rule.h"

namespace headrace::lower {

namespace {

ComputeRuleFn number_rule(double number) {
  return [number](const RuleInput& input) {
    return map_rule(input, [&](const Index&) { return make_const(number, input.out_types[0]->dtype); });
  };
}

ComputeRuleFn scalar_rule(size_t argument) {
  return [argument](const RuleInput& input) {
    return map_rule(input, [&](const Index&) { return load(input.inputs[argument], {}); });
  };
}

// Integers wrap; floats are computed in float64 and rounded once.
Compute arange_rule(const RuleInput& input) {
  const DataType dtype = input.out_types[0]->dtype;
  const DataType inner = dtype.is_float() ? DataType::float_(64) : dtype;
  return map_rule(input, [&](const Index& i) {
    const PrimExpr start = make_cast(inner, load(input.inputs[0], {})),
                   step = make_cast(inner, load(input.inputs[2], {}));
    return start + make_cast(inner, i[0]) * step;
  });
}

Compute shape_of_rule(const RuleInput& input) {
  const Array<PrimExpr>& shape = input.in_types[0]->shape;
  const DataType dtype = input.out_types[0]->dtype;
  const Buffer out = input.make_output();
  Compute compute{input.inputs, {}, {out}};
  for (size_t k = 0; k < shape.size(); ++k) {
    compute.stages.push_back(part_stage(out, {make_int(static_cast<int64_t>(k))}, {make_int(1)},
                                        [&](const Index&) { return make_cast(dtype, shape[k]); }));
  }
  return compute;
}

Compute ndarray_size_rule(const RuleInput& input) {
  return map_rule(input, [&](const Index&) {
    PrimExpr size = make_int(1);
    for (const PrimExpr& dim : input.in_types[0]->shape) size = size * dim;
    return size;
  });
}

}  // namespace

void register_creation_rules() {
  set_rule("full", scalar_rule(0));
  set_rule("full_like", scalar_rule(1));
  set_rule("zeros", number_rule(0));
  set_rule("ones", number_rule(1));
  set_rule("arange", arange_rule);
  set_rule("shape_of", shape_of_rule);
  set_rule("ndarray_size", ndarray_size_rule);
}

}  // namespace headrace::lower
