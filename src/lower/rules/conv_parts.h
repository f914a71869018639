// What convolutions share: layouts, operands, sums of products.
#pragma once

#include "lower/rules/window.h"
#include "ops/nn/conv.h"

namespace headrace::lower {

// Where the letters of the three layouts stand.
struct ConvAxes {
  std::vector<size_t> data, weight, out;  // N C H W; O I H W (I O H W); N C H W
};

ConvAxes axes_of(const ops::ConvForm& form);

PrimExpr load_by_letters(const Buffer& buffer, const std::vector<size_t>& axes, const Index& by_letter);

// An element of an operand as eval takes it: in the result's dtype, then in the dtype that is summed in.
PrimExpr operand(const RuleInput& input, const PrimExpr& element);

// The result as sums of `product`, which gets the result's index by letters and the index of the reduction.
ComputeStage sum_products(const RuleInput& input, const ConvAxes& axes, const std::vector<PrimExpr>& extents,
                          const std::function<PrimExpr(const Index&, const Index&)>& product);

void register_conv_transpose_rule();  // conv_transpose.cc

}  // namespace headrace::lower
