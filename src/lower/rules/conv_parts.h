// What convolutions share: layouts, operands, sums of products.
#pragma once

#include "lower/rules/window.h"
#include "ops/nn/conv.h"

namespace headrace::lower {

struct ConvLayouts {
  Layout data, weight, out;
};

ConvLayouts layouts_of(const ops::ConvForm& form);

// An element of an operand as eval takes it: in the result's dtype, then in the dtype that is summed in.
PrimExpr operand(const RuleInput& input, const PrimExpr& element);

// The result as sums of `product`, which gets the result's index by letters (N C H W) and the index of the reduction.
using ConvProduct = std::function<PrimExpr(const std::vector<AxisIndex>&, const Index&)>;
ComputeStage sum_products(const RuleInput& input, const ops::ConvForm& form, const std::vector<PrimExpr>& extents,
                          const ConvProduct& product);

void register_conv_transpose_rule();  // conv_transpose.cc

}  // namespace headrace::lower
