// Regions of graphs: hand-made graphs, and random ones against an exhaustive search and a plain greedy one.
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "base/error.h"
#include "graph/contraction.h"
#include "graph/exact_regions.h"
#include "graph/merge_regions.h"
#include "graph/quotient.h"
#include "kit/property.h"

namespace headrace::graph {
namespace {

using Groups = std::vector<int32_t>;

TEST(Quotient, AnOrderProvesIt) {
  // {0, 3} -> {1} would close a cycle with 1 -> 3; {0, 1} {2} {3} has none.
  const IndexGraph graph(4, std::vector<Edge>{{0, 1}, {0, 2}, {1, 3}, {2, 3}});
  EXPECT_EQ(order_quotient(graph, Groups{0, 0, 1, 2}, 3).order, (Groups{0, 1, 2}));
  const QuotientOrder cyclic = order_quotient(graph, Groups{0, 1, 2, 0}, 3);
  EXPECT_EQ(cyclic.cycle.size(), 2u);
  EXPECT_EQ(cyclic.cycle[0], 0);
  EXPECT_THROW(check_acyclic_quotient(graph, Groups{0, 1, 2, 0}, 3), InternalError);
  EXPECT_THROW(order_quotient(graph, Groups{0, 1, 2, 3}, 3), InternalError);
  EXPECT_THROW(order_quotient(graph, Groups{0, 1}, 3), InternalError);
}

TEST(Contraction, RefusesNodesThatAPathGoesAround) {
  const IndexGraph graph(4, std::vector<Edge>{{0, 1}, {0, 2}, {1, 3}, {2, 3}});
  Contraction contraction(graph, Groups{0, 1, 2, 3}, 4);
  EXPECT_TRUE(contraction.try_join(0, 2));
  EXPECT_FALSE(contraction.try_join(0, 3));
  EXPECT_TRUE(contraction.try_join(0, 1));
  EXPECT_TRUE(contraction.try_join(0, 3));
  for (int32_t i = 0; i < 4; ++i) EXPECT_EQ(contraction.find(i), contraction.find(0));
}

// The diamond of Relay's test: 0 feeds 1 (same colour) and 2 (another), and both feed 3.
TEST(MergeRegions, ADiamondStaysTwo) {
  const IndexGraph graph(4, std::vector<Edge>{{0, 1}, {0, 2}, {1, 3}, {2, 3}});
  EXPECT_EQ(merge_regions(graph, Groups{0, 0, kNoColour, 0}), (Groups{0, 0, 1, 2}));
  EXPECT_EQ(region_lower_bound(graph, Groups{0, 0, kNoColour, 0}), 2);
  EXPECT_EQ(merge_regions(graph, Groups{0, 0, 0, 0}), (Groups{0, 0, 0, 0}));
}

TEST(MergeRegions, SiblingsStayApart) {
  const IndexGraph graph(3, std::vector<Edge>{{0, 1}, {0, 2}});
  EXPECT_EQ(merge_regions(graph, Groups{kNoColour, 0, 0}), (Groups{0, 1, 2}));
}

TEST(MergeRegions, TheGraphMustBeTopological) {
  EXPECT_THROW(merge_regions(IndexGraph(2, std::vector<Edge>{{1, 0}}), Groups{0, 0}), InternalError);
}

// 1 can be with 0 or with 3; with 3 it brings 4 along. A greedy search from the front takes 0.
TEST(MergeRegions, ALaterChoiceMayBeBetter) {
  // 0 -> 1, 0 -> x2 -> 3, 1 -> 3, 1 -> 4, x2 -> x5 -> 4
  const IndexGraph graph(6, std::vector<Edge>{{0, 1}, {0, 2}, {1, 3}, {2, 3}, {2, 4}, {1, 5}, {4, 5}});
  const Groups colour{0, 0, kNoColour, 0, kNoColour, 0};
  EXPECT_EQ(merge_regions(graph, colour), (Groups{0, 1, 2, 1, 3, 1}));
}

TEST(MergeRegions, LargeGraphsTakeLittleTime) {
  constexpr int32_t kNodes = 200'000;
  std::vector<Edge> edges;
  Groups colour;
  for (int32_t i = 0; i < kNodes; ++i) {
    colour.push_back(i % 7 == 3 ? kNoColour : 0);
    if (i > 0) edges.push_back({i - 1, i});
    if (i > 9) edges.push_back({i - 10, i});
  }
  const IndexGraph graph(kNodes, edges);
  const Groups group = merge_regions(graph, colour);
  const int32_t count = count_regions(group, colour);
  EXPECT_GE(count, region_lower_bound(graph, colour));
  EXPECT_LE(count, kNodes / 7 + 1);
  // One hub whose many users all come back together.
  edges.clear();
  for (int32_t i = 1; i + 1 < kNodes; ++i) {
    edges.push_back({0, i});
    edges.push_back({i, kNodes - 1});
  }
  const Groups all(static_cast<size_t>(kNodes), 0);
  EXPECT_EQ(count_regions(merge_regions(IndexGraph(kNodes, edges), all), all), 1);
}

struct Coloured {
  int32_t nodes = 0;
  std::vector<Edge> edges;
  Groups colour;
  IndexGraph graph() const { return IndexGraph(nodes, edges); }
};

Coloured random_graph(kit::Random& random, int32_t most) {
  Coloured made;
  made.nodes = static_cast<int32_t>(random.integer(1, most));
  const int64_t colours = random.integer(1, 2), holes = random.integer(1, 5), reach = random.integer(2, 8);
  for (int32_t i = 0; i < made.nodes; ++i) {
    made.colour.push_back(random.integer(0, holes) == 0 ? kNoColour
                                                        : static_cast<int32_t>(random.integer(0, colours - 1)));
    std::set<int32_t> inputs;
    for (int64_t k = random.integer(0, 3); k > 0 && i > 0; --k)
      inputs.insert(static_cast<int32_t>(random.integer(std::max<int64_t>(0, i - reach), i - 1)));
    for (const int32_t from : inputs) made.edges.push_back({from, i});
  }
  return made;
}

std::string shown(const Coloured& g) {
  std::string text = fmt::format("colours {}\nedges", fmt::join(g.colour, " "));
  for (const Edge& edge : g.edges) text += fmt::format(" {}-{}", edge.from, edge.to);
  return text;
}

// Smaller graphs: without the last node.
std::vector<Coloured> without_last(const Coloured& g) {
  if (g.nodes <= 1) return {};
  Coloured smaller{g.nodes - 1, {}, g.colour};
  smaller.colour.pop_back();
  for (const Edge& edge : g.edges) {
    if (edge.to != g.nodes - 1) smaller.edges.push_back(edge);
  }
  return {smaller};
}

// Whether the quotient has a cycle, by reachability between all groups.
bool has_cycle(const Coloured& g, const Groups& group) {
  const auto n = static_cast<size_t>(g.nodes);
  std::vector<std::vector<bool>> reaches(n, std::vector<bool>(n, false));
  for (const Edge& edge : g.edges) {
    const int32_t from = group[static_cast<size_t>(edge.from)], to = group[static_cast<size_t>(edge.to)];
    if (from != to) reaches[static_cast<size_t>(from)][static_cast<size_t>(to)] = true;
  }
  for (size_t k = 0; k < n; ++k) {
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; reaches[i][k] && j < n; ++j) {
        if (reaches[k][j]) reaches[i][j] = true;
      }
    }
  }
  for (size_t i = 0; i < n; ++i) {
    if (reaches[i][i]) return true;
  }
  return false;
}

// Whether each group is of one colour and connected, and nodes without a colour are alone.
bool is_connected(const Coloured& g, const Groups& group) {
  Groups link(static_cast<size_t>(g.nodes));
  std::iota(link.begin(), link.end(), 0);
  const auto root = [&](int32_t i) {
    while (link[static_cast<size_t>(i)] != i) i = link[static_cast<size_t>(i)];
    return i;
  };
  for (const Edge& edge : g.edges) {
    const auto from = static_cast<size_t>(edge.from), to = static_cast<size_t>(edge.to);
    if (group[from] == group[to]) link[static_cast<size_t>(root(edge.from))] = root(edge.to);
  }
  for (int32_t i = 0; i < g.nodes; ++i) {
    for (int32_t j = 0; j < i; ++j) {
      const auto a = static_cast<size_t>(i), b = static_cast<size_t>(j);
      if (group[a] != group[b]) continue;
      if (g.colour[a] == kNoColour || g.colour[a] != g.colour[b] || root(i) != root(j)) return false;
    }
  }
  return true;
}

// Tries every partition.
class Exhaustive {
 public:
  explicit Exhaustive(const Coloured& g) : g_(g), group_(static_cast<size_t>(g.nodes), 0) { assign(0, 0, 0); }
  int32_t best = 1 << 20;

 private:
  void assign(int32_t node, int32_t used, int32_t coloured) {
    if (coloured >= best) return;
    if (node == g_.nodes) {
      if (is_connected(g_, group_) && !has_cycle(g_, group_)) best = coloured;
      return;
    }
    const auto at = static_cast<size_t>(node);
    const bool is_alone = g_.colour[at] == kNoColour;
    for (int32_t other = 0; !is_alone && other < used; ++other) {
      const auto first = std::find(group_.begin(), group_.begin() + node, other) - group_.begin();
      if (g_.colour[static_cast<size_t>(first)] != g_.colour[at]) continue;
      group_[at] = other;
      assign(node + 1, used, coloured);
    }
    group_[at] = used;
    assign(node + 1, used + 1, coloured + (is_alone ? 0 : 1));
  }

  const Coloured& g_;
  Groups group_;
};

// Joins along one edge after another, operands first, as Relay's pass does.
int32_t greedy_count(const Coloured& g) {
  Groups group(static_cast<size_t>(g.nodes));
  std::iota(group.begin(), group.end(), 0);
  for (const Edge& edge : g.edges) {
    const auto from = static_cast<size_t>(edge.from), to = static_cast<size_t>(edge.to);
    if (g.colour[from] == kNoColour || g.colour[from] != g.colour[to] || group[from] == group[to]) continue;
    Groups joined = group;
    for (int32_t& at : joined) at = at == group[to] ? group[from] : at;
    if (!has_cycle(g, joined)) group = joined;
  }
  return count_regions(group, g.colour);
}

TEST(RandomRegions, BoundsAndProof) {
  kit::Property<Coloured> property;
  property.runs_ci = 300;
  property.runs_full = 20000;
  property.generate = [](kit::Random& random) { return random_graph(random, 40); };
  property.shrink = without_last;
  property.show = shown;
  property.check = [](const Coloured& g) -> std::optional<std::string> {
    const IndexGraph graph = g.graph();
    const Groups group = merge_regions(graph, g.colour);
    if (!is_connected(g, group)) return "a group is not connected";
    if (has_cycle(g, group)) return "the quotient has a cycle";
    const int32_t count = count_regions(group, g.colour), least = region_lower_bound(graph, g.colour);
    if (count < least) return fmt::format("{} regions, below the bound {}", count, least);
    if (const int32_t greedy = greedy_count(g); count > greedy)
      return fmt::format("{} regions, greedy {}", count, greedy);
    return std::nullopt;
  };
  EXPECT_TRUE(kit::holds(property));
}

TEST(RandomRegions, SmallGraphsHaveTheFewest) {
  kit::Property<Coloured> property;
  property.runs_ci = 200;
  property.runs_full = 20000;
  property.generate = [](kit::Random& random) {
    return random_graph(random, random.integer(0, 9) == 0 ? RegionSearch::kExactNodes : 8);
  };
  property.shrink = without_last;
  property.show = shown;
  property.check = [](const Coloured& g) -> std::optional<std::string> {
    const IndexGraph graph = g.graph();
    const int32_t want = Exhaustive(g).best, got = count_regions(merge_regions(graph, g.colour), g.colour);
    if (want != got) return fmt::format("{} regions, and {} are possible", got, want);
    const Groups exact = fewest_regions(graph, g.colour);
    if (count_regions(exact, g.colour) != want || !is_connected(g, exact) || has_cycle(g, exact))
      return "the exact search is wrong";
    if (region_lower_bound(graph, g.colour) > want) return "the bound is too high";
    return std::nullopt;
  };
  EXPECT_TRUE(kit::holds(property));
}

}  // namespace
}  // namespace headrace::graph
