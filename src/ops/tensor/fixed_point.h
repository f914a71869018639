// Products of integers with numbers in fixed point.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct FixedPointMultiplyAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.FixedPointMultiplyAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<FixedPointMultiplyAttrs>& f);
  int32_t multiplier = 0, shift = 0;
};

struct FixedPointMultiplyPerAxisAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.FixedPointMultiplyPerAxisAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<FixedPointMultiplyPerAxisAttrs>& f);
  bool is_lshift_required = false, is_rshift_required = false;
  Shape axes;
};

// A multiplier m is m / 2^31; shifts are within [-kMostFixedShift, kMostFixedShift].
inline constexpr int64_t kFixedBits = 31, kMostFixedShift = 31;

void register_fixed_point_ops();  // called where the elementwise ops are registered

}  // namespace headrace::ops
