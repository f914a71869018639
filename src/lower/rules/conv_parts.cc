#include "lower/rules/conv_parts.h"

namespace headrace::lower {

ConvLayouts layouts_of(const ops::ConvForm& form) {
  return {Layout::parse(form.data_layout), Layout::parse(form.kernel_layout), Layout::parse(form.out_layout)};
}

PrimExpr operand(const RuleInput& input, const PrimExpr& element) {
  return wide(make_cast(input.out_types[0]->dtype, element));
}

ComputeStage sum_products(const RuleInput& input, const ops::ConvForm& form, const std::vector<PrimExpr>& extents,
                          const ConvProduct& product) {
  const Layout layout = Layout::parse(form.out_layout);
  return rounded(reduce_stage(input.make_output(), Combiner::sum, extents, [&](const Index& i, const Index& r) {
    return product(axis_indices(layout, form.letters, i), r);
  }));
}

}  // namespace headrace::lower
