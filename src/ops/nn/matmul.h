// Matrix products.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct DenseAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.DenseAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<DenseAttrs>& f);
  std::optional<int64_t> units;
  std::optional<DataType> out_dtype;
};

struct MatmulAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.MatmulAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<MatmulAttrs>& f);
  std::optional<int64_t> units;
  std::optional<DataType> out_dtype;
  bool transpose_a = false;
  bool transpose_b = false;
};

struct BatchMatmulAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.BatchMatmulAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<BatchMatmulAttrs>& f);
  std::optional<DataType> out_dtype;
  bool transpose_a = false;
  bool transpose_b = true;
};

Expr dense(Expr data, Expr weight, DenseAttrs attrs = {}, Span span = {});
Expr matmul(Expr tensor_a, Expr tensor_b, MatmulAttrs attrs = {}, Span span = {});
Expr batch_matmul(Expr tensor_a, Expr tensor_b, BatchMatmulAttrs attrs = {}, Span span = {});

}  // namespace headrace::ops
