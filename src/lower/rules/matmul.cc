// Rules of matrix products, and of einsum.
#include "ops/nn/matmul.h"

#include "lower/rules/rule.h"
#include "ops/tensor/einsum.h"

namespace headrace::lower {

namespace {

// out[..., m, n] = sum over k of a[..., m, k] * b[..., k, n]; a batch axis of size 1 serves all.
Compute product_rule(const RuleInput& input, bool transpose_a, bool transpose_b) {
  const Array<PrimExpr>&a = input.in_types[0]->shape, &b = input.in_types[1]->shape;
  const DataType dtype = input.out_types[0]->dtype;
  const PrimExpr k = b[b.size() - (transpose_b ? 1 : 2)];
  const auto matrix_index = [](const Array<PrimExpr>& shape, const Index& batch, PrimExpr row, PrimExpr column,
                               bool transposed) {
    if (transposed) std::swap(row, column);
    Index index;
    for (size_t i = 0; i + 2 < shape.size(); ++i) index.push_back(is_int(shape[i], 1) ? make_int(0) : batch[i]);
    if (shape.size() >= 2) index.push_back(row);
    index.push_back(column);
    return index;
  };
  const auto element = [&](const Buffer& buffer, const Index& index) {
    return wide(make_cast(dtype, load(buffer, index)));
  };
  ComputeStage stage = reduce_stage(input.make_output(), Combiner::sum, {k}, [&](const Index& i, const Index& r) {
    const PrimExpr m = i.size() >= 2 ? i[i.size() - 2] : make_int(0);
    return element(input.inputs[0], matrix_index(a, i, m, r[0], transpose_a)) *
           element(input.inputs[1], matrix_index(b, i, r[0], i.back(), transpose_b));
  });
  return single_stage(input, rounded(std::move(stage)));
}

// Sums the products over all labels that the result does not have.
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

void register_matmul_rules() {
  set_rule("einsum", einsum_rule);
  set_rule("nn.dense", [](const RuleInput& input) { return product_rule(input, false, true); });
  set_rule("nn.matmul", [](const RuleInput& input) {
    const auto& attrs = input.attrs<ops::MatmulAttrs>();
    return product_rule(input, attrs.transpose_a, attrs.transpose_b);
  });
  set_rule("nn.batch_matmul", [](const RuleInput& input) {
    const auto& attrs = input.attrs<ops::BatchMatmulAttrs>();
    return product_rule(input, attrs.transpose_a, attrs.transpose_b);
  });
}

}  // namespace headrace::lower
