// Ops that change a tensor's shape, or join and split tensors, without computing on elements.
//
// Any dtype. Where a shape is an attribute it may instead be a second argument, an int tensor of one dimension; the
// attribute is then left empty.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct ReshapeAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.ReshapeAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<ReshapeAttrs>& f);
  Shape newshape;
  bool allowzero = false;
};

struct TransposeAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.TransposeAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<TransposeAttrs>& f);
  Shape axes;
};

struct SqueezeAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.SqueezeAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<SqueezeAttrs>& f);
  Shape axis;
};

struct ExpandDimsAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.ExpandDimsAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<ExpandDimsAttrs>& f);
  int64_t axis = 0;
  int64_t num_newaxis = 1;
};

struct ConcatenateAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.ConcatenateAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<ConcatenateAttrs>& f);
  int64_t axis = 0;
};

struct StackAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.StackAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<StackAttrs>& f);
  int64_t axis = 0;
};

struct SplitAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.SplitAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<SplitAttrs>& f);
  Value indices_or_sections;  // int or shape
  int64_t axis = 0;
};

struct BroadcastToAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.BroadcastToAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<BroadcastToAttrs>& f);
  Shape shape;
};

struct TileAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.TileAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<TileAttrs>& f);
  Shape reps;
};

struct RepeatAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.RepeatAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<RepeatAttrs>& f);
  int64_t repeats = 1;
  int64_t axis = 0;
};

struct ReverseAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.ReverseAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<ReverseAttrs>& f);
  int64_t axis = 0;
};

Expr reshape(Expr data, Shape newshape, bool allowzero = false, Span span = {});
Expr reshape(Expr data, Expr newshape, bool allowzero = false, Span span = {});
Expr transpose(Expr data, Shape axes = {}, Span span = {});
Expr squeeze(Expr data, Shape axis = {}, Span span = {});
Expr expand_dims(Expr data, int64_t axis, int64_t num_newaxis = 1, Span span = {});
Expr batch_flatten(Expr data, Span span = {});
Expr concatenate(Array<Expr> items, int64_t axis = 0, Span span = {});
Expr stack(Array<Expr> items, int64_t axis = 0, Span span = {});
// A tuple of the parts.
Expr split(Expr data, int64_t sections, int64_t axis = 0, Span span = {});
Expr split(Expr data, Shape begins, int64_t axis = 0, Span span = {});
Expr broadcast_to(Expr data, Shape shape, Span span = {});
Expr broadcast_to(Expr data, Expr shape, Span span = {});
Expr broadcast_to_like(Expr data, Expr like, Span span = {});
Expr reshape_like(Expr data, Expr like, Span span = {});
Expr tile(Expr data, Shape reps, Span span = {});
Expr tile(Expr data, Expr reps, Span span = {});
Expr repeat(Expr data, int64_t repeats, int64_t axis = 0, Span span = {});
Expr reverse(Expr data, int64_t axis, Span span = {});

}  // namespace headrace::ops
