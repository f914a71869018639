#include "graph/min_cut.h"

#include <algorithm>

#include "base/error.h"

namespace headrace::graph {

namespace {

// A maximum flow from a source to a sink. Nodes on the source's side of the cut are those that it reaches at the end.
class FlowNetwork {
 public:
  explicit FlowNetwork(int32_t num_nodes) : head_(static_cast<size_t>(num_nodes), -1) {}

  void add(int32_t from, int32_t to, int64_t capacity) {
    push_arc(from, to, capacity);
    push_arc(to, from, 0);
  }

  // Returns for each node whether the sink can be reached from it at the end. The other nodes are one side of a cut.
  std::vector<bool> reaching_sink(int32_t source, int32_t sink) {
    while (find_levels(source, sink)) push_flow(source, sink);
    std::vector<bool> reaches(head_.size());
    for (size_t node = 0; node < head_.size(); ++node) reaches[node] = level_[node] >= 0;
    return reaches;
  }

 private:
  struct Arc {
    int32_t to, next;
    int64_t left;
  };

  void push_arc(int32_t from, int32_t to, int64_t capacity) {
    arcs_.push_back({to, head_[static_cast<size_t>(from)], capacity});
    head_[static_cast<size_t>(from)] = static_cast<int32_t>(arcs_.size()) - 1;
  }
  Arc& arc(int32_t at) { return arcs_[static_cast<size_t>(at)]; }

  // Numbers the nodes by their distance to the sink along arcs that have capacity left.
  bool find_levels(int32_t source, int32_t sink) {
    level_.assign(head_.size(), -1);
    std::vector<int32_t> queue{sink};
    level_[static_cast<size_t>(sink)] = 0;
    for (size_t i = 0; i < queue.size(); ++i) {
      for (int32_t at = head_[static_cast<size_t>(queue[i])]; at >= 0; at = arc(at).next) {
        int32_t& level = level_[static_cast<size_t>(arc(at).to)];
        if (level >= 0 || arc(at ^ 1).left == 0) continue;  // at ^ 1 is the arc the other way
        level = level_[static_cast<size_t>(queue[i])] + 1;
        queue.push_back(arc(at).to);
      }
    }
    return level_[static_cast<size_t>(source)] >= 0;
  }

  // Sends flow along shortest paths until none is left; `path` has the arcs of the one that is being followed.
  void push_flow(int32_t source, int32_t sink) {
    std::vector<int32_t> next = head_, path;
    int32_t node = source;
    while (true) {
      if (node == sink) {
        node = send(path);
        continue;
      }
      int32_t& at = next[static_cast<size_t>(node)];
      while (at >= 0 &&
             (arc(at).left == 0 || level_[static_cast<size_t>(arc(at).to)] + 1 != level_[static_cast<size_t>(node)]))
        at = arc(at).next;
      if (at >= 0) {
        path.push_back(at);
        node = arc(at).to;
      } else if (path.empty()) {
        return;
      } else {
        node = arc(path.back() ^ 1).to;
        next[static_cast<size_t>(node)] = arc(path.back()).next;
        path.pop_back();
      }
    }
  }

  // Sends what the path can take, and cuts the path before its first full arc. Returns the node where it ends then.
  int32_t send(std::vector<int32_t>& path) {
    int64_t flow = INT64_MAX;
    for (const int32_t at : path) flow = std::min(flow, arc(at).left);
    size_t kept = path.size();
    for (size_t i = path.size(); i-- > 0;) {
      arc(path[i]).left -= flow;
      arc(path[i] ^ 1).left += flow;
      if (arc(path[i]).left == 0) kept = i;
    }
    const int32_t node = arc(path[kept] ^ 1).to;
    path.resize(kept);
    return node;
  }

  std::vector<int32_t> head_;
  std::vector<Arc> arcs_;
  std::vector<int32_t> level_;
};

}  // namespace

int32_t BinaryCosts::add_variable() {
  first_.push_back(0);
  second_.push_back(0);
  return static_cast<int32_t>(first_.size()) - 1;
}

void BinaryCosts::add(int32_t variable, int64_t zero, int64_t one) {
  first_[static_cast<size_t>(variable)] += zero;
  second_[static_cast<size_t>(variable)] += one;
}

void BinaryCosts::add(int32_t a, int32_t b, int64_t zero_zero, int64_t zero_one, int64_t one_zero, int64_t one_one) {
  const int64_t excess = zero_one + one_zero - zero_zero - one_one;
  HEADRACE_CHECK(excess >= 0, "two variables cost {} + {} where they agree and {} + {} where they differ", zero_zero,
                 one_one, zero_one, one_zero);
  // The table is a sum of costs of `a`, of costs of `b`, and of the excess where `a` is 0 and `b` is 1.
  add(a, zero_zero, one_zero);
  add(b, 0, one_one - one_zero);
  if (excess > 0) arcs_.push_back({a, b, excess});
}

std::vector<bool> BinaryCosts::minimize() const {
  const auto count = static_cast<int32_t>(first_.size());
  const int32_t source = count, sink = count + 1;
  FlowNetwork network(count + 2);
  for (int32_t i = 0; i < count; ++i) {
    const int64_t more = second_[static_cast<size_t>(i)] - first_[static_cast<size_t>(i)];
    if (more > 0) network.add(source, i, more);
    if (more < 0) network.add(i, sink, -more);
  }
  for (const Arc& arc : arcs_) network.add(arc.from, arc.to, arc.capacity);
  std::vector<bool> values = network.reaching_sink(source, sink);
  values.resize(first_.size());
  return values;
}

}  // namespace headrace::graph
