#include "plan/pipeline/cut_network.h"

#include <algorithm>

namespace headrace::plan {

CutNetwork::CutNetwork(int32_t num_nodes) : head_(at(num_nodes), -1) {}

int32_t CutNetwork::add_node() {
  head_.push_back(-1);
  return static_cast<int32_t>(head_.size()) - 3;
}

void CutNetwork::add_arc(int32_t from, int32_t to, int64_t capacity, int64_t capacity_back) {
  push_arc(from, to, capacity);
  push_arc(to, from, capacity_back);
}

void CutNetwork::push_arc(int32_t from, int32_t to, int64_t capacity) {
  arcs_.push_back({to, head_[at(from)], capacity, capacity});
  head_[at(from)] = static_cast<int32_t>(arcs_.size()) - 1;
}

int64_t CutNetwork::min_cut(std::span<const int32_t> inside, std::span<const int32_t> outside, int64_t limit) {
  const size_t own_arcs = arcs_.size();
  for (const int32_t node : inside) add_arc(kSource, node, kUncuttable);
  for (const int32_t node : outside) add_arc(node, kSink, kUncuttable);
  for (Arc& one : arcs_) one.left = one.capacity;
  int64_t flow = 0;
  while (flow < limit && find_levels()) flow += push_flow(limit - flow);
  while (arcs_.size() > own_arcs) {
    const Arc back = arcs_.back();
    arcs_.pop_back();
    head_[at(arcs_.back().to)] = back.next;
    head_[at(back.to)] = arcs_.back().next;
    arcs_.pop_back();
  }
  return flow;
}

// Numbers the nodes by their distance to the sink along arcs that have capacity left.
bool CutNetwork::find_levels() {
  level_.assign(head_.size(), -1);
  queue_.assign(1, kSink);
  level_[at(kSink)] = 0;
  for (size_t i = 0; i < queue_.size(); ++i) {
    const int32_t node = queue_[i];
    for (int32_t number = head_[at(node)]; number >= 0; number = arc(number).next) {
      ++steps_;
      int32_t& level = level_[at(arc(number).to)];
      if (level >= 0 || arc(number ^ 1).left == 0) continue;
      level = level_[at(node)] + 1;
      queue_.push_back(arc(number).to);
    }
  }
  return level_[at(kSource)] >= 0;
}

int64_t CutNetwork::push_flow(int64_t most) {
  next_ = head_;
  std::vector<int32_t> path;
  int64_t sent = 0;
  int32_t node = kSource;
  while (sent < most) {
    if (node == kSink) {
      node = send(path, most, sent);
      continue;
    }
    int32_t& number = next_[at(node)];
    while (number >= 0 && (arc(number).left == 0 || level_[at(arc(number).to)] + 1 != level_[at(node)])) {
      ++steps_;
      number = arc(number).next;
    }
    if (number >= 0) {
      path.push_back(number);
      node = arc(number).to;
    } else if (path.empty()) {
      break;
    } else {
      node = arc(path.back() ^ 1).to;
      next_[at(node)] = arc(path.back()).next;
      path.pop_back();
    }
  }
  return sent;
}

// Sends as much as the path can take, and cuts the path before its first full arc. Returns the node where it ends then.
int32_t CutNetwork::send(std::vector<int32_t>& path, int64_t most, int64_t& sent) {
  int64_t flow = most - sent;
  for (const int32_t number : path) flow = std::min(flow, arc(number).left);
  size_t kept = 0;
  for (size_t i = path.size(); i-- > 0;) {
    arc(path[i]).left -= flow;
    arc(path[i] ^ 1).left += flow;
    if (arc(path[i]).left == 0) kept = i;
  }
  sent += flow;
  const int32_t node = arc(path[kept] ^ 1).to;
  path.resize(kept);
  return node;
}

}  // namespace headrace::plan
