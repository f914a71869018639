#include "backends/onednn/arena_plan.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <queue>

namespace headrace_onednn {

namespace {

// The arena at one step: gaps by their offsets, and everything free from `end_` on.
class Arena {
 public:
  size_t take(size_t nbytes) {
    for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {
      ++plan.num_examined;
      if (gap->second < nbytes) continue;
      const auto [offset, size] = *gap;
      gaps_.erase(gap);
      if (size > nbytes) gaps_.emplace(offset + nbytes, size - nbytes);
      return offset;
    }
    const size_t offset = end_;
    end_ += nbytes;
    plan.nbytes = std::max(plan.nbytes, end_);
    return offset;
  }

  // Joins the gaps on both sides.
  void give_back(size_t offset, size_t nbytes) {
    const auto after = gaps_.lower_bound(offset);
    size_t begin = offset, end = offset + nbytes;
    if (after != gaps_.begin()) {
      if (const auto before = std::prev(after); before->first + before->second == begin) {
        begin = before->first;
        gaps_.erase(before);
      }
    }
    if (after != gaps_.end() && after->first == end) {
      end += after->second;
      gaps_.erase(after);
    }
    if (end == end_)
      end_ = begin;
    else
      gaps_.emplace(begin, end - begin);
  }

  ArenaPlan plan;

 private:
  std::map<size_t, size_t> gaps_;  // sizes by offsets
  size_t end_ = 0;
};

}  // namespace

ArenaPlan plan_arena(std::vector<Lifetime>& lifetimes, size_t alignment) {
  const auto size_of = [&](const Lifetime& one) { return (one.nbytes + alignment - 1) / alignment * alignment; };
  std::vector<size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return lifetimes[a].first < lifetimes[b].first; });
  using End = std::pair<size_t, size_t>;  // the last step, and the lifetime
  std::priority_queue<End, std::vector<End>, std::greater<>> held;
  Arena arena;
  for (const size_t index : order) {
    Lifetime& one = lifetimes[index];
    for (; !held.empty() && held.top().first < one.first; held.pop()) {
      const Lifetime& past = lifetimes[held.top().second];
      arena.give_back(past.offset, size_of(past));
    }
    one.offset = arena.take(size_of(one));
    held.emplace(one.last, index);
  }
  return arena.plan;
}

}  // namespace headrace_onednn
