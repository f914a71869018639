// Normalisations by the statistics of groups of channels, of single channels, and of chosen axes: nn.group_norm,
// nn.instance_norm, nn.l2_normalize.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct GroupNormAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.GroupNormAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<GroupNormAttrs>& f);
  int64_t num_groups = 1;
  int64_t axis = 1;
  double epsilon = 1e-5;
  bool center = true;
  bool scale = true;
};

struct InstanceNormAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.InstanceNormAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<InstanceNormAttrs>& f);
  int64_t axis = 1;
  double epsilon = 1e-5;
  bool center = true;
  bool scale = true;
};

struct L2NormalizeAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.L2NormalizeAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<L2NormalizeAttrs>& f);
  double eps = 0;
  Shape axis;
};

// The form that nn.group_norm and nn.instance_norm share: an instance norm has groups of one channel.
struct GroupNormView {
  size_t axis = 1;
  int64_t per_group = 1;  // channels of a group
  double epsilon = 0;
  bool center = true, scale = true;
};
// Return it for data of this rank with `channels` along the norm's axis, which the type relation has checked.
GroupNormView view_of(const GroupNormAttrs& attrs, size_t rank, int64_t channels);
GroupNormView view_of(const InstanceNormAttrs& attrs, size_t rank, int64_t channels);

}  // namespace headrace::ops
