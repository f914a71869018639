// Normalisations over groups of axes: group_norm, instance_norm, l2_normalize.
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

// How both norms see their data of `channels` channels: an instance is a group of one channel.
struct GroupNormView {
  size_t axis = 1;
  int64_t per_group = 1;  // channels of a group
  double epsilon = 0;
  bool center = true, scale = true;
};
GroupNormView view_of(const GroupNormAttrs& attrs, size_t rank, int64_t channels);
GroupNormView view_of(const InstanceNormAttrs& attrs, size_t rank, int64_t channels);

}  // namespace headrace::ops
