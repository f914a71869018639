// Splits of graphs shaped like published networks: exact, or close to their bound.
#include <gtest/gtest.h>

#include "kit/options.h"
#include "kit/split_networks.h"
#include "plan/pipeline/split.h"

namespace headrace::plan {
namespace {

constexpr int64_t kFastLink = 150'000'000'000;

// Returns whether a sanitizer runs the tests, which then split smaller networks, by the same steps.
bool is_small() { return kit::options().size == kit::TestSize::kFew; }

std::vector<kit::SplitMachine> machines() {
  std::vector<kit::SplitMachine> made;
  for (const int32_t gpus : {2, 4, 8}) {
    for (const bool with_cpu : {false, true}) {
      for (const bool overlaps : {false, true})
        made.push_back({.gpus = gpus, .with_cpu = with_cpu, .overlaps = overlaps});
    }
  }
  return made;
}

TEST(SplitNetworks, GraphsWithFewDownsetsAreSolved) {
  for (const kit::SplitMachine& machine : machines()) {
    for (const SplitProblem& problem :
         {kit::inception(machine, true), kit::bert24(machine, false), kit::residual_stack(machine, 3000)}) {
      const SplitPlan plan = split_pipeline(problem);
      EXPECT_EQ(plan.method, SplitMethod::downsets);
      EXPECT_TRUE(plan.is_optimal()) << format_plan(problem, plan);
    }
  }
}

// Where transfers overlap and links are fast, compute decides, and the bound knows all of it.
TEST(SplitNetworks, LargeGraphsComeWithinOnePercent) {
  for (const int32_t gpus : {2, 4}) {
    for (const bool with_cpu : {false, true}) {
      const kit::SplitMachine machine{
          .gpus = gpus, .with_cpu = with_cpu, .overlaps = true, .bytes_per_second = kFastLink};
      for (const SplitProblem& problem :
           {kit::resnet50_training(machine), kit::bert24(machine, true), kit::gnmt(machine, 90)}) {
        const SplitPlan plan = split_pipeline(problem);
        EXPECT_EQ(plan.method, SplitMethod::orders);
        EXPECT_LE(plan.gap(), 0.01) << format_plan(problem, plan);
      }
    }
  }
}

// Slow links: activations that the backward pass reads can hardly be sent, and the bound must know it.
TEST(SplitNetworks, TrainingOverSlowLinksComesWithinOnePercent) {
  const SplitProblem problem = kit::resnet50_training({.gpus = 4});
  const SplitPlan plan = split_pipeline(problem);
  EXPECT_EQ(plan.method, SplitMethod::orders);
  EXPECT_LE(plan.gap(), 0.01) << format_plan(problem, plan);
}

// Where transfers overlap, a stage with all units has none, so that the bound must look at the stages of single units.
TEST(SplitNetworks, TrainingWithOverlappedTransfersComesWithinOnePercent) {
  const SplitProblem problem = kit::resnet50_training({.gpus = is_small() ? 2 : 4, .overlaps = true});
  const SplitPlan plan = split_pipeline(problem);
  EXPECT_EQ(plan.method, SplitMethod::orders);
  EXPECT_LE(plan.gap(), 0.01) << format_plan(problem, plan);
}

// The stages that read the context of the attention, the longest tensor, are not known before they are asked about.
TEST(SplitNetworks, RecurrentCellsOverSlowLinksComeWithinOnePercent) {
  if (is_small()) GTEST_SKIP() << "this search takes a minute with a sanitizer, and the test above takes its steps";
  const SplitProblem problem = kit::gnmt({.gpus = 4}, 50);
  const SplitPlan plan = split_pipeline(problem);
  EXPECT_EQ(plan.method, SplitMethod::orders);
  EXPECT_LE(plan.gap(), 0.01) << format_plan(problem, plan);
}

// Each operator by itself, Inception has 12,901 downsets: too many by default, and few enough to know the optimum.
TEST(SplitNetworks, OrdersFindTheOptimumOfInception) {
  for (const bool overlaps : {false, true}) {
    const SplitProblem problem = kit::inception({.gpus = 2, .overlaps = overlaps}, false);
    const SplitPlan best = split_pipeline(problem, {.max_downsets = 20'000});
    EXPECT_TRUE(best.is_optimal());
    EXPECT_EQ(best.num_downsets, 12'901);
    const SplitPlan plan = split_pipeline(problem);
    EXPECT_EQ(plan.method, SplitMethod::orders);
    EXPECT_EQ(plan.period_ns, best.period_ns);
  }
}

TEST(SplitNetworks, LongGraphsAreCutWhereFewBytesAreAlive) {
  const SplitProblem problem = kit::residual_stack({.gpus = 4}, 30'000);
  const SplitPlan plan = split_pipeline(problem);
  EXPECT_EQ(plan.method, SplitMethod::cuts);
  EXPECT_LE(plan.gap(), 0.01);
  // The smallest tensor between blocks has 50,000 bytes.
  EXPECT_EQ(plan.stages.front().transfer_out_ns, 5000 + 50'000 / 12 + 1);
}

}  // namespace
}  // namespace headrace::plan
