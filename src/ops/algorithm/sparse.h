// Sparse tensors: lists of places (sparse_to_dense, sparse_reshape, sparse_fill_empty_rows), and matrices in compressed
// rows (nn.sparse_dense, nn.sparse_add, nn.sparse_transpose).
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct SparseToDenseAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.SparseToDenseAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<SparseToDenseAttrs>& f);
  Shape output_shape;
};

struct SparseDenseAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.SparseDenseAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<SparseDenseAttrs>& f);
  bool sparse_lhs = false;
};

}  // namespace headrace::ops
