#include "lower/rules/conv_parts.h"

namespace headrace::lower {

ConvAxes axes_of(const ops::ConvForm& form) {
  return {ops::axes_of(form.data_layout, form.letters), ops::axes_of(form.kernel_layout, form.kernel_letters),
          ops::axes_of(form.out_layout, form.letters)};
}

PrimExpr load_by_letters(const Buffer& buffer, const std::vector<size_t>& axes, const Index& by_letter) {
  return load(buffer, ops::to_layout(by_letter, axes));
}

PrimExpr operand(const RuleInput& input, const PrimExpr& element) {
  return wide(make_cast(input.out_types[0]->dtype, element));
}

ComputeStage sum_products(const RuleInput& input, const ConvAxes& axes, const std::vector<PrimExpr>& extents,
                          const std::function<PrimExpr(const Index&, const Index&)>& product) {
  return rounded(reduce_stage(input.make_output(), Combiner::sum, extents, [&](const Index& i, const Index& r) {
    return product(ops::from_layout(i, axes.out), r);
  }));
}

}  // namespace headrace::lower
