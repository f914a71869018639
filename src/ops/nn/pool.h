// Pooling over sliding windows and over whole planes.
#pragma once

#include "ops/loops/window.h"

namespace headrace::ops {

// Attributes of pools over windows along 1, 2 or 3 spatial axes. Each op has a type of its own, such as MaxPool2DAttrs,
// with the defaults of its rank. One value of a list of sizes stands for all axes.
struct PoolAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.AnyPoolAttrs";
  static constexpr int32_t child_slots = 6;
  // Makes the attributes with the defaults of that rank.
  explicit PoolAttrs(size_t spatial);
  size_t spatial;  // no field: the type says it
  Shape pool_size, strides, dilation, padding;
  std::string layout, out_layout;
  bool ceil_mode = false;
  bool count_include_pad = false;  // used by average pools
};

template <size_t rank, bool is_max>
struct PoolAttrsOf : PoolAttrs {
  using Parent = PoolAttrs;
  static constexpr std::string_view keys[6] = {"relay.attrs.AvgPool1DAttrs", "relay.attrs.AvgPool2DAttrs",
                                               "relay.attrs.AvgPool3DAttrs", "relay.attrs.MaxPool1DAttrs",
                                               "relay.attrs.MaxPool2DAttrs", "relay.attrs.MaxPool3DAttrs"};
  static constexpr std::string_view type_key = keys[rank - 1 + (is_max ? 3 : 0)];
  static constexpr bool is_final = true;
  static void fields(FieldList<PoolAttrsOf>& f);
  PoolAttrsOf() : PoolAttrs(rank) {}
};
using MaxPool1DAttrs = PoolAttrsOf<1, true>;
using MaxPool2DAttrs = PoolAttrsOf<2, true>;
using MaxPool3DAttrs = PoolAttrsOf<3, true>;
using AvgPool1DAttrs = PoolAttrsOf<1, false>;
using AvgPool2DAttrs = PoolAttrsOf<2, false>;
using AvgPool3DAttrs = PoolAttrsOf<3, false>;

struct GlobalPool2DAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.GlobalPool2DAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<GlobalPool2DAttrs>& f);
  std::string layout = "NCHW";
  std::string out_layout;
};

// The attributes of a pool with a value for each spatial axis and both layouts.
struct PoolForm {
  std::string_view letters;  // N C H W
  Layout layout, out_layout;
  Shape taps;
  Window window;
  size_t spatial() const { return letters.size() - 2; }
};
// Returns the form of the attributes of a typed call.
PoolForm pool_form(const PoolAttrs& attrs);
// Returns the form of a global pool: one window of `plane`, the data's sizes along H and W.
PoolForm global_pool_form(const GlobalPool2DAttrs& attrs, Shape plane);

// Makes nn.max_pool1d, 2d or 3d, by the rank of the attributes.
Expr max_pool(Expr data, const PoolAttrs& attrs, Span span = {});
Expr avg_pool(Expr data, const PoolAttrs& attrs, Span span = {});
Expr global_max_pool2d(Expr data, std::string layout = "NCHW", Span span = {});
Expr global_avg_pool2d(Expr data, std::string layout = "NCHW", Span span = {});

}  // namespace headrace::ops
