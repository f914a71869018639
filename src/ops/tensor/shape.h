// Ops that give the elements of a tensor another shape, or its axes another order.
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

struct ReshapeLikeAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.ReshapeLikeAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<ReshapeLikeAttrs>& f);
  int64_t lhs_begin = 0;
  std::optional<int64_t> lhs_end;
  int64_t rhs_begin = 0;
  std::optional<int64_t> rhs_end;
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
  std::optional<Shape> axis;  // nothing: all axes of size 1
};

struct ExpandDimsAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.ExpandDimsAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<ExpandDimsAttrs>& f);
  int64_t axis = 0;
  int64_t num_newaxis = 1;
};

Expr reshape(Expr data, Shape newshape, bool allowzero = false, Span span = {});
Expr reshape(Expr data, Expr newshape, bool allowzero = false, Span span = {});
Expr reshape_like(Expr data, Expr like, Span span = {});
Expr batch_flatten(Expr data, Span span = {});
Expr transpose(Expr data, Shape axes = {}, Span span = {});
Expr squeeze(Expr data, std::optional<Shape> axis = std::nullopt, Span span = {});
// Returns which axes of a tensor of those dimensions squeeze drops.
std::vector<bool> squeezed_axes(const SqueezeAttrs& attrs, const Array<PrimExpr>& dims);
Expr expand_dims(Expr data, int64_t axis, int64_t num_newaxis = 1, Span span = {});

}  // namespace headrace::ops
