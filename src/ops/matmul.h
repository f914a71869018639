// Matrix products.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct DenseAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.DenseAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<DenseAttrs>& f) {
    f.field<&DenseAttrs::units>(
         "units", {.optional = true, .default_value = Value(), .has_default = true, .doc = "output features"})
        .field<&DenseAttrs::out_dtype>(
            "out_dtype", {.optional = true, .default_value = Value(), .has_default = true, .doc = "None: as data"});
  }
  std::optional<int64_t> units;
  std::optional<DataType> out_dtype;
};

struct MatmulAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.MatmulAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<MatmulAttrs>& f) {
    f.field<&MatmulAttrs::units>(
         "units", {.optional = true, .default_value = Value(), .has_default = true, .doc = "columns of the result"})
        .field<&MatmulAttrs::out_dtype>(
            "out_dtype", {.optional = true, .default_value = Value(), .has_default = true, .doc = "None: as tensor_a"})
        .field<&MatmulAttrs::transpose_a>(
            "transpose_a", {.default_value = false, .has_default = true, .doc = "tensor_a is [..., K, M]"})
        .field<&MatmulAttrs::transpose_b>("transpose_b",
                                          {.default_value = false, .has_default = true, .doc = "tensor_b is [N, K]"});
  }
  std::optional<int64_t> units;
  std::optional<DataType> out_dtype;
  bool transpose_a = false;
  bool transpose_b = false;
};

struct BatchMatmulAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.BatchMatmulAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<BatchMatmulAttrs>& f) {
    f.field<&BatchMatmulAttrs::out_dtype>(
         "out_dtype", {.optional = true, .default_value = Value(), .has_default = true, .doc = "None: as tensor_a"})
        .field<&BatchMatmulAttrs::transpose_a>(
            "transpose_a", {.default_value = false, .has_default = true, .doc = "tensor_a is [B, K, M]"})
        .field<&BatchMatmulAttrs::transpose_b>(
            "transpose_b", {.default_value = true, .has_default = true, .doc = "tensor_b is [B, N, K]"});
  }
  std::optional<DataType> out_dtype;
  bool transpose_a = false;
  bool transpose_b = true;
};

Expr dense(Expr data, Expr weight, DenseAttrs attrs = {}, Span span = {});
Expr matmul(Expr tensor_a, Expr tensor_b, MatmulAttrs attrs = {}, Span span = {});
Expr batch_matmul(Expr tensor_a, Expr tensor_b, BatchMatmulAttrs attrs = {}, Span span = {});

}  // namespace headrace::ops
