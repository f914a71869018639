// Ops that put elements in other places: layout_transform, sliding_window, reverse_sequence, meshgrid, adv_index,
// unravel_index, slice_like, reinterpret.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct LayoutTransformAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.LayoutTransformAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<LayoutTransformAttrs>& f);
  std::string src_layout, dst_layout;
};

struct SlidingWindowAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.SlidingWindowAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<SlidingWindowAttrs>& f);
  int64_t axis = 0;
  Shape window_shape, strides;
};

struct ReverseSequenceAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.ReverseSequenceAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<ReverseSequenceAttrs>& f);
  int64_t seq_axis = 1;
  int64_t batch_axis = 0;
};

struct MeshgridAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.MeshgridAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<MeshgridAttrs>& f);
  std::string indexing = "ij";
};

struct SliceLikeAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.SliceLikeAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<SliceLikeAttrs>& f);
  Shape axes;
};

Expr layout_transform(Expr data, std::string src_layout, std::string dst_layout, Span span = {});
Expr reverse_sequence(Expr data, Expr seq_lengths, int64_t seq_axis = 1, int64_t batch_axis = 0, Span span = {});

// Returns which axis of the result item k of a meshgrid runs along.
size_t meshgrid_axis(const MeshgridAttrs& attrs, size_t k);

}  // namespace headrace::ops
