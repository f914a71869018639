// Pools whose windows follow from the size of the result: adaptive_max_pool and adaptive_avg_pool of 1 to 3 axes.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct AdaptivePoolAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.AdaptivePoolAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<AdaptivePoolAttrs>& f);
  Shape output_size;
  std::string layout, out_layout;
};

// Window i of `out` over an axis of `in` elements: [begin, end), never empty where `in` is not 0.
inline int64_t adaptive_begin(int64_t i, int64_t in, int64_t out) { return i * in / out; }
inline int64_t adaptive_end(int64_t i, int64_t in, int64_t out) { return ((i + 1) * in + out - 1) / out; }

}  // namespace headrace::ops
