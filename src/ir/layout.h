// The layout grammar: how the axes of a tensor lie in its dimensions.
//
//   layout := item+      item := LETTER | factor letter      NCHW, NCHW16c, OIHW16i64o4i
//
// An upper-case letter is an axis; each stands once. A number and a lower-case letter is a part of that axis, split off
// its inner end: with NCHW16c channel c lies at [n, c / 16, h, w, c % 16]. Of several parts of one axis those further
// left are the outer ones: with OIHW16i64o4i input channel i lies at I = i / 64, 16i = i / 4 % 16, 4i = i % 4.
#pragma once

#include <span>

#include "ir/prim_expr.h"

namespace headrace {

class Layout {
 public:
  // One dimension: the axis' letter, upper-case, and how many of its elements the dimension counts; 0 for the remaining
  // ones.
  struct Item {
    char letter = 0;
    int64_t factor = 0;
    bool is_part() const { return factor != 0; }
    bool operator==(const Item&) const = default;
  };

  // Parses a layout. UserError with the place of the fault: a sign that is not a letter, an axis that occurs twice or
  // only in parts, a factor that is missing, 0 or more than 2^31.
  static Layout parse(std::string_view text);
  // Returns the text form, "NCHW16c"; parse returns an equal layout.
  std::string text() const;

  const std::vector<Item>& items() const { return items_; }
  size_t rank() const { return items_.size(); }
  // Returns the axes in their order: "NCHW".
  std::string letters() const;
  // Returns the dimension of the whole axis; nothing when there is none. Parts of the axis are not considered.
  std::optional<size_t> find(char letter) const;
  // Returns the product of the factors of the axis' parts; 1 when it is whole.
  int64_t factor(char letter) const;
  // Return the dimensions of the axis and its parts, and the factors of the parts; the outermost comes first.
  std::vector<size_t> positions(char letter) const;
  Shape factors(char letter) const;
  bool is_packed() const;
  // Returns whether two layouts have the same axes, in any order and parts.
  bool same_axes(const Layout& other) const;
  bool operator==(const Layout&) const = default;

 private:
  std::vector<Item> items_;
};

// join_parts returns the position of an element along an axis, given its index in each part (outermost first) and the
// factors of all parts but the outermost; split_parts is its inverse.
PrimExpr join_parts(std::span<const PrimExpr> parts, const Shape& factors);
std::vector<PrimExpr> split_parts(const PrimExpr& place, const Shape& factors);

// Returns the dimensions in layout `to` of a tensor that has `dims` in layout `from`. Symbolic dimensions stay
// symbolic: n of NCHW is floordiv(n, 16) of a part of 16. UserError: other axes, a wrong number of dimensions, a
// dimension of a part that is not its factor, an extent that is known and no multiple of the factors.
Array<PrimExpr> convert_shape(const Array<PrimExpr>& dims, const Layout& from, const Layout& to);

// Returns the indices in layout `to` of the element at `indices` in layout `from`. Indices of an axis with the same
// parts in both layouts stay as they are. UserError: see above.
Array<PrimExpr> map_index(const Array<PrimExpr>& indices, const Layout& from, const Layout& to);

}  // namespace headrace
