// The search for plans: against all plans of small programs, and its steps where a program is too large for that.
#include "partition/placement/plan_search.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "partition/placement/region_moves.h"
#include "partition/placement/tests/cost_testing.h"

namespace headrace::partition {
namespace {

// Step 3 alone, and its rounds alone.
constexpr SearchLimits kNoSets{.small_plans = 0, .operations = 0};
constexpr SearchLimits kRoundsAlone{.small_plans = 0, .operations = 0, .moved_nodes = 0, .least_moves = 0};

// Costs are in picoseconds.
std::unique_ptr<CostProblem> problem_of(const RandomPlan& plan) {
  const Backends backends = backends_of_plan(plan);
  auto problem =
      std::make_unique<CostProblem>(find_instances(program_of(plan.body), backends), OpCosts(backends, {kMachine}));
  problem->set_unit(1e12);
  return problem;
}

FoundPlan plan_by(const RandomPlan& plan, const SearchLimits& limits) {
  const auto problem = problem_of(plan);
  const FoundPlan found = find_plan(*problem, INT64_MAX, limits);
  EXPECT_EQ(found.cost, problem->cost_of(found.labels));
  return found;
}

// Sums of picoseconds, each rounded.
constexpr int64_t kRounding = 100;

// Counts plans that are the best ones among those of the steps without sets.
struct Counted {
  int exact = 0, runs = 0;
  // Whether all are but for this percentage, or for one where the runs are few.
  bool all_but(int percentage) const { return (runs - exact) * 100 <= std::max(100, runs * percentage); }
};

std::optional<std::string> fault_without_sets(const RandomPlan& plan, Counted& counted) {
  const auto least = static_cast<int64_t>(least_seconds(program_of(plan.body), backends_of_plan(plan)) * 1e12);
  const auto problem = problem_of(plan);
  const int64_t first = problem->cost_of(problem->solve().labels);
  const FoundPlan found = plan_by(plan, kNoSets);
  ++counted.runs;
  counted.exact += found.cost <= least + kRounding ? 1 : 0;
  if (found.cost < least - kRounding || found.cost > first)
    return fmt::format("cost {}, least {}, that of the first labels {}", found.cost, least, first);
  if (found.lower_bound > least + kRounding) return fmt::format("bound {}, least {}", found.lower_bound, least);
  return std::nullopt;
}

TEST(PlanSearch, StepsWithoutSetsAreBoundedByTheLeastCost) {
  kit::Property<RandomPlan> property;
  property.runs_ci = 60;
  property.runs_full = 1000;
  property.generate = [](kit::Random& random) { return random_plan(random); };
  property.show = show_plan;
  Counted counted;
  property.check = [&](const RandomPlan& plan) { return fault_without_sets(plan, counted); };
  EXPECT_TRUE(kit::holds(property));
  EXPECT_TRUE(counted.all_but(5)) << counted.exact << " of " << counted.runs;
}

TEST(PlanSearch, StepsWithoutSetsAreBoundedByTheLeastCostWithPatterns) {
  kit::Property<RandomPlan> property;
  property.runs_ci = 60;
  property.runs_full = 1000;
  property.generate = [](kit::Random& random) {
    return with_random_patterns(random_plan(random, kit::by_size(5, 7)), random);
  };
  property.show = show_plan;
  Counted counted;
  property.check = [&](const RandomPlan& plan) { return fault_without_sets(plan, counted); };
  EXPECT_TRUE(kit::holds(property));
  EXPECT_TRUE(counted.all_but(10)) << counted.exact << " of " << counted.runs;
}

// Looks for the first program in which they do; in all before it they cost as much.
TEST(PlanSearch, MovesCostLessThanRoundsInSomePrograms) {
  kit::Random random(16);
  bool is_cheaper = false;
  for (int i = 0; i < 120 && !is_cheaper; ++i) {
    const RandomPlan plan = random_plan(random, 150);
    const FoundPlan rounds = plan_by(plan, kRoundsAlone), moves = plan_by(plan, kNoSets);
    EXPECT_LE(moves.cost, rounds.cost) << show_plan(plan);
    is_cheaper = moves.cost < rounds.cost;
  }
  EXPECT_TRUE(is_cheaper);
}

// Each instance is tried by itself. Natively nothing has a border, so that no region is near one.
TEST(PlanSearch, MovesTakeAndLeaveInstances) {
  const IRModule program = read_program(
      "def @main(%x: Tensor[(512, 512), float32], %y: Tensor[(512, 512), float32]) {\n"
      "  (tanh(exp(%x)), exp(%y), sqrt(%y))\n}");
  const Backends backends{priced("own", {{"own.both", 1e-6}, {"own.exp", 9e-6}, {"own.root", 1}},
                                 "{ own.both: tanh(exp(_)), own.exp: exp(_), own.root: sqrt(_) }")};
  CostProblem problem(find_instances(program, backends), OpCosts(backends, {kMachine}));
  problem.set_unit(1e12);
  std::vector<int32_t> labels = problem.first_of({kNativeLabel});
  const int64_t native = problem.cost_of(labels);
  const int64_t moved = move_regions(problem, labels, 100);
  EXPECT_EQ(moved, problem.cost_of(labels));
  EXPECT_LT(moved, native);
  EXPECT_EQ(moved, find_plan(problem, INT64_MAX).cost);
  ASSERT_EQ(problem.pieces().taken(labels).size(), 2u);
  std::vector<int32_t> all = problem.first_of({1}, problem.instances().of_backend[0]);
  ASSERT_EQ(problem.pieces().taken(all).size(), 3u);
  EXPECT_EQ(move_regions(problem, all, 100), moved) << "the costly one is left";
}

// Many programs of 60 calls have more than 2^16 plans.
TEST(PlanSearch, SetsProveMostPlansOfLargerPrograms) {
  kit::Random random(7);
  int proven = 0, tried = 0;
  for (size_t i = 0; i < 30; ++i) {
    const RandomPlan plan = random_plan(random, 60);
    if (!kit::is_chosen(i)) continue;
    ++tried;
    const FoundPlan moves = plan_by(plan, kNoSets), all = plan_by(plan, {});
    EXPECT_LE(moves.lower_bound, all.lower_bound) << show_plan(plan);
    EXPECT_LE(all.lower_bound, std::min(all.cost, moves.cost)) << show_plan(plan);
    proven += all.cost == all.lower_bound ? 1 : 0;
  }
  EXPECT_GE(proven * 3, tried * 2);
}

TEST(PlanSearch, TheResultDependsOnTheProblemAlone) {
  kit::Random random(3);
  for (int i = 0; i < 5; ++i) {
    const RandomPlan plan = random_plan(random, 40);
    EXPECT_EQ(plan_by(plan, {}).labels, plan_by(plan, {}).labels);
  }
}

// A plan that is there already ends the search: nothing below it is left, which is the bound.
TEST(PlanSearch, AKnownPlanBoundsTheSearch) {
  kit::Random random(1);
  for (int i = 0; i < 20; ++i) {
    const RandomPlan plan = random_plan(random, 10);
    const FoundPlan best = plan_by(plan, {});
    EXPECT_EQ(best.lower_bound, best.cost);
    EXPECT_EQ(find_plan(*problem_of(plan), best.cost).lower_bound, best.cost);
    EXPECT_LE(find_plan(*problem_of(plan), best.cost - 1).lower_bound, best.cost);
  }
}

// Each call of such a backend is a region, whose borders the label problem has: no set of labels is divided.
TEST(PlanSearch, BordersOfLoneCallsAreInTheLabelProblem) {
  std::string body = "%0 = exp(%x);\n";
  for (int i = 1; i < 40; ++i)
    body += i % 3 == 0 ? fmt::format("%{} = add(%{}, %{});\n", i, i - 1, i - 3)
                       : fmt::format("%{} = exp(%{});\n", i, i - 1);
  const IRModule program = program_of(body + "%39");
  const double native = cost::native_seconds(*passes::main_of(program).body.as<relay::CallNode>(), kMachine, 1);
  for (const double saved : {0.5, 1.5, 2.5}) {
    const double price = std::max(native - saved * kBorderSeconds, 0.0);
    const Backends backends{std::make_shared<Priced>(
        "lone", std::map<std::string, double>{{"exp", price}, {"add", price}}, Sharing{}, true)};
    CostProblem problem(program, OpCosts(backends, {kMachine}));
    problem.set_unit(1e12);
    const graph::Labelling labels = problem.solve();
    EXPECT_EQ(labels.cost, problem.cost_of(labels.labels)) << saved;
  }
}

}  // namespace
}  // namespace headrace::partition
