// Ops that choose an element by its position: one_hot, trilu, sequence_mask, matrix_set_diag, strided_set.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct OneHotAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.OneHotAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<OneHotAttrs>& f);
  int64_t depth = 1;
  int64_t axis = -1;
  DataType dtype = DataType::float_(32);
};

struct TriluAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.TriluAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<TriluAttrs>& f);
  bool upper = true;
};

struct SequenceMaskAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.SequenceMaskAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<SequenceMaskAttrs>& f);
  double mask_value = 0;
  int64_t axis = 0;
};

struct MatrixSetDiagAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.MatrixSetDiagAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<MatrixSetDiagAttrs>& f);
  int64_t k1 = 0;
  int64_t k2 = 0;
  bool super_diag_right_align = true;
  bool sub_diag_right_align = false;
};

Expr one_hot(Expr indices, Expr on_value, Expr off_value, int64_t depth, int64_t axis = -1,
             DataType dtype = DataType::float_(32), Span span = {});
Expr trilu(Expr data, Expr k, bool upper = true, Span span = {});
Expr sequence_mask(Expr data, Expr valid_length, double mask_value = 0, int64_t axis = 0, Span span = {});

// For the diagonals k1 .. k2 of an m x n matrix: longest_diagonal returns the length of the longest, diagonal_offset
// the offset of diagonal d to the right in a row of that length.
int64_t longest_diagonal(const MatrixSetDiagAttrs& attrs, int64_t m, int64_t n);
int64_t diagonal_offset(const MatrixSetDiagAttrs& attrs, int64_t m, int64_t n, int64_t d);

}  // namespace headrace::ops
