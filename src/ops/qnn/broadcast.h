// The attributes of qnn.add, qnn.subtract and qnn.mul: sums, differences and products of quantized tensors.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

// The axes of lhs and rhs along which they have a scale and a zero point for each index.
struct BroadcastAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.BroadcastAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<BroadcastAttrs>& f);
  int64_t lhs_axis = -1;
  int64_t rhs_axis = -1;
};

}  // namespace headrace::ops
