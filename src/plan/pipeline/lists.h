// Many short lists of numbers in one piece of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace headrace::plan {

inline size_t as_index(int32_t number) { return static_cast<size_t>(number); }

// Lists of numbers, one list after another.
struct Lists {
  std::vector<int64_t> begins{0};
  std::vector<int32_t> items;

  size_t size() const { return begins.size() - 1; }
  std::span<const int32_t> operator[](size_t list) const {
    const auto begin = static_cast<size_t>(begins[list]);
    return {items.data() + begin, static_cast<size_t>(begins[list + 1]) - begin};
  }
  void close() { begins.push_back(static_cast<int64_t>(items.size())); }
};

// Returns for each of `count` numbers the lists that hold it, ascending.
Lists inverse(const Lists& lists, size_t count);

}  // namespace headrace::plan
