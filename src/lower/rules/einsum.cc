// einsum: one sum of products.
#include "ops/tensor/einsum.h"

#include "lower/rules/rule.h"

namespace headrace::lower {

namespace {

Compute einsum_rule(const RuleInput& input) {
  std::vector<size_t> ranks;
  for (const TensorType& type : input.in_types) ranks.push_back(type->shape.size());
  const ops::EinsumForm form = ops::einsum_form(input.attrs<ops::EinsumAttrs>().equation, ranks);
  std::vector<PrimExpr> extents(form.summed.size(), make_int(1));
  for (size_t i = 0; i < ranks.size(); ++i) {
    for (size_t axis = 0; axis < ranks[i]; ++axis) {
      const size_t place = form.place_of(form.operands[i][axis]);
      if (place >= form.output.size()) extents[place - form.output.size()] = input.in_types[i]->shape[axis];
    }
  }
  const auto product = [&](const Index& out, const Index& summed) {
    PrimExpr result;
    for (size_t i = 0; i < ranks.size(); ++i) {
      Index at;
      for (size_t axis = 0; axis < ranks[i]; ++axis) {
        const size_t place = form.place_of(form.operands[i][axis]);
        const bool is_repeated = form.operands[i][axis] < 0 && is_int(input.in_types[i]->shape[axis], 1);
        at.push_back(is_repeated ? make_int(0) : place < out.size() ? out[place] : summed[place - out.size()]);
      }
      const PrimExpr element = wide(load(input.inputs[i], at));
      result = result ? result * element : element;
    }
    return result;
  };
  if (extents.empty()) return map_rule(input, [&](const Index& i) { return product(i, {}); });
  return single_stage(input, rounded(reduce_stage(input.make_output(), Combiner::sum, extents, product)));
}

}  // namespace

void register_einsum_rule() { set_rule("einsum", einsum_rule); }

}  // namespace headrace::lower
