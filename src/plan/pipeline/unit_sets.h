// Sets of units, and for each unit those that it depends on and those that depend on it.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "plan/pipeline/split_graph.h"

namespace headrace::plan {

class UnitSet {
 public:
  explicit UnitSet(int32_t num_units) : words_((as_index(num_units) + 63) / 64, 0) {}

  bool has(int32_t unit) const { return (words_[as_index(unit) / 64] >> (as_index(unit) % 64) & 1) != 0; }
  void add(int32_t unit) { words_[as_index(unit) / 64] |= uint64_t{1} << (as_index(unit) % 64); }
  void add_all(const UnitSet& other) {
    for (size_t word = 0; word < words_.size(); ++word) words_[word] |= other.words_[word];
  }
  int64_t count_both(const UnitSet& other) const {
    int64_t sum = 0;
    for (size_t word = 0; word < words_.size(); ++word) sum += std::popcount(words_[word] & other.words_[word]);
    return sum;
  }
  // Calls visit(unit) for each unit that both sets have, in ascending order.
  template <typename Visit>
  void each_of_both(const UnitSet& other, const Visit& visit) const {
    for (size_t word = 0; word < words_.size(); ++word) {
      for (uint64_t left = words_[word] & other.words_[word]; left != 0; left &= left - 1)
        visit(static_cast<int32_t>(word * 64) + std::countr_zero(left));
    }
  }

 private:
  std::vector<uint64_t> words_;  // a bit for each unit
};

// Sets by unit, each with the unit itself, and the least compute times of their units.
struct Dependencies {
  explicit Dependencies(const SplitGraph& graph);

  std::vector<UnitSet> before, after;
  std::vector<int64_t> before_ns, after_ns;
};

}  // namespace headrace::plan
