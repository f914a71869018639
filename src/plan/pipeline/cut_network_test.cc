// Minimum cuts against all sets of nodes.
#include "plan/pipeline/cut_network.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kit/random.h"

namespace headrace::plan {
namespace {

struct TestArc {
  int32_t from, to;
  int64_t capacity, back;
};

bool has(uint32_t set, int32_t node) { return (set >> node & 1) != 0; }

int64_t cut_of(const std::vector<TestArc>& arcs, uint32_t set) {
  int64_t sum = 0;
  for (const TestArc& arc : arcs) {
    if (has(set, arc.from) && !has(set, arc.to)) sum += arc.capacity;
    if (!has(set, arc.from) && has(set, arc.to)) sum += arc.back;
  }
  return sum;
}

TEST(CutNetwork, FindsTheLeastCutForOnePairOfSetsAfterAnother) {
  kit::Random random(1);
  for (int round = 0; round < 100; ++round) {
    const auto nodes = static_cast<int32_t>(random.integer(2, 7));
    CutNetwork network(nodes);
    std::vector<TestArc> arcs;
    for (int64_t i = random.integer(0, 20); i > 0; --i) {
      arcs.push_back({static_cast<int32_t>(random.integer(0, nodes - 1)),
                      static_cast<int32_t>(random.integer(0, nodes - 1)), random.integer(0, 9), random.integer(0, 3)});
      network.add_arc(arcs.back().from, arcs.back().to, arcs.back().capacity, arcs.back().back);
    }
    for (int query = 0; query < 5; ++query) {
      const auto inside = static_cast<int32_t>(random.integer(0, nodes - 1));
      const auto outside = static_cast<int32_t>((inside + random.integer(1, nodes - 1)) % nodes);
      int64_t least = INT64_MAX;
      for (uint32_t set = 0; set < uint32_t{1} << nodes; ++set) {
        if (has(set, inside) && !has(set, outside)) least = std::min(least, cut_of(arcs, set));
      }
      EXPECT_EQ(network.min_cut({&inside, 1}, {&outside, 1}, least + 1), least);
      uint32_t found = 0;
      for (int32_t node = 0; node < nodes; ++node) found |= (network.is_inside(node) ? 1U : 0U) << node;
      EXPECT_TRUE(has(found, inside) && !has(found, outside));
      EXPECT_EQ(cut_of(arcs, found), least);
      EXPECT_EQ(network.min_cut({&inside, 1}, {&outside, 1}, least / 2), least / 2);
    }
  }
}

TEST(CutNetwork, CountsCostsOfNodes) {
  CutNetwork network(3);
  network.add_cost(1, 5);
  network.add_cost_outside(1, 7);
  network.add_cost_outside(2, 4);
  const int32_t inside = 0;
  EXPECT_EQ(network.min_cut({&inside, 1}, {}, 100), 5);
  EXPECT_TRUE(network.is_inside(1));
  const int32_t outside = 2;
  EXPECT_EQ(network.min_cut({&inside, 1}, {&outside, 1}, 100), 9);
  EXPECT_GT(network.steps(), 0);
}

}  // namespace
}  // namespace headrace::plan
