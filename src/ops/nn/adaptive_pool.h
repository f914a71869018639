// Pools whose windows follow from the size of the result: adaptive_max_pool and adaptive_avg_pool of 1 to 3 axes.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

// Attributes of adaptive pools. Each rank has a type of its own, such as AdaptivePool2DAttrs, with its default layout.
struct AdaptivePoolAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.AnyAdaptivePoolAttrs";
  static constexpr int32_t child_slots = 3;
  explicit AdaptivePoolAttrs(size_t spatial);
  size_t spatial;  // no field: the type says it
  Shape output_size;
  std::string layout, out_layout;
};

template <size_t rank>
struct AdaptivePoolAttrsOf : AdaptivePoolAttrs {
  using Parent = AdaptivePoolAttrs;
  static constexpr std::string_view keys[3] = {"relay.attrs.AdaptivePool1DAttrs", "relay.attrs.AdaptivePool2DAttrs",
                                               "relay.attrs.AdaptivePool3DAttrs"};
  static constexpr std::string_view type_key = keys[rank - 1];
  static constexpr bool is_final = true;
  static void fields(FieldList<AdaptivePoolAttrsOf>& f);
  AdaptivePoolAttrsOf() : AdaptivePoolAttrs(rank) {}
};
using AdaptivePool1DAttrs = AdaptivePoolAttrsOf<1>;
using AdaptivePool2DAttrs = AdaptivePoolAttrsOf<2>;
using AdaptivePool3DAttrs = AdaptivePoolAttrsOf<3>;

// Makes the pool over output_size.size() spatial axes, 1 to 3, in the layout NCW, NCHW or NCDHW.
Expr adaptive_pool(bool takes_max, Expr data, Shape output_size, Span span = {});

// Return the bounds of window i of `out` over an axis of `in` elements: [begin, end), never empty unless `in` is 0.
inline int64_t adaptive_begin(int64_t i, int64_t in, int64_t out) { return i * in / out; }
inline int64_t adaptive_end(int64_t i, int64_t in, int64_t out) { return ((i + 1) * in + out - 1) / out; }

}  // namespace headrace::ops
