// Unary functions and activations: output element i reads input element i.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct LeakyReluAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.LeakyReluAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<LeakyReluAttrs>& f);
  double alpha = 0.25;
};

struct PReluAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.PReluAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<PReluAttrs>& f);
  int64_t axis = 1;
};

struct ClipAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.ClipAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<ClipAttrs>& f);
  double a_min = 0;
  double a_max = 0;
};

struct CastAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.CastAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<CastAttrs>& f);
  DataType dtype;
};

struct DropoutAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.DropoutAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<DropoutAttrs>& f);
  double rate = 0.5;
};

// Makes a call of a unary op without attributes: unary("exp", x).
Expr unary(std::string_view op, Expr data, Span span = {});
Expr relu(Expr data, Span span = {});
Expr leaky_relu(Expr data, double alpha, Span span = {});
Expr prelu(Expr data, Expr alpha, int64_t axis = 1, Span span = {});
Expr clip(Expr data, double a_min, double a_max, Span span = {});
Expr cast(Expr data, DataType dtype, Span span = {});
// Returns a tuple: the data, and the mask.
Expr dropout(Expr data, double rate = 0.5, Span span = {});

}  // namespace headrace::ops
