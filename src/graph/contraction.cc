#include "graph/contraction.h"

#include <algorithm>

#include "base/error.h"
#include "graph/quotient.h"

namespace headrace::graph {

namespace {

// How many neighbours the searches may look at, for each node and edge of the graph: enough for all joins of networks,
// whose searches are short, and a tenth of a second for 10^5 nodes where it is spent.
constexpr int64_t kLooksEach = 24;
constexpr int64_t kLooksAtLeast = 100'000;  // small graphs are searched to the end

}  // namespace

Contraction::Contraction(const IndexGraph& graph, std::span<const int32_t> group, int32_t num_groups) {
  const QuotientOrder order = order_quotient(graph, group, num_groups);
  HEADRACE_CHECK(order.cycle.empty(), "a contraction begins with a cycle");
  groups_.reserve(static_cast<size_t>(num_groups));
  for (int32_t i = 0; i < num_groups; ++i) groups_.push_back({.parent = i});
  for (size_t place = 0; place < order.order.size(); ++place)
    at(order.order[place]).place = static_cast<int32_t>(place);
  int64_t num_edges = 0;
  for (int32_t node = 0; node < graph.num_nodes(); ++node) {
    const int32_t from = group[static_cast<size_t>(node)];
    for (const Edge& edge : graph.out(node)) {
      ++num_edges;
      const int32_t to = group[static_cast<size_t>(edge.to)];
      if (from == to) continue;
      at(from).out.push_back(to);
      at(to).in.push_back(from);
    }
  }
  budget_ = kLooksAtLeast + kLooksEach * (graph.num_nodes() + num_edges);
}

int32_t Contraction::find(int32_t group) {
  while (at(group).parent != group) group = at(group).parent = at(at(group).parent).parent;
  return group;
}

// Gives the neighbours as they are today, each once.
std::vector<int32_t>& Contraction::neighbours(int32_t group, bool forward) {
  std::vector<int32_t>& list = forward ? at(group).out : at(group).in;
  budget_ -= static_cast<int64_t>(list.size()) + 1;
  for (int32_t& other : list) other = find(other);
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  std::erase(list, group);
  return list;
}

// Collects the groups that are reached from `start` and lie between the two, without `start` and `other`. Returns false
// when one of them leads to `other`, or when the budget is spent.
bool Contraction::collect(int32_t start, int32_t other, bool forward, std::vector<int32_t>& found) {
  ++searches_;
  const int32_t low = std::min(at(start).place, at(other).place), high = std::max(at(start).place, at(other).place);
  std::vector<int32_t> pending{start};
  while (!pending.empty()) {
    const int32_t from = pending.back();
    pending.pop_back();
    for (const int32_t to : neighbours(from, forward)) {
      if (to == other && from != start) return false;
      if (to == other || at(to).seen == searches_ || at(to).place <= low || at(to).place >= high) continue;
      at(to).seen = searches_;
      found.push_back(to);
      pending.push_back(to);
    }
    if (budget_ < 0) return false;
  }
  return true;
}

// The groups between that lead to `b` come before the joined one, those that `a` leads to behind it; together they keep
// the places that they had.
void Contraction::reorder(int32_t a, int32_t b, std::vector<int32_t>& before, std::vector<int32_t>& behind) {
  const auto by_place = [&](int32_t x, int32_t y) { return at(x).place < at(y).place; };
  std::sort(before.begin(), before.end(), by_place);
  std::sort(behind.begin(), behind.end(), by_place);
  std::vector<int32_t> line = before;
  line.push_back(a);
  line.insert(line.end(), behind.begin(), behind.end());
  std::vector<int32_t> places;
  for (const int32_t group : line) places.push_back(at(group).place);
  places.push_back(at(b).place);
  std::sort(places.begin(), places.end());
  for (size_t i = 0; i < line.size(); ++i) at(line[i]).place = places[i + (i > before.size() ? 1 : 0)];
}

bool Contraction::try_join(int32_t a, int32_t b) {
  a = find(a);
  b = find(b);
  HEADRACE_CHECK(a != b && at(a).place < at(b).place, "an edge of a contraction leads back");
  if (budget_ < 0) return false;
  std::vector<int32_t> behind, before;
  if (!collect(a, b, true, behind) || !collect(b, a, false, before)) return false;
  reorder(a, b, before, behind);
  // The smaller list moves into the larger one.
  const auto move_into = [](std::vector<int32_t>& kept, std::vector<int32_t>& moved) {
    if (kept.size() < moved.size()) kept.swap(moved);
    kept.insert(kept.end(), moved.begin(), moved.end());
    std::vector<int32_t>().swap(moved);
  };
  move_into(at(a).out, at(b).out);
  move_into(at(a).in, at(b).in);
  at(b).parent = a;
  return true;
}

}  // namespace headrace::graph
