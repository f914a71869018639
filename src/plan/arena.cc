#include "plan/arena.h"

#include "base/error.h"

namespace headrace::plan {

void Arena::add_gap(int64_t offset, int64_t nbytes) {
  gaps_.emplace(offset, nbytes);
  gaps_by_size_.emplace(nbytes, offset);
}

void Arena::remove_gap(std::map<int64_t, int64_t>::iterator gap) {
  auto [at, end] = gaps_by_size_.equal_range(gap->second);
  while (at != end && at->second != gap->first) ++at;
  gaps_by_size_.erase(at);
  gaps_.erase(gap);
}

int64_t Arena::take(int64_t nbytes) {
  const int64_t size = lines(nbytes);
  int64_t offset = end_;
  const auto fit = gaps_by_size_.lower_bound(size);
  if (fit != gaps_by_size_.end()) {
    offset = fit->second;
    const int64_t rest = fit->first - size;
    remove_gap(gaps_.find(offset));
    if (rest > 0) add_gap(offset + size, rest);
  } else if (!gaps_.empty() && std::prev(gaps_.end())->first + std::prev(gaps_.end())->second == end_) {
    offset = std::prev(gaps_.end())->first;
    remove_gap(std::prev(gaps_.end()));
  }
  end_ = std::max(end_, offset + size);
  taken_.emplace(offset, size);
  return offset;
}

void Arena::give_back(int64_t offset) {
  const auto range = taken_.find(offset);
  HEADRACE_CHECK(range != taken_.end(), "offset {} is not taken", offset);
  int64_t begin = offset, end = offset + range->second;
  taken_.erase(range);
  const auto next = gaps_.find(end);
  if (next != gaps_.end()) {
    end += next->second;
    remove_gap(next);
  }
  const auto after = gaps_.lower_bound(begin);
  if (after != gaps_.begin() && std::prev(after)->first + std::prev(after)->second == begin) {
    begin = std::prev(after)->first;
    remove_gap(std::prev(after));
  }
  add_gap(begin, end - begin);
}

}  // namespace headrace::plan
