// The slots of edges: hand-made pipelines, and random ones played request by request.
#include "executors/pipeline/slots.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "kit/property.h"

namespace headrace::executors {
namespace {

using Slots = std::vector<int32_t>;
using ::testing::ElementsAre;

struct SlotCase {
  std::vector<int64_t> times;  // one time per stage
  std::vector<StageEdge> edges;
};

// Returns the time that a run of the pipeline takes for each request once it has settled, as a sum over `kRequests`
// requests. Each stage starts on a request when it has finished the one before, its inputs are there, and every edge
// that leaves it has a free slot; slots come back when the consumer has finished.
constexpr int kWarmUp = 200, kRequests = 60;
int64_t played_time(const SlotCase& played, const Slots& slots) {
  const size_t stages = played.times.size();
  std::vector<std::vector<int64_t>> finished(stages);  // by stage: when each request was
  for (int request = 0; request < kWarmUp + kRequests; ++request) {
    for (size_t stage = 0; stage < stages; ++stage) {
      int64_t start = request == 0 ? 0 : finished[stage].back();
      for (size_t i = 0; i < played.edges.size(); ++i) {
        const auto producer = static_cast<size_t>(played.edges[i].producer);
        const auto consumer = static_cast<size_t>(played.edges[i].consumer);
        if (consumer == stage) start = std::max(start, finished[producer].back());
        if (producer == stage && request >= slots[i])
          start = std::max(start, finished[consumer][static_cast<size_t>(request - slots[i])]);
      }
      finished[stage].push_back(start + played.times[stage]);
    }
  }
  return finished.back()[kWarmUp + kRequests - 1] - finished.back()[kWarmUp - 1];
}

SlotCase equal_stages(size_t count, std::vector<StageEdge> edges) {
  return {std::vector<int64_t>(count, 1), std::move(edges)};
}

Slots slots_of(const SlotCase& one) { return slots_of_edges(static_cast<int32_t>(one.times.size()), one.edges); }

// Returns the slots without those for jitter.
Slots needed_slots(const SlotCase& one) {
  Slots slots = slots_of(one);
  for (int32_t& count : slots) count -= count > 2 ? kJitterSlots : 0;
  return slots;
}

TEST(Slots, AChainHasTwoEverywhere) {
  EXPECT_THAT(slots_of_edges(4, std::vector<StageEdge>{{0, 1}, {1, 2}, {2, 3}}), ElementsAre(2, 2, 2));
  EXPECT_THAT(slots_of_edges(1, {}), ElementsAre());
  EXPECT_THAT(slots_of_edges(0, {}), ElementsAre());
}

TEST(Slots, ASkipEdgeHoldsOneForEachStepOfTheLongestPath) {
  EXPECT_THAT(slots_of_edges(3, std::vector<StageEdge>{{0, 1}, {1, 2}, {0, 2}}), ElementsAre(2, 2, 4));
  EXPECT_THAT(slots_of_edges(5, std::vector<StageEdge>{{0, 4}, {0, 1}, {1, 2}, {2, 3}, {3, 4}, {0, 2}}),
              ElementsAre(6, 2, 2, 2, 2, 4));
}

TEST(Slots, AStageThatOnlyALateStageReadsStartsLate) {
  EXPECT_THAT(slots_of_edges(5, std::vector<StageEdge>{{0, 2}, {2, 3}, {3, 4}, {1, 4}}), ElementsAre(2, 2, 2, 2));
}

TEST(Slots, ParallelEdgesHaveEqualNumbers) {
  EXPECT_THAT(slots_of_edges(3, std::vector<StageEdge>{{0, 2}, {0, 1}, {0, 2}, {1, 2}}), ElementsAre(4, 2, 4, 2));
}

// Each pipeline skips one to four stages by an edge; the others are linear.
TEST(Slots, FewerSlotsOnASkipEdgeCostThroughput) {
  for (int32_t reach = 2; reach <= 5; ++reach) {
    SlotCase one = equal_stages(static_cast<size_t>(reach) + 1, {{0, reach}});
    for (int32_t stage = 0; stage < reach; ++stage) one.edges.push_back({stage, stage + 1});
    Slots slots = slots_of(one);
    EXPECT_EQ(slots[0], reach + 1 + kJitterSlots);
    EXPECT_EQ(played_time(one, slots), kRequests);
    EXPECT_EQ(played_time(one, needed_slots(one)), kRequests);
    slots[0] = reach;
    EXPECT_GT(played_time(one, slots), kRequests) << "reach " << reach;
    slots[0] = 1;
    EXPECT_EQ(played_time(one, slots), kRequests * (reach + 1)) << "reach " << reach;
  }
}

// The longest path between the ends of 0 -> 6 has one edge, and so has that of 1 -> 7.
TEST(Slots, TwoStagesThatFeedEachOthersConsumersNeedMoreThanTheirPathsSay) {
  const SlotCase one = equal_stages(8, {{0, 6}, {1, 7}, {0, 2}, {2, 3}, {3, 7}, {1, 4}, {4, 5}, {5, 6}});
  EXPECT_EQ(played_time(one, {2, 2, 2, 2, 2, 2, 2, 2}), kRequests * 2);
  EXPECT_EQ(played_time(one, needed_slots(one)), kRequests);
}

TEST(Slots, AnEdgeThatLeadsBackIsAnInternalError) {
  EXPECT_THROW(slots_of_edges(2, std::vector<StageEdge>{{1, 0}}), InternalError);
  EXPECT_THROW(slots_of_edges(2, std::vector<StageEdge>{{0, 0}}), InternalError);
  EXPECT_THROW(slots_of_edges(2, std::vector<StageEdge>{{0, 2}}), InternalError);
  EXPECT_THROW(slots_of_edges(2, std::vector<StageEdge>{{-1, 1}}), InternalError);
}

// The pipeline has one last stage that every other one leads to, so that the last stage's pace is the pipeline's.
SlotCase random_slot_case(kit::Random& random, int64_t max_stages, size_t max_edges, int64_t max_time) {
  const auto stages = static_cast<int32_t>(random.integer(2, max_stages));
  SlotCase one;
  for (int32_t stage = 0; stage < stages; ++stage) one.times.push_back(random.integer(1, max_time));
  for (int32_t stage = 0; stage + 1 < stages; ++stage)
    one.edges.push_back({stage, static_cast<int32_t>(random.integer(stage + 1, stages - 1))});
  while (one.edges.size() < max_edges) {
    const auto producer = static_cast<int32_t>(random.integer(0, stages - 2));
    one.edges.push_back({producer, static_cast<int32_t>(random.integer(producer + 1, stages - 1))});
  }
  return one;
}

std::string show_slot_case(const SlotCase& one) {
  std::string text = fmt::format("times {}, edges", one.times);
  for (const StageEdge& edge : one.edges) text += fmt::format(" {}-{}", edge.producer, edge.consumer);
  return text + fmt::format(", slots {}", slots_of(one));
}

TEST(Slots, RandomPipelinesRunAtThePaceOfTheirSlowestStage) {
  kit::Property<SlotCase> property;
  property.runs_ci = 300;
  property.runs_full = 5000;
  property.generate = [](kit::Random& random) { return random_slot_case(random, 12, 20, random.chance(0.5F) ? 1 : 9); };
  property.show = show_slot_case;
  property.check = [](const SlotCase& one) -> std::optional<std::string> {
    const int64_t slowest = *std::max_element(one.times.begin(), one.times.end());
    const int64_t time = played_time(one, needed_slots(one));
    if (time > slowest * kRequests) return fmt::format("{} requests take {}", int{kRequests}, time);
    return std::nullopt;
  };
  EXPECT_TRUE(kit::holds(property));
}

// Returns whether some numbers of slots, each at least 1, with the given sum keep the throughput of equal stages.
bool is_enough(const SlotCase& one, Slots& slots, size_t edge, int32_t sum) {
  if (edge + 1 == slots.size()) {
    slots[edge] = sum;
    return played_time(one, slots) <= kRequests;
  }
  const auto others = static_cast<int32_t>(slots.size() - edge - 1);
  for (slots[edge] = 1; slots[edge] + others <= sum; ++slots[edge]) {
    if (is_enough(one, slots, edge + 1, sum - slots[edge])) return true;
  }
  return false;
}

TEST(Slots, NoSmallerSumOfSlotsKeepsTheThroughputOfEqualStages) {
  kit::Property<SlotCase> property;
  property.seed = 2;
  property.runs_ci = 15;
  property.runs_full = 300;
  property.generate = [](kit::Random& random) { return random_slot_case(random, 5, 6, 1); };
  property.show = show_slot_case;
  property.check = [](const SlotCase& one) -> std::optional<std::string> {
    Slots slots = needed_slots(one);
    const int32_t sum = std::accumulate(slots.begin(), slots.end(), 0);
    if (is_enough(one, slots, 0, sum - 1)) return fmt::format("{} are enough", slots);
    return std::nullopt;
  };
  EXPECT_TRUE(kit::holds(property));
}

// On a chain only the neighbours of a batch need its slots; beside a batch every edge does.
TEST(Slots, EdgesAtABatchAndBesideOneHaveItsSlots) {
  const std::vector<StageEdge> chain{{0, 1}, {1, 2}, {2, 3}};
  EXPECT_EQ(batches_of_edges(std::vector<int32_t>{1, 1, 8, 1}, chain), (std::vector<int32_t>{1, 8, 8}));
  EXPECT_EQ(batches_of_edges(std::vector<int32_t>{1, 1, 1, 1}, chain), (std::vector<int32_t>{1, 1, 1}));
  const std::vector<StageEdge> diamond{{0, 1}, {0, 2}, {1, 3}, {2, 3}, {3, 4}};
  EXPECT_EQ(batches_of_edges(std::vector<int32_t>{1, 4, 1, 1, 1}, diamond), (std::vector<int32_t>{4, 4, 4, 4, 1}));
  const std::vector<StageEdge> twice{{0, 1}, {0, 1}, {1, 2}};
  EXPECT_EQ(batches_of_edges(std::vector<int32_t>{1, 1, 4}, twice), (std::vector<int32_t>{1, 1, 4}));
}

}  // namespace
}  // namespace headrace::executors
