// Minimum cuts of one network between many pairs of sets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace headrace::plan {

// Capacity of an arc that no cut may have.
inline constexpr int64_t kUncuttable = INT64_MAX / 8;

// A directed network whose arcs have capacities. The cut of a set of nodes is the sum of the capacities of the arcs
// that lead out of it.
class CutNetwork {
 public:
  explicit CutNetwork(int32_t num_nodes);

  int32_t add_node();
  void add_arc(int32_t from, int32_t to, int64_t capacity, int64_t capacity_back = 0);
  // Adds a cost of sets that have the node, or of those that have it not.
  void add_cost(int32_t node, int64_t cost) { add_arc(node, kSink, cost); }
  void add_cost_outside(int32_t node, int64_t cost) { add_arc(kSource, node, cost); }

  // Returns the least cut of a set that has all of `inside` and none of `outside`; `limit` when no cut is below it. By
  // a maximum flow (E. Dinic, 1970), which ends at the limit. No recursion.
  int64_t min_cut(std::span<const int32_t> inside, std::span<const int32_t> outside, int64_t limit);
  // Returns whether the node is in the set found last; there is one when the cut was below its limit.
  bool is_inside(int32_t node) const { return level_[at(node)] < 0; }
  // Returns the arcs that all calls of min_cut have looked at: a measure of time that is the same everywhere.
  int64_t steps() const { return steps_; }

 private:
  static constexpr int32_t kSource = -2, kSink = -1;
  struct Arc {
    int32_t to, next;
    int64_t capacity, left;
  };

  static size_t at(int32_t node) { return static_cast<size_t>(node + 2); }
  Arc& arc(int32_t number) { return arcs_[static_cast<size_t>(number)]; }
  void push_arc(int32_t from, int32_t to, int64_t capacity);
  bool find_levels();
  // Sends at most `most` along shortest paths; returns how much.
  int64_t push_flow(int64_t most);
  int32_t send(std::vector<int32_t>& path, int64_t most, int64_t& sent);

  std::vector<int32_t> head_;  // by node, the source and the sink first
  std::vector<Arc> arcs_;      // the arc the other way is beside each: its number ^ 1
  std::vector<int32_t> level_, queue_, next_;
  int64_t steps_ = 0;
};

}  // namespace headrace::plan
