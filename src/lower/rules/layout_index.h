// Indices by the letters of a layout, whose axes may lie in parts (NCHW16c).
#pragma once

#include <string_view>

#include "ir/layout.h"
#include "lower/compute_rule.h"

namespace headrace::lower {

// Where along an axis an element lies: an index per part, the outermost first, and the factors of all but that one.
struct AxisIndex {
  AxisIndex(PrimExpr whole)
      : parts{std::move(whole)} {}  // NOLINT(google-explicit-constructor): mostly there is no part
  AxisIndex(Index parts, Shape factors) : parts(std::move(parts)), factors(std::move(factors)) {}
  PrimExpr whole() const;
  // In parts of those factors; the same parts stay as they are.
  AxisIndex split(const Shape& factors) const;

  Index parts;
  Shape factors;
};

// The index of axis `letter` in `index`, an index into (or the shape of) a tensor in `layout`.
AxisIndex axis_index(const Layout& layout, char letter, const Index& index);
// The same of each letter.
std::vector<AxisIndex> axis_indices(const Layout& layout, std::string_view letters, const Index& index);
// Each of them whole.
Index whole(const std::vector<AxisIndex>& index);
// The element of a buffer in `layout` at that index of each letter.
PrimExpr load_by_letters(const Buffer& buffer, const Layout& layout, std::string_view letters,
                         const std::vector<AxisIndex>& index);
// The sizes of a tensor's axes, whole, in the order of the letters.
std::vector<PrimExpr> whole_dims(const TensorType& type, const Layout& layout, std::string_view letters);

}  // namespace headrace::lower
