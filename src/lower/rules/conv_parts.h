// Helpers of the convolution rules: layouts, operands, sums of products.
#pragma once

#include "lower/rules/window.h"
#include "ops/nn/conv.h"

namespace headrace::lower {

struct ConvLayouts {
  Layout data, weight, out;
};

ConvLayouts layouts_of(const ops::ConvForm& form);

// Converts an element of an operand as the op's evaluation does: to the result's dtype, then to the accumulator's
// dtype.
PrimExpr operand(const RuleInput& input, const PrimExpr& element);

// Makes the stage that sums `product` over a reduction of the given extents. `product` receives the result's index by
// letters (N C H W) and the index of the reduction.
using ConvProduct = std::function<PrimExpr(const std::vector<AxisIndex>&, const Index&)>;
ComputeStage sum_products(const RuleInput& input, const ops::ConvForm& form, const std::vector<PrimExpr>& extents,
                          const ConvProduct& product);

void register_conv_transpose_rule();  // conv_transpose.cc

}  // namespace headrace::lower
