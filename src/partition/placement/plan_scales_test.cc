// Costs that are scaled to whole plans: factors, and the plans of least cost, by numbers worked out by hand; and random
// plans against every way to place their ops.
#include "partition/placement/plan_scales.h"

#include <gmock/gmock.h>

#include "partition/place.h"
#include "partition/placement/tests/cost_testing.h"

namespace headrace::partition {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Ne;

constexpr const char* kModel = "1f";

// Seconds by the name of an op and the place, and of whole plans by their names.
struct MeasuredTimes {
  std::map<std::pair<std::string, std::string>, double> calls = {};
  std::map<std::string, double> plans = {};
};

OpCosts measured_costs(const IRModule& program, const Backends& backends, const MeasuredTimes& times,
                       const std::string& model = kModel, bool is_trial = false) {
  auto table = std::make_shared<CostTable>();
  const auto version_of = [](const std::string& places) {  // the backends of these tests have no version
    return places == kNative ? HEADRACE_VERSION
                             : std::string(static_cast<size_t>(std::count(places.begin(), places.end(), ',')), ',');
  };
  for_each_placeable(program, [&](const relay::CallNode& call) {
    for (const auto& [key, seconds] : times.calls) {
      if (key.first == call.as_op()->name)
        table->costs[{cost_key(call), key.second}] = {version_of(key.second), seconds};
    }
  });
  for (const auto& [name, seconds] : times.plans) table->plans[{kModel, name}] = {version_of(name), seconds};
  return {backends, {.machine = kMachine, .measured = table, .model = model, .is_trial = is_trial}};
}

IRModule dense_of_exp() { return program_of("nn.dense(exp(%x), %y)"); }
Backends one_chip() { return {priced("chip", {{"exp", 1}, {"nn.dense", 1}})}; }

// Native code: 2 ms. On the chip alone 2.052 ms: two values enter its region, for 1 us each.
constexpr double kChipAlone = 2.052e-3;
MeasuredTimes times_of_calls() {
  return {.calls = {{{"exp", kNative}, 1e-3},
                    {{"nn.dense", kNative}, 1e-3},
                    {{"exp", "chip"}, 1e-3},
                    {{"nn.dense", "chip"}, 1.05e-3}}};
}

double cost_of(const PlanCost& plan, const std::string& name) {
  for (const LabelSeconds& other : plan.others) {
    if (other.label == name) return other.seconds;
  }
  return -1;
}

// Returns the parts of the plan in which a backend takes all calls that it can, or of native code for null.
SecondsByPlace parts_alone(const IRModule& program, const Backends& backends, const Backend* backend) {
  Labels labels;
  for_each_placeable(program, [&](const relay::CallNode& call) {
    if (backend != nullptr && backend->supports(call).ok()) labels.emplace(&call, std::string(backend->name()));
  });
  return counted_parts(partition_by_labels(program, labels, {.one_call = one_call_backends(backends)}).module,
                       backends);
}

// A backend whose calls add up to more than native code takes the network, since its whole plan is faster.
TEST(PlanScales, TheFasterWholePlanWins) {
  const IRModule program = dense_of_exp();
  MeasuredTimes times = times_of_calls();
  const PlacedByCost by_calls = placed_by_cost(program, measured_costs(program, one_chip(), times));
  EXPECT_THAT(backends_of(by_calls), ElementsAre("exp native", "nn.dense native"));
  EXPECT_TRUE(by_calls.plan.scales.empty());
  times.plans = {{"native", 2e-3}, {"chip", 1.95e-3}};
  const PlacedByCost scaled = placed_by_cost(program, measured_costs(program, one_chip(), times));
  EXPECT_THAT(backends_of(scaled), ElementsAre("exp chip", "nn.dense chip"));
  EXPECT_NEAR(scaled.plan.seconds, 1.95e-3, kTolerance);
  EXPECT_NEAR(cost_of(scaled.plan, kNative), 2e-3, kTolerance);
  EXPECT_NEAR(cost_of(scaled.plan, "chip"), 1.95e-3, kTolerance);
  ASSERT_EQ(scaled.plan.scales.size(), 2u);
  EXPECT_EQ(scaled.plan.scales[0].label, kNative);
  EXPECT_DOUBLE_EQ(scaled.plan.scales[0].factor, 1);
  EXPECT_EQ(scaled.plan.scales[1].label, "chip");
  EXPECT_DOUBLE_EQ(scaled.plan.scales[1].factor, 1.95e-3 / kChipAlone);
  EXPECT_FALSE(scaled.plan.scales[1].is_limited());
  const double exp = 1.95 / 2.052;  // in ms
  EXPECT_THAT(scaled.placement[0].message, HasSubstr(fmt::format("{:.3g} us by chip, 1 ms natively", exp * 1e3)));
}

// Each place has a factor of its own. Scaled, exp on the chip saves 25 %, which is enough, and 17 % is not.
TEST(PlanScales, PlansThatMixPlacesAreScaledAndMustSaveMore) {
  const IRModule program = dense_of_exp();
  MeasuredTimes times = times_of_calls();
  times.calls[{"exp", "chip"}] = 0.3e-3;
  times.calls[{"nn.dense", "chip"}] = 2e-3;  // the chip alone: 2.302 ms
  const auto placed_with = [&](double chip_seconds) {
    times.plans = {{"native", 1.2e-3}, {"chip", chip_seconds}};
    return placed_by_cost(program, measured_costs(program, one_chip(), times));
  };
  const PlacedByCost taken = placed_with(2.302e-3);
  EXPECT_THAT(backends_of(taken), ElementsAre("exp chip", "nn.dense native"));
  EXPECT_NEAR(taken.plan.seconds, 0.301e-3 + 0.6 * 1e-3, kTolerance);
  EXPECT_FALSE(taken.plan.passed_over);
  const PlacedByCost passed_over = placed_with(1.3 * 2.302e-3);
  EXPECT_THAT(backends_of(passed_over), ElementsAre("exp native", "nn.dense native"));
  EXPECT_NEAR(passed_over.plan.seconds, 1.2e-3, kTolerance);
  ASSERT_TRUE(passed_over.plan.passed_over);
  EXPECT_NEAR(*passed_over.plan.passed_over, 1.3 * 0.301e-3 + 0.6 * 1e-3, kTolerance);
  EXPECT_NEAR(passed_over.plan.gap(), 1.2e-3 - 1.3 * 0.301e-3 - 0.6 * 1e-3, kTolerance);
}

// The chip takes exp alone, so the dense layer of its plan is native, and the chip's factor is for the rest.
TEST(PlanScales, TheNativePartOfABackendsPlanIsScaledFirst) {
  const IRModule program = dense_of_exp();
  MeasuredTimes times{.calls = {{{"exp", kNative}, 1e-3}, {{"nn.dense", kNative}, 1e-3}, {{"exp", "chip"}, 0.5e-3}},
                      .plans = {{"native", 1.8e-3}, {"chip", 1.5e-3}}};
  const Backends backends{priced("chip", {{"exp", 1}})};
  const PlanCost plan = placed_by_cost(program, measured_costs(program, backends, times)).plan;
  EXPECT_DOUBLE_EQ(plan.scales[0].factor, 0.9);
  EXPECT_NEAR(plan.scales[1].factor, (1.5 - 0.9) / 0.501, 1e-9);
  EXPECT_NEAR(plan.seconds, 1.5e-3, kTolerance);
}

// Joins, borders and layouts have the factors, too: without them the sums would not be what was measured.
TEST(PlanScales, ScaledPartsAddUpToTheWhole) {
  const IRModule program = program_of("%0 = tanh(exp(%x)); nn.dense(sqrt(abs(exp(%0))), %y)");
  const Sharing sharing{.halved = {"exp", "tanh"}, .border_seconds = 3e-7};
  const Backends backends{std::make_shared<Priced>(
      "chip", std::map<std::string, double>{{"exp", 1e-6}, {"tanh", 2e-6}, {"abs", 1e-6}}, sharing)};
  const std::map<std::string, double> factors{{kNative, 1.3}, {"chip", 0.7}};
  const double native = scaled_sum(parts_alone(program, backends, nullptr), factors);
  const double chip = scaled_sum(parts_alone(program, backends, backends[0].get()), factors);
  const OpCosts costs = measured_costs(program, backends, {.plans = {{kNative, native}, {"chip", chip}}});
  const auto problem = std::make_shared<CostProblem>(program, costs);
  const std::vector<PlanScale> scales = fit_scales(*problem, {problem->first_of({1})}, costs);
  ASSERT_EQ(scales.size(), 2u);
  EXPECT_NEAR(scales[0].factor, 1.3, 1e-9);
  EXPECT_NEAR(scales[1].factor, 0.7, 1e-9);
  problem->scale({scales[0].factor, scales[1].factor});
  problem->set_unit(1e12);
  EXPECT_NEAR(problem->seconds_of(problem->first_of({0})), native, kTolerance);
  EXPECT_NEAR(problem->seconds_of(problem->first_of({1})), chip, kTolerance);
}

// A factor out of bounds is limited. The plans that were measured cost what they took still.
TEST(PlanScales, FactorsAreLimited) {
  const IRModule program = dense_of_exp();
  MeasuredTimes times = times_of_calls();
  times.plans = {{"native", 20e-3}, {"chip", 0.2052e-3}};
  const PlanCost plan = placed_by_cost(program, measured_costs(program, one_chip(), times)).plan;
  ASSERT_EQ(plan.scales.size(), 2u);
  EXPECT_TRUE(plan.scales[0].is_limited());
  EXPECT_EQ(plan.scales[0].factor, 2);
  EXPECT_DOUBLE_EQ(plan.scales[0].fitted, 10);
  EXPECT_EQ(plan.scales[1].factor, 0.5);
  EXPECT_NEAR(plan.scales[1].fitted, 0.1, 1e-12);
  EXPECT_NEAR(cost_of(plan, kNative), 20e-3, kTolerance);
  EXPECT_NEAR(plan.seconds, 0.2052e-3, kTolerance);
  EXPECT_NEAR(plan.gap(), 0, kTolerance) << "the label problem has half of its sums, 1.026 ms, as the least cost";
}

// A backend that takes no call has the time of native code, and keeps its costs, which no plan has.
TEST(PlanScales, ABackendWithoutCallsHasNoFactor) {
  const IRModule program = dense_of_exp();
  MeasuredTimes times = times_of_calls();
  times.plans = {{"native", 1.8e-3}, {"idle", 1.8e-3}};
  const PlanCost plan = placed_by_cost(program, measured_costs(program, {priced("idle", {{"abs", 0}})}, times)).plan;
  ASSERT_EQ(plan.scales.size(), 2u);
  EXPECT_EQ(plan.scales[1].factor, 1);
  EXPECT_NEAR(plan.seconds, 1.8e-3, kTolerance);
}

// The order of the list has no factor of its own, and costs what it took, also where a plan of least cost is the same.
TEST(PlanScales, TheOrderOfTheListCostsWhatItTook) {
  const IRModule program = dense_of_exp();
  const Backends backends{priced("chip", {{"exp", 1}}), priced("other", {{"nn.dense", 1}})};
  MeasuredTimes times{.calls = {{{"exp", kNative}, 1e-3},
                                {{"nn.dense", kNative}, 1e-3},
                                {{"exp", "chip"}, 0.4e-3},
                                {{"nn.dense", "other"}, 0.4e-3}},
                      .plans = {{"native", 2e-3}, {"chip", 1.401e-3}, {"other", 1.402e-3}}};
  const PlacedByCost summed = placed_by_cost(program, measured_costs(program, backends, times));
  EXPECT_THAT(backends_of(summed), ElementsAre("exp chip", "nn.dense other"));
  EXPECT_NEAR(summed.plan.seconds, 0.803e-3, kTolerance);
  times.plans["chip,other"] = 1.6e-3;
  const PlacedByCost timed = placed_by_cost(program, measured_costs(program, backends, times));
  EXPECT_NEAR(cost_of(timed.plan, kListOrder), 1.6e-3, kTolerance);
  EXPECT_THAT(backends_of(timed), ElementsAre("exp chip", "nn.dense native"));
  EXPECT_NEAR(timed.plan.seconds, 1.401e-3, kTolerance);
}

// Nothing is scaled by part of the plans or by those of another model, and a tenth must be saved then.
TEST(PlanScales, OtherModelsAndMissingPlansChangeNothing) {
  const IRModule program = dense_of_exp();
  MeasuredTimes times = times_of_calls();
  times.calls[{"exp", "chip"}] = 0.85e-3;  // saves 7 % with the dense layer native
  times.calls[{"nn.dense", "chip"}] = 1.3e-3;
  const auto placed_with = [&](const std::map<std::string, double>& plans, const std::string& model) {
    times.plans = plans;
    return placed_by_cost(program, measured_costs(program, one_chip(), times, model));
  };
  for (const PlacedByCost& placed :
       {placed_with({{"native", 1e-3}, {"chip", 1e-3}}, "2e"), placed_with({{"native", 1e-3}, {"chip", 1e-3}}, ""),
        placed_with({{"native", 1e-3}}, kModel), placed_with({{"chip", 1e-3}}, kModel)}) {
    EXPECT_TRUE(placed.plan.scales.empty());
    EXPECT_NEAR(placed.plan.seconds, 2e-3, kTolerance);
    EXPECT_TRUE(placed.plan.passed_over);
  }
  EXPECT_FALSE(placed_with({{"native", 1e-3}, {"chip", 1e-3}}, kModel).plan.scales.empty());
}

// Native code takes 2 ms, the chip alone 2.302 ms. A plan with exp on the chip promises 1.301 ms.
class TriedPlan : public testing::Test {
 protected:
  TriedPlan() {
    times_.calls[{"exp", "chip"}] = 0.3e-3;
    times_.calls[{"nn.dense", "chip"}] = 2e-3;
    times_.plans = {{"native", 2e-3}, {"chip", 2.302e-3}};
  }

  std::string name_by(const MeasuredTimes& times, bool is_trial) const {
    return CostDecision(program_, measured_costs(program_, chip_, times, kModel, is_trial)).plan().name;
  }

  // Returns what is placed after the plan of least cost, tried, took so long.
  PlacedByCost placed_after(double took) const {
    MeasuredTimes times = times_;
    times.plans[name_by(times_, true)] = took;
    return placed_by_cost(program_, measured_costs(program_, chip_, times));
  }

  const IRModule program_ = dense_of_exp();
  const Backends chip_ = one_chip();
  MeasuredTimes times_ = times_of_calls();
};

TEST_F(TriedPlan, IsTakenForWhatItTook) {
  const PlacedByCost fast = placed_after(1.9e-3);
  EXPECT_THAT(backends_of(fast), ElementsAre("exp chip", "nn.dense native"));
  EXPECT_NEAR(fast.plan.seconds, 1.9e-3, kTolerance) << "5 % less than native code, and it promised 35 %";
  EXPECT_NEAR(fast.plan.lower_bound, 1.301e-3, kTolerance);
  EXPECT_NEAR(fast.plan.tried.value_or(0), 1.9e-3, kTolerance);
  EXPECT_FALSE(fast.plan.passed_over);
}

TEST_F(TriedPlan, IsNotTakenWhereItTookLonger) {
  for (const double took : {1.97e-3, 2.5e-3}) {
    const PlacedByCost slow = placed_after(took);
    EXPECT_THAT(backends_of(slow), ElementsAre("exp native", "nn.dense native")) << took;
    EXPECT_NEAR(slow.plan.seconds, 2e-3, kTolerance);
    EXPECT_NEAR(slow.plan.tried.value_or(0), took, kTolerance);
    ASSERT_TRUE(slow.plan.passed_over);
    EXPECT_NEAR(*slow.plan.passed_over, 1.301e-3, kTolerance);
    EXPECT_THAT(slow.placement[0].message,
                HasSubstr("since a cheaper one took longer when it was tried: 1 ms natively"));
  }
}

// Small savings are tried, too, and a plan made without costs is known by its own name. The chip's whole plan takes
// what its calls sum to, and 1 us for each value that enters its region, so nothing is scaled.
TEST_F(TriedPlan, HasAName) {
  const auto name_for = [&](double exp, double dense, double whole, bool is_trial = true) {
    times_.calls[{"exp", "chip"}] = exp;
    times_.calls[{"nn.dense", "chip"}] = dense;
    times_.plans["chip"] = whole;
    return name_by(times_, is_trial);
  };
  EXPECT_EQ(name_for(0.95e-3, 2e-3, 2.952e-3, false), "native") << "exp on the chip saves 2.5 %";
  const std::string by_exp = name_for(0.95e-3, 2e-3, 2.952e-3);
  EXPECT_THAT(by_exp, testing::MatchesRegex("chip by cost [0-9a-f]{32}"));
  EXPECT_THAT(name_for(1.2e-3, 0.5e-3, 1.702e-3), testing::AllOf(testing::StartsWith("chip by cost "), Ne(by_exp)));
  EXPECT_EQ(name_for(1.1e-3, 2e-3, 3.102e-3), "native");
  EXPECT_EQ(name_for(0.95e-3, 0.9e-3, 1.852e-3), "chip");
}

TEST(PlanScales, PlansOfOtherVersionsAreRefused) {
  const Backends backends{priced("chip", {{"exp", 1}}), priced("other", {{"exp", 1}})};
  const auto error_of = [&](const std::string& plan, const std::string& version, const std::string& model) {
    auto table = std::make_shared<CostTable>();
    table->plans[{kModel, plan}] = {version, 1e-3};
    return kit::user_error_of([&] { OpCosts(backends, {.measured = table, .model = model}); });
  };
  EXPECT_THAT(error_of("native", "0.0", kModel),
              HasSubstr("the costs: the plan 'native' was measured with version '0.0', and this is version '"));
  EXPECT_THAT(error_of("other", "8", kModel), HasSubstr("the plan 'other' was measured with version '8'"));
  EXPECT_THAT(error_of("chip,other", "8,", kModel),
              HasSubstr("the plan 'chip,other' was measured with version '8,', and this is version ','"));
  EXPECT_EQ(error_of("chip,other", ",", kModel), "");
  EXPECT_EQ(error_of("other,chip", "8,", kModel), "") << "another list";
  EXPECT_THAT(error_of("chip,other by cost 1f", "8,", kModel),
              HasSubstr("the plan 'chip,other by cost 1f' was measured with version '8,'"));
  EXPECT_EQ(error_of("other,chip by cost 1f", "8,", kModel), "") << "another list";
  EXPECT_EQ(error_of("native", "0.0", "2e"), "") << "another model";
}

struct ScaledPlan {
  RandomPlan plan;
  std::map<std::string, double> factors;  // factor of each place
};

std::optional<std::string> fault_of_scaled(const ScaledPlan& scaled, int& exact) {
  const IRModule program = program_of(scaled.plan.body);
  const Backends backends = backends_of_plan(scaled.plan);
  MeasuredTimes times{.plans = {{kNative, scaled_sum(parts_alone(program, backends, nullptr), scaled.factors)}}};
  for (const auto& backend : backends)
    times.plans[std::string(backend->name())] =
        scaled_sum(parts_alone(program, backends, backend.get()), scaled.factors);
  const PlacedByCost costed = placed_by_cost(program, measured_costs(program, backends, times));
  const double found = costed.plan.passed_over.value_or(costed.plan.seconds);
  const double least = least_seconds(program, backends, scaled.factors);
  exact += found < least + 1e-9 ? 1 : 0;
  const double counted = scaled_sum(counted_parts(costed.module, backends), scaled.factors);
  if (std::abs(counted - costed.plan.seconds) > kTolerance)
    return fmt::format("the plan says {}, its module costs {}", costed.plan.seconds, counted);
  if (costed.plan.lower_bound > least + kTolerance)
    return fmt::format("bound {}, least {}", costed.plan.lower_bound, least);
  for (const LabelSeconds& other : costed.plan.others) {
    if (other.seconds < costed.plan.seconds) return fmt::format("'{}' costs less: {}", other.label, other.seconds);
    if (times.plans.contains(other.label) && std::abs(other.seconds - times.plans[other.label]) > kTolerance)
      return fmt::format("'{}' costs {}, and took {}", other.label, other.seconds, times.plans[other.label]);
  }
  return std::nullopt;
}

// Whole plans are made here from factors, which must be found again, so that costs are those of the factors.
TEST(PlanScales, RandomPlansAreBoundedByTheLeastScaledCost) {
  register_test_compilers();
  kit::Property<ScaledPlan> property;
  property.runs_ci = 60;
  property.runs_full = 1000;
  property.generate = [](kit::Random& random) {
    ScaledPlan scaled{.plan = random_plan(random), .factors = {}};
    for (const char* place : {"native", "first", "second"}) scaled.factors[place] = random.uniform(0.55F, 1.9F);
    return scaled;
  };
  property.show = [](const ScaledPlan& scaled) {
    std::string text = show_plan(scaled.plan);
    for (const auto& [place, factor] : scaled.factors) text += fmt::format("\n{}: factor {}", place, factor);
    return text;
  };
  int exact = 0, runs = 0;
  property.check = [&](const ScaledPlan& scaled) {
    ++runs;
    return fault_of_scaled(scaled, exact);
  };
  EXPECT_TRUE(kit::holds(property));
  EXPECT_GE(exact * 20, runs * 19) << exact << " of " << runs << " plans are the best ones";
}

}  // namespace
}  // namespace headrace::partition
