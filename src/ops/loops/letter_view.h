// Addresses a dense tensor by the letters of its layout, in any order and parts, for `eval`.
#pragma once

#include <string_view>
#include <vector>

#include "ir/layout.h"

namespace headrace::ops {

class LetterView {
 public:
  LetterView() = default;
  // Views a tensor of `shape` in `layout`, whose axes are `letters`.
  LetterView(const Shape& shape, const Layout& layout, std::string_view letters);

  // The sizes of the axes, whole, in the order of the letters.
  Shape dims;

  // Returns what index `i` of axis number `letter` adds to an element's offset. For an axis without parts this is
  // linear in `i`, so sums and differences of indices may be passed, too.
  int64_t at(size_t letter, int64_t i) const {
    const std::vector<Part>& parts = parts_[letter];
    if (parts.size() == 1) return i * parts[0].stride;
    int64_t offset = 0;
    for (const Part& part : parts) offset += i / part.inner % part.size * part.stride;
    return offset;
  }
  // Returns the offset of the element at that index of all letters.
  int64_t offset(const Shape& index) const {
    int64_t sum = 0;
    for (size_t i = 0; i < index.size(); ++i) sum += at(i, index[i]);
    return sum;
  }
  // Adds `count` axes of one element before axis `first`.
  void add_axes(size_t first, size_t count);

 private:
  struct Part {
    int64_t inner, size, stride;  // `inner` elements of the axis lie within one step of this part
  };
  std::vector<std::vector<Part>> parts_;
};

}  // namespace headrace::ops
