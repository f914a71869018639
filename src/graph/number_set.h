// A set of numbers 0 .. n-1 that gives its lowest. A tree of words with a bit for each number, and above them with a
// bit for each word that is not empty: each operation looks at one word of each level, three for 10^5 numbers.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace headrace::graph {

class NumberSet {
 public:
  explicit NumberSet(int32_t count) {
    size_t words = static_cast<size_t>(count);
    do {
      words = (words + kBits - 1) / kBits;
      levels_.emplace_back(words, 0);
    } while (words > 1);
  }

  bool empty() const { return levels_.back().empty() || levels_.back()[0] == 0; }

  void insert(int32_t number) {
    auto at = static_cast<size_t>(number);
    for (std::vector<uint64_t>& level : levels_) {
      uint64_t& word = level[at / kBits];
      const bool was_empty = word == 0;
      word |= uint64_t{1} << (at % kBits);
      if (!was_empty) return;
      at /= kBits;
    }
  }

  // Removes the lowest number of a set that is not empty and returns it.
  int32_t take_lowest() {
    size_t at = 0;
    for (size_t i = levels_.size(); i-- > 0;) at = at * kBits + static_cast<size_t>(std::countr_zero(levels_[i][at]));
    const auto lowest = static_cast<int32_t>(at);
    for (std::vector<uint64_t>& level : levels_) {
      uint64_t& word = level[at / kBits];
      word &= word - 1;  // the lowest bit is that of the number
      if (word != 0) break;
      at /= kBits;
    }
    return lowest;
  }

 private:
  static constexpr size_t kBits = 64;
  std::vector<std::vector<uint64_t>> levels_;  // the numbers, then the words of each level before
};

}  // namespace headrace::graph
