// Losses: cross_entropy, cross_entropy_with_logits, nll_loss.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct NLLLossAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.NLLLossAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<NLLLossAttrs>& f);
  std::string reduction = "mean";
  int64_t ignore_index = -100;
};

Expr nll_loss(Expr predictions, Expr targets, Expr weights, std::string reduction, int64_t ignore_index = -100,
              Span span = {});

}  // namespace headrace::ops
