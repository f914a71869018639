// Comparing the neighbourhoods of two images: nn.correlation.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct CorrelationAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.CorrelationAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<CorrelationAttrs>& f);
  int64_t kernel_size = 1;
  int64_t max_displacement = 1;
  int64_t stride1 = 1;
  int64_t stride2 = 1;
  Shape padding{0, 0};
  bool is_multiply = true;
  std::string layout = "NCHW";
};

// Returns how many steps of stride2 a displacement takes at most, along each axis and to either side.
inline int64_t displacement_steps(const CorrelationAttrs& attrs) { return attrs.max_displacement / attrs.stride2; }

}  // namespace headrace::ops
