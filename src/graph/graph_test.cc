#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "graph/components.h"
#include "graph/number_set.h"
#include "graph/post_dominators.h"
#include "kit/property.h"

namespace headrace::graph {
namespace {

constexpr int32_t kNone = AncestorTree::kNone;

TEST(IndexGraph, KeepsTheOrderOfEdges) {
  const std::vector<Edge> edges{{0, 2, 5}, {1, 2}, {0, 1, 7}, {0, 1, 8}};
  const IndexGraph graph(3, edges);
  ASSERT_EQ(graph.out(0).size(), 3u);
  EXPECT_EQ(graph.out(0)[0].weight, 5);
  EXPECT_EQ(graph.out(0)[1].weight, 7);
  EXPECT_EQ(graph.out(0)[2].weight, 8);
  EXPECT_TRUE(graph.out(2).empty());
  EXPECT_TRUE(graph.is_topological());
}

TEST(IndexGraph, EdgesMustBeWithin) {
  EXPECT_THROW(IndexGraph(2, std::vector<Edge>{{0, 2}}), InternalError);
  EXPECT_THROW(post_dominators(IndexGraph(2, std::vector<Edge>{{1, 0}}), {false, false}), InternalError);
}

TEST(NumberSet, GivesTheLowestNumber) {
  kit::Random random(1);
  for (const int32_t count : {0, 1, 63, 64, 65, 4096, 4097, 300'000}) {
    NumberSet numbers(count);
    std::set<int32_t> expected;
    for (int step = 0; count > 0 && step < 2000; ++step) {
      const auto number = static_cast<int32_t>(random.integer(0, count - 1));
      numbers.insert(number);
      expected.insert(number);
      if (random.chance(0.4f)) continue;
      ASSERT_EQ(numbers.take_lowest(), *expected.begin()) << count;
      expected.erase(expected.begin());
      ASSERT_EQ(numbers.empty(), expected.empty()) << count;
    }
    for (const int32_t number : expected) ASSERT_EQ(numbers.take_lowest(), number) << count;
    EXPECT_TRUE(numbers.empty());
  }
}

TEST(StrongComponents, CalleesComeFirst) {
  // 0 -> 1 <-> 2 -> 3 -> 3, 4 alone
  const IndexGraph graph(5, std::vector<Edge>{{0, 1}, {1, 2}, {2, 1}, {2, 3}, {3, 3}});
  EXPECT_EQ(strong_components(graph), (std::vector<std::vector<int32_t>>{{3}, {1, 2}, {0}, {4}}));
}

TEST(StrongComponents, LongCyclesNeedNoStack) {
  constexpr int32_t kNodes = 200'000;
  std::vector<Edge> edges;
  for (int32_t i = 0; i < kNodes; ++i) edges.push_back({i, (i + 1) % kNodes});
  const auto components = strong_components(IndexGraph(kNodes, edges));
  ASSERT_EQ(components.size(), 1u);
  EXPECT_EQ(components[0].size(), static_cast<size_t>(kNodes));
}

TEST(PostDominators, Diamond) {
  // 0 -> {1, 2} -> 3 -> 4
  const IndexGraph graph(5, std::vector<Edge>{{0, 1, 1}, {0, 2, 4}, {1, 3, 2}, {2, 3, 0}, {3, 4, 9}});
  const AncestorTree tree = post_dominators(graph, std::vector<bool>(5, false));
  EXPECT_EQ(tree.parent(0), 3);
  EXPECT_EQ(tree.weight(0), 4);
  EXPECT_EQ(tree.parent(1), 3);
  EXPECT_EQ(tree.parent(3), 4);
  EXPECT_EQ(tree.parent(4), kNone);
}

TEST(PostDominators, AnExitInBetweenEndsTheWays) {
  const IndexGraph graph(4, std::vector<Edge>{{0, 1}, {0, 2}, {1, 3}, {2, 3}});
  const AncestorTree tree = post_dominators(graph, {false, true, false, false});
  EXPECT_EQ(tree.parent(0), kNone);
  EXPECT_EQ(tree.parent(1), kNone);
  EXPECT_EQ(tree.parent(2), 3);
}

// The definition, by search: p post-dominates n when no end is reached from n without p.
struct Oracle {
  const IndexGraph& graph;
  const std::vector<bool>& is_exit;

  std::vector<bool> reach(int32_t from, int32_t without) const {
    std::vector<bool> seen(static_cast<size_t>(graph.num_nodes()), false);
    if (from != without) seen[static_cast<size_t>(from)] = true;
    for (int32_t n = from; n < graph.num_nodes(); ++n) {
      if (!seen[static_cast<size_t>(n)]) continue;
      for (const Edge& e : graph.out(n)) {
        if (e.to != without) seen[static_cast<size_t>(e.to)] = true;
      }
    }
    return seen;
  }
  bool dominates(int32_t p, int32_t n) const {
    const auto seen = reach(n, p);
    for (int32_t m = 0; m < graph.num_nodes(); ++m) {
      const bool is_end = graph.out(m).empty() || is_exit[static_cast<size_t>(m)];
      if (is_end && seen[static_cast<size_t>(m)]) return false;
    }
    return true;
  }
  int32_t parent(int32_t n) const {
    for (int32_t p = n + 1; p < graph.num_nodes(); ++p) {
      if (dominates(p, n)) return p;
    }
    return kNone;
  }
  int32_t weight(int32_t n, int32_t p) const {
    int32_t largest = -1;
    const auto seen = reach(n, kNone);
    for (int32_t m = n; m < p; ++m) {
      if (!seen[static_cast<size_t>(m)]) continue;
      for (const Edge& e : graph.out(m)) {
        if (reach(e.to, kNone)[static_cast<size_t>(p)]) largest = std::max(largest, e.weight);
      }
    }
    return largest;
  }
};

struct RandomGraph {
  int32_t nodes;
  std::vector<Edge> edges;
  std::vector<bool> is_exit;
};

TEST(PostDominators, AgreeWithTheDefinition) {
  kit::Property<RandomGraph> property;
  property.runs_ci = 400;
  property.runs_full = 10000;
  property.generate = [](kit::Random& random) {
    RandomGraph g;
    g.nodes = static_cast<int32_t>(random.integer(1, 14));
    const int64_t edges = random.integer(0, 2 * g.nodes);
    for (int64_t i = 0; i < edges && g.nodes > 1; ++i) {
      const auto from = static_cast<int32_t>(random.integer(0, g.nodes - 2));
      const auto to = static_cast<int32_t>(random.integer(from + 1, std::min(g.nodes - 1, from + 4)));
      g.edges.push_back({from, to, static_cast<int32_t>(random.integer(0, 8))});
    }
    for (int32_t i = 0; i < g.nodes; ++i) g.is_exit.push_back(random.chance(0.1f));
    return g;
  };
  property.show = [](const RandomGraph& g) {
    std::string text = fmt::format("{} nodes:", g.nodes);
    for (const Edge& e : g.edges) text += fmt::format(" {}->{}({})", e.from, e.to, e.weight);
    for (int32_t i = 0; i < g.nodes; ++i) text += g.is_exit[static_cast<size_t>(i)] ? fmt::format(" exit {}", i) : "";
    return text;
  };
  property.check = [](const RandomGraph& g) -> std::optional<std::string> {
    const IndexGraph graph(g.nodes, g.edges);
    const AncestorTree tree = post_dominators(graph, g.is_exit);
    const Oracle oracle{graph, g.is_exit};
    for (int32_t n = 0; n < g.nodes; ++n) {
      const int32_t parent = oracle.parent(n);
      if (tree.parent(n) != parent) return fmt::format("parent of {}: {}, expected {}", n, tree.parent(n), parent);
      if (parent != kNone && tree.weight(n) != oracle.weight(n, parent))
        return fmt::format("weight of {}: {}, expected {}", n, tree.weight(n), oracle.weight(n, parent));
    }
    return std::nullopt;
  };
  EXPECT_TRUE(kit::holds(property));
}

TEST(AncestorTree, AgreesWithWalkingUp) {
  kit::Random random(7);
  constexpr int32_t kNodes = 300;
  AncestorTree tree(kNodes);
  for (int32_t n = 0; n < kNodes; ++n) {
    const auto parent = n == 0 || random.chance(0.02f) ? kNone : static_cast<int32_t>(random.integer(n / 2, n - 1));
    tree.add(n, parent, static_cast<int32_t>(random.integer(0, 1000)));
  }
  for (int i = 0; i < 5000; ++i) {
    const auto a = static_cast<int32_t>(random.integer(0, kNodes - 1)),
               b = static_cast<int32_t>(random.integer(0, kNodes - 1));
    std::vector<bool> above(kNodes, false);
    for (int32_t n = a; n != kNone; n = tree.parent(n)) above[static_cast<size_t>(n)] = true;
    int32_t common = b, weight = -1;
    while (common != kNone && !above[static_cast<size_t>(common)]) {
      weight = std::max(weight, tree.weight(common));
      common = tree.parent(common);
    }
    ASSERT_EQ(tree.common_ancestor(a, b), common) << a << " " << b;
    if (common == kNone) continue;
    ASSERT_EQ(tree.max_weight_up_to(b, common, -1), weight) << a << " " << b;
  }
}

// Every node of a long chain also leads to its end: the worst case of walking up step by step.
TEST(PostDominators, ManyLongSkipsAreQuick) {
  constexpr int32_t kNodes = 200'000;
  std::vector<Edge> edges;
  for (int32_t n = 0; n + 1 < kNodes; ++n) {
    edges.push_back({n, n + 1, 1});
    if (n + 2 < kNodes) edges.push_back({n, kNodes - 1, 3});
  }
  const AncestorTree tree = post_dominators(IndexGraph(kNodes, edges), std::vector<bool>(kNodes, false));
  EXPECT_EQ(tree.parent(0), kNodes - 1);
  EXPECT_EQ(tree.weight(0), 3);
}

}  // namespace
}  // namespace headrace::graph
