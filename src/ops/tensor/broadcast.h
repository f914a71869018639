// Binary ops with numpy's broadcasting, where, bias_add.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct BiasAddAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.BiasAddAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<BiasAddAttrs>& f);
  int64_t axis = 1;
};

// Makes a call of a binary op: binary("add", a, b).
Expr binary(std::string_view op, Expr lhs, Expr rhs, Span span = {});
Expr add(Expr lhs, Expr rhs, Span span = {});
Expr subtract(Expr lhs, Expr rhs, Span span = {});
Expr multiply(Expr lhs, Expr rhs, Span span = {});
Expr divide(Expr lhs, Expr rhs, Span span = {});
Expr where(Expr condition, Expr x, Expr y, Span span = {});
Expr bias_add(Expr data, Expr bias, int64_t axis = 1, Span span = {});

}  // namespace headrace::ops
