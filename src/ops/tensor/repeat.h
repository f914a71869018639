// Ops that repeat the elements of a tensor, or reverse them.
//
// Any dtype. Where a shape is an attribute it may instead be a second argument, an int tensor of one dimension; the
// attribute is then left empty.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

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

Expr broadcast_to(Expr data, Shape shape, Span span = {});
Expr broadcast_to(Expr data, Expr shape, Span span = {});
Expr broadcast_to_like(Expr data, Expr like, Span span = {});
Expr tile(Expr data, Shape reps, Span span = {});
Expr tile(Expr data, Expr reps, Span span = {});
Expr repeat(Expr data, int64_t repeats, int64_t axis = 0, Span span = {});
Expr reverse(Expr data, int64_t axis, Span span = {});

}  // namespace headrace::ops
