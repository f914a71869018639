// Ops that join tensors and cut them, of any dtype.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

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

Expr concatenate(Array<Expr> items, int64_t axis = 0, Span span = {});
Expr stack(Array<Expr> items, int64_t axis = 0, Span span = {});
// A tuple of the parts.
Expr split(Expr data, int64_t sections, int64_t axis = 0, Span span = {});
Expr split(Expr data, Shape begins, int64_t axis = 0, Span span = {});

}  // namespace headrace::ops
