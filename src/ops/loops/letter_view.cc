#include "ops/loops/letter_view.h"

#include <algorithm>

#include "tensor/strides.h"

namespace headrace::ops {

LetterView::LetterView(const Shape& shape, const Layout& layout, std::string_view letters) {
  const Shape strides = dense_strides(shape);
  for (const char letter : letters) {
    std::vector<Part> parts;
    int64_t inner = 1;
    const std::vector<size_t> positions = layout.positions(letter);
    for (auto at = positions.rbegin(); at != positions.rend(); ++at) {
      parts.push_back({inner, shape[*at], strides[*at]});
      inner *= shape[*at];
    }
    dims.push_back(inner);
    parts_.push_back(std::move(parts));
  }
}

void LetterView::add_axes(size_t first, size_t count) {
  const auto at = static_cast<std::ptrdiff_t>(first);
  dims.insert(dims.begin() + at, count, 1);
  parts_.insert(parts_.begin() + at, count, {Part{1, 1, 0}});
}

}  // namespace headrace::ops
