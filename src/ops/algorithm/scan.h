// Running sums and products: cumsum, cumprod.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct ScanopAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.ScanopAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<ScanopAttrs>& f);
  std::optional<int64_t> axis;
  std::optional<DataType> dtype;
  bool exclusive = false;
};

// Makes cumsum or cumprod: scan("cumsum", x, 1).
Expr scan(std::string_view op, Expr data, std::optional<int64_t> axis = std::nullopt, bool exclusive = false,
          Span span = {});

}  // namespace headrace::ops
