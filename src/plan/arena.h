// The free list of a memory plan. Private to plan/.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

namespace headrace::plan {

// Gives and takes back ranges of bytes; remembers the highest end. All sizes are multiples of 64.
class Arena {
 public:
  static constexpr int64_t kLine = 64;
  // Returns the bytes that a range of `nbytes` takes: whole lines, at least one, so that offsets differ while ranges
  // live.
  static int64_t lines(int64_t nbytes) { return std::max(kLine, (nbytes + kLine - 1) / kLine * kLine); }

  // Returns the offset of `nbytes` free bytes (rounded up to lines): in the smallest gap that fits, the lowest of equal
  // ones; otherwise at the end, where a gap that touches the end is used first.
  int64_t take(int64_t nbytes);
  // Gives back what take() gave.
  void give_back(int64_t offset);
  int64_t nbytes() const { return end_; }

 private:
  std::map<int64_t, int64_t> gaps_;   // offset -> bytes; no two touch
  std::map<int64_t, int64_t> taken_;  // offset -> bytes
  std::multimap<int64_t, int64_t> gaps_by_size_;
  void add_gap(int64_t offset, int64_t nbytes);
  void remove_gap(std::map<int64_t, int64_t>::iterator gap);
  int64_t end_ = 0;
};

}  // namespace headrace::plan
