// Ops that write elements where indices say: scatter_elements, scatter_nd, invert_permutation.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct ScatterElementsAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.ScatterElementsAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<ScatterElementsAttrs>& f);
  int64_t axis = 0;
  std::string reduction = "update";
};

struct ScatterNDAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.ScatterNDAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<ScatterNDAttrs>& f);
  std::string mode = "update";
};

Expr scatter_elements(Expr data, Expr indices, Expr updates, int64_t axis = 0, std::string reduction = "update",
                      Span span = {});
// Scatters by columns of indices[M, Y...]: column y is the position of updates[y...].
Expr scatter_nd(Expr data, Expr indices, Expr updates, std::string mode = "update", Span span = {});

}  // namespace headrace::ops
