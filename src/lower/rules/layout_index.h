// Indexes tensors by the letters of their layout, whose axes may be split into parts (NCHW16c).
#pragma once

#include <string_view>

#include "ir/layout.h"
#include "lower/compute_rule.h"

namespace headrace::lower {

// A position along an axis: an index for each part, the outermost first, and the sizes of all parts but the outermost.
struct AxisIndex {
  AxisIndex(PrimExpr whole)
      : parts{std::move(whole)} {}  // NOLINT(google-explicit-constructor): most axes have no parts
  AxisIndex(Index parts, Shape factors) : parts(std::move(parts)), factors(std::move(factors)) {}
  // Returns the position as a single index.
  PrimExpr whole() const;
  // Splits the position into parts of these factors; returns it unchanged if it already has them.
  AxisIndex split(const Shape& factors) const;

  Index parts;
  Shape factors;
};

// Returns the position along axis `letter` in `index`, which is an index into, or the shape of, a tensor in `layout`.
AxisIndex axis_index(const Layout& layout, char letter, const Index& index);
// Returns the positions along several axes, in the order of `letters`.
std::vector<AxisIndex> axis_indices(const Layout& layout, std::string_view letters, const Index& index);
// Returns each position as a single index.
Index whole(const std::vector<AxisIndex>& index);
// Loads the element of a buffer in `layout` whose position along letters[i] is index[i].
PrimExpr load_by_letters(const Buffer& buffer, const Layout& layout, std::string_view letters,
                         const std::vector<AxisIndex>& index);
// Returns the sizes of a tensor's axes in the order of `letters`, with the parts of an axis multiplied.
std::vector<PrimExpr> whole_dims(const TensorType& type, const Layout& layout, std::string_view letters);

}  // namespace headrace::lower
