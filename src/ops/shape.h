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
  static void fields(FieldList<ReshapeAttrs>& f) {
    f.field<&ReshapeAttrs::newshape>("newshape",
                                     {.default_value = Shape(),
                                      .has_default = true,
                                      .doc = "sizes; 0 copies the input's, -1 is inferred, -2 copies the rest, "
                                             "-3 merges two, -4 splits one by the next two"})
        .field<&ReshapeAttrs::allowzero>("allowzero",
                                         {.default_value = false, .has_default = true, .doc = "0 is a size of zero"});
  }
  Shape newshape;
  bool allowzero = false;
};

struct TransposeAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.TransposeAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<TransposeAttrs>& f) {
    f.field<&TransposeAttrs::axes>(
        "axes",
        {.default_value = Shape(), .has_default = true, .doc = "the input axis of each output axis; empty: reversed"});
  }
  Shape axes;
};

struct SqueezeAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.SqueezeAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<SqueezeAttrs>& f) {
    f.field<&SqueezeAttrs::axis>(
        "axis", {.default_value = Shape(), .has_default = true, .doc = "axes of size 1 to drop; empty: all of them"});
  }
  Shape axis;
};

struct ExpandDimsAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.ExpandDimsAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<ExpandDimsAttrs>& f) {
    f.field<&ExpandDimsAttrs::axis>("axis", {.doc = "where the new axes go, in -rank-1 .. rank"})
        .field<&ExpandDimsAttrs::num_newaxis>("num_newaxis",
                                              {.default_value = 1, .has_default = true, .doc = "how many"});
  }
  int64_t axis = 0;
  int64_t num_newaxis = 1;
};

struct ConcatenateAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.ConcatenateAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<ConcatenateAttrs>& f) {
    f.field<&ConcatenateAttrs::axis>("axis",
                                     {.default_value = 0, .has_default = true, .doc = "the axis to join along"});
  }
  int64_t axis = 0;
};

struct StackAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.StackAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<StackAttrs>& f) {
    f.field<&StackAttrs::axis>("axis", {.default_value = 0, .has_default = true, .doc = "the new axis of the result"});
  }
  int64_t axis = 0;
};

struct SplitAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.SplitAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<SplitAttrs>& f) {
    f.field<&SplitAttrs::indices_or_sections>(
         "indices_or_sections", {.doc = "the number of equal parts, or where parts begin after the first"})
        .field<&SplitAttrs::axis>("axis", {.default_value = 0, .has_default = true, .doc = "the axis to cut"});
  }
  Value indices_or_sections;  // int or shape
  int64_t axis = 0;
};

struct BroadcastToAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.BroadcastToAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<BroadcastToAttrs>& f) {
    f.field<&BroadcastToAttrs::shape>("shape",
                                      {.default_value = Shape(), .has_default = true, .doc = "the result's shape"});
  }
  Shape shape;
};

struct TileAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.TileAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<TileAttrs>& f) {
    f.field<&TileAttrs::reps>(
        "reps", {.default_value = Shape(), .has_default = true, .doc = "copies along each axis, aligned at the last"});
  }
  Shape reps;
};

struct RepeatAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.RepeatAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<RepeatAttrs>& f) {
    f.field<&RepeatAttrs::repeats>("repeats", {.doc = "copies of each element, side by side"})
        .field<&RepeatAttrs::axis>("axis",
                                   {.default_value = 0, .has_default = true, .doc = "the axis to repeat along"});
  }
  int64_t repeats = 1;
  int64_t axis = 0;
};

struct ReverseAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.ReverseAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<ReverseAttrs>& f) {
    f.field<&ReverseAttrs::axis>("axis", {.doc = "the axis to reverse"});
  }
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
