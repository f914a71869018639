// Placement by cost: hand-made programs, and random ones against every way to place their ops.
#include "partition/placement/by_cost.h"

#include <gmock/gmock.h>

#include <limits>

#include "object/structural_equal.h"
#include "partition/place.h"
#include "partition/override_decision.h"
#include "partition/placement/tests/cost_testing.h"

namespace headrace::partition {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A backend that computes a call in 1 us if its result has so many rows, and else in 0.9 s.
class ByRows : public Priced {
 public:
  ByRows(std::string name, const std::string& patterns, int64_t rows, const std::set<std::string>& ops)
      : Priced(std::move(name), prices_of(ops), patterns), rows_(rows) {}
  double cost(const relay::CallNode& call, const cost::Machine&, int) const override {
    return call.checked_type().as<TensorTypeNode>()->concrete_shape()[0] == rows_ ? 1e-6 : 0.9;
  }

 private:
  static std::map<std::string, double> prices_of(const std::set<std::string>& ops) {
    std::map<std::string, double> prices;
    for (const std::string& op : ops) prices[op] = 0;
    return prices;
  }

  int64_t rows_;
};

TEST(PlaceByCost, AnOpMovesWhenItPaysForItsBorder) {
  const IRModule one = program_of("exp(%x)"), four = program_of("exp(exp(exp(exp(%x))))");
  const double native = cost::native_seconds(*passes::main_of(one).body.as<relay::CallNode>(), kMachine, 1);
  const auto placed_with = [&](const IRModule& program, double seconds) {
    return placed_by_cost(program, OpCosts({priced("fast", {{"exp", seconds}})}, {kMachine}));
  };
  ASSERT_GT(native, kBorderSeconds);
  EXPECT_THAT(backends_of(placed_with(one, native - 0.6 * kBorderSeconds)), ElementsAre("exp native"));
  EXPECT_THAT(backends_of(placed_with(one, native - 1.1 * kBorderSeconds)), ElementsAre("exp fast"));
  const PlacedByCost placed = placed_with(four, 0.05 * native);
  EXPECT_THAT(backends_of(placed), ::testing::Each(std::string("exp fast")));
  EXPECT_NEAR(placed.plan.seconds, 0.2 * native + kBorderSeconds, kTolerance);
  EXPECT_NEAR(placed.plan.gap(), 0, kTolerance);
}

// Natively the four are one kernel, which reads and writes memory once, so they cost hardly more than one. Apart they
// would cost twice as much as the backend.
TEST(PlaceByCost, OpsOfOneKernelShareItsCost) {
  const IRModule one = program_of("exp(%x)"), four = program_of("exp(exp(exp(exp(%x))))");
  const double native = cost::native_seconds(*passes::main_of(one).body.as<relay::CallNode>(), kMachine, 1);
  const Backends backends{priced("fast", {{"exp", 0.5 * native}})};
  const PlacedByCost placed = placed_by_cost(four, OpCosts(backends, {kMachine}));
  EXPECT_THAT(backends_of(placed), ::testing::Each(std::string("exp native")));
  EXPECT_LT(placed.plan.seconds, 1.5 * native);
  EXPECT_NEAR(placed.plan.seconds, counted_seconds(placed.module, backends), kTolerance);
  EXPECT_NEAR(placed.plan.gap(), 0, kTolerance);
  EXPECT_THAT(placed.placement[1].message, HasSubstr(" us natively in the kernel of exp, "));
  EXPECT_THAT(placed.placement[0].message, ::testing::Not(HasSubstr("kernel")));
  EXPECT_LT(placed.costs[1][0].seconds, 0.2 * native) << "as in the plan";
  EXPECT_DOUBLE_EQ(placed.costs[0][0].seconds, native);
}

// A value that two calls use, or that is a result, is written in any case.
TEST(PlaceByCost, AValueOfSeveralUsesIsAKernelOfItsOwn) {
  for (const char* body : {"%0 = exp(%x); (tanh(%0), sqrt(%0))", "%0 = exp(%x); (tanh(%0), %0)"}) {
    const PlacedByCost placed = placed_by_cost(program_of(body), OpCosts({priced("slow", {{"tanh", 1}})}, {kMachine}));
    EXPECT_THAT(placed.placement[1].message, HasSubstr(" us natively, 1 s by slow")) << body;
  }
}

TEST(PlaceByCost, RowsHaveBothCosts) {
  const Backends backends{priced("slow", {{"exp", 1}}), priced("quick", {{"exp", 0}, {"sqrt", 1}, {"nn.dense", 0}})};
  const IRModule program = program_of("sqrt(abs(nn.dense(exp(%x), %y)))");
  const PlacedByCost placed = placed_by_cost(program, OpCosts(backends, {kMachine}));
  ASSERT_THAT(backends_of(placed), ElementsAre("exp quick", "nn.dense quick", "abs native", "sqrt native"));
  EXPECT_EQ(placed.placement[0].reason, HR_REASON_PLACE_BY_COST);
  EXPECT_THAT(placed.placement[0].message, HasSubstr("the plan of least cost runs it here: 0 us by quick, "));
  EXPECT_THAT(placed.placement[0].message, HasSubstr(" us natively, 1 s by slow"));
  EXPECT_EQ(placed.placement[2].reason, HR_REASON_OP_UNSUPPORTED);
  EXPECT_EQ(placed.placement[3].reason, HR_REASON_PLACE_BY_COST);
  EXPECT_THAT(placed.placement[3].message, HasSubstr(" natively in the kernel of abs, 1 s by quick"));
  ASSERT_EQ(placed.costs.size(), placed.placement.size());
  EXPECT_EQ(placed.costs[0].size(), 3u);
  EXPECT_EQ(placed.costs[0][1].label, "slow");
  EXPECT_EQ(placed.costs[2].size(), 1u);
  std::vector<std::string> others;
  for (const LabelSeconds& one : placed.plan.others) {
    others.push_back(one.label);
    EXPECT_GE(one.seconds, placed.plan.seconds);
  }
  EXPECT_THAT(others, ElementsAre(kNative, kListOrder, "slow", "quick"));
  EXPECT_NEAR(placed.plan.seconds, counted_seconds(placed.module, backends), kTolerance);
}

// Measured costs of single calls do not add up exactly, so a plan that mixes places must promise a tenth.
TEST(PlaceByCost, ASmallSavingByMeasuredCostsIsPassedOver) {
  const IRModule program = program_of("nn.dense(exp(%x), %y)");
  const Backends backends{priced("quick", {{"exp", 1}, {"nn.dense", 1}})};
  const auto placed_with = [&](double exp_seconds) {
    CostTable table;
    for_each_placeable(program, [&](const relay::CallNode& call) {
      const bool is_exp = call.as_op()->name == "exp";
      table.costs[{cost_key(call), kNative}] = {HEADRACE_VERSION, 1e-3};
      table.costs[{cost_key(call), "quick"}] = {std::string(backends[0]->version()), is_exp ? exp_seconds : 1};
    });
    return placed_by_cost(program, OpCosts(backends, {kMachine, 1, std::make_shared<CostTable>(std::move(table))}));
  };
  const PlacedByCost small = placed_with(0.85e-3), large = placed_with(0.75e-3);
  EXPECT_THAT(backends_of(small), ElementsAre("exp native", "nn.dense native"));
  EXPECT_NEAR(small.plan.seconds, 2e-3, kTolerance);
  ASSERT_TRUE(small.plan.passed_over);
  EXPECT_NEAR(*small.plan.passed_over, 1.85e-3 + kBorderSeconds, kTolerance);
  EXPECT_THAT(small.placement[0].message, HasSubstr("since a cheaper one saves too little: 1 ms natively, "));
  EXPECT_THAT(backends_of(large), ElementsAre("exp quick", "nn.dense native"));
  EXPECT_FALSE(large.plan.passed_over);
  EXPECT_THAT(large.placement[0].message, HasSubstr("the plan of least cost runs it here: "));
}

// The second exp costs half where the first is in its region, and the third the same.
TEST(PlaceByCost, CallsOfOneRegionShareCosts) {
  const auto chip =
      std::make_shared<Priced>("chip", std::map<std::string, double>{{"exp", 1e-7}}, Sharing{.halved = {"exp"}});
  const Backends backends{chip};
  const PlacedByCost placed =
      placed_by_cost(program_of("nn.dense(exp(exp(exp(%x))), %y)"), OpCosts(backends, {kMachine}));
  ASSERT_THAT(backends_of(placed), ElementsAre("exp chip", "exp chip", "exp chip", "nn.dense native"));
  EXPECT_NEAR(placed.plan.seconds, counted_seconds(placed.module, backends), kTolerance);
  EXPECT_THAT(placed.placement[0].message, HasSubstr("runs it here: 0.1 us by chip, "));
  EXPECT_THAT(placed.placement[1].message, HasSubstr("runs it here: 0.05 us by chip with exp, "));
  EXPECT_NEAR(placed.plan.gap(), 0, kTolerance);
}

// A sqrt costs half only after a dense layer in its region, whatever lies between. Each way to place the three calls
// costs what it must, and the label problem finds the least one exactly.
TEST(PlaceByCost, ACallSavesOnlyWithAllThatItNeeds) {
  const IRModule program = program_of("sqrt(abs(nn.dense(%x, %y)))");
  for (const double dense : {1e-6, 1e-3}) {
    const std::map<std::string, double> prices{{"nn.dense", dense}, {"abs", 1e-7}, {"sqrt", 8e-7}};
    const Backends backends{std::make_shared<Priced>("chip", prices, Sharing{.halved = {"sqrt"}, .needed = "nn.dense"}),
                            priced("other", {{"nn.dense", 2e-6}, {"abs", 3e-6}})};
    const CostDecision decision(program, OpCosts(backends, {kMachine}));
    std::vector<const relay::CallNode*> calls;
    for_each_placeable(decision.module(), [&](const relay::CallNode& call) { calls.push_back(&call); });
    ASSERT_EQ(calls.size(), 3u);
    const auto plan_of = [&](std::vector<size_t> chips) {
      Labels labels;
      for (const size_t i : chips) labels.emplace(calls[i], "chip");
      return decision.plan_of(decision.module(), labels).seconds;
    };
    EXPECT_NEAR(plan_of({0, 1, 2}), dense + 1e-7 + 4e-7 + 2 * kBorderSeconds, kTolerance);
    const double native = cost::native_seconds(*calls[0], kMachine, 1);
    EXPECT_NEAR(plan_of({1, 2}), native + 1e-7 + 8e-7 + kBorderSeconds, kTolerance) << "the dense layer is native";
    EXPECT_NEAR(decision.plan().gap(), 0, kTolerance);
    const PlacedModule placed = place(decision);
    EXPECT_EQ(backends_of(placed)[0] == "nn.dense chip", dense < 1e-5);
    EXPECT_EQ(placed.placement[2].message.find("by chip with abs") != std::string::npos, dense < 1e-5);
  }
}

// Many calls that cost and save nearly all that a cost may be, on many backends: their sum stays in range.
TEST(PlaceByCost, GreatSavingsStayInRange) {
  Backends backends;
  for (int i = 0; i < 8; ++i)
    backends.push_back(std::make_shared<Priced>(fmt::format("chip{}", i), std::map<std::string, double>{{"exp", 1000}},
                                                Sharing{.halved = {"exp"}}));
  std::string body = "%0 = exp(%x);\n";
  constexpr int kCalls = 600;
  for (int i = 1; i < kCalls; ++i) body += fmt::format("%{} = exp(%{});\n", i, i - 1);
  const PlacedByCost placed =
      placed_by_cost(program_of(body + fmt::format("%{}", kCalls - 1)), OpCosts(backends, {kMachine}));
  EXPECT_THAT(backends_of(placed), ::testing::Each(std::string("exp native")));
}

// A backend that saves nothing within a region would be left alone, and so is one whose borders cost what it saves.
TEST(PlaceByCost, AChangeOfLayoutCostsAtEachBorder) {
  const IRModule program = program_of("exp(exp(exp(exp(%x))))");
  const auto placed_with = [&](double border) {
    const auto chip =
        std::make_shared<Priced>("chip", std::map<std::string, double>{{"exp", 0}}, Sharing{.border_seconds = border});
    return placed_by_cost(program, OpCosts({chip}, {kMachine}));
  };
  const double native = placed_with(1).plan.seconds;
  EXPECT_THAT(backends_of(placed_with(1)), ::testing::Each(std::string("exp native")));
  const double least = (native - kBorderSeconds) / 2;  // in and out
  ASSERT_GT(least, 0);
  EXPECT_THAT(backends_of(placed_with(1.01 * least)), ::testing::Each(std::string("exp native")));
  const PlacedByCost placed = placed_with(0.99 * least);
  EXPECT_THAT(backends_of(placed), ::testing::Each(std::string("exp chip")));
  EXPECT_NEAR(placed.plan.seconds, kBorderSeconds + 2 * 0.99 * least, kTolerance);
}

// Natively a convolution works in blocks of channels, so that what a backend takes from it changes its layout first.
TEST(PlaceByCost, NativeConvolutionsHaveALayoutOfTheirOwn) {
  const Backends backends{priced("chip", {{"exp", 0}})};
  const OpCosts costs(backends, {kMachine});
  const auto plan_of = [&](const std::string& body) {
    const IRModule program = read_program(
        "def @main(%x: Tensor[(1, 16, 32, 32), float32], %w: Tensor[(16, 16, 1, 1), float32]) {\n" + body + "}");
    const CostDecision decision(program, costs);
    Labels labels;
    for_each_placeable(decision.module(), [&](const relay::CallNode& call) {
      if (call.as_op()->name == "exp") labels.emplace(&call, "chip");
    });
    return decision.plan_of(decision.module(), labels).seconds;
  };
  const double conv = plan_of("nn.conv2d(%x, %w, kernel_size=[1, 1], channels=16)");
  const double after = plan_of("exp(nn.conv2d(%x, %w, kernel_size=[1, 1], channels=16))");
  const double before = plan_of("nn.conv2d(exp(%x), %w, kernel_size=[1, 1], channels=16)");
  const double pass = 2.0 * 4 * 16 * 32 * 32 / (kMachine.l2_gigabytes * 1e9), changed = 4 * pass;
  EXPECT_NEAR(after - conv, kBorderSeconds + changed, kTolerance);
  EXPECT_NEAR(before - conv, kBorderSeconds + changed, kTolerance);
  const double keeping = plan_of("nn.conv2d(nn.relu(%x), %w, kernel_size=[1, 1], channels=16)");
  const double behind = plan_of("nn.conv2d(nn.relu(exp(%x)), %w, kernel_size=[1, 1], channels=16)");
  EXPECT_NEAR(behind - keeping, kBorderSeconds + changed, kTolerance) << "an activation keeps the layout";
}

// The items of a tuple are in the region that makes it, so that they pay its borders.
TEST(PlaceByCost, ItemsOfATupleLeaveTheirRegion) {
  constexpr double kSplit = 1e-6, kBorder = 3e-7;
  const Backends backends{std::make_shared<Priced>("chip", std::map<std::string, double>{{"split", kSplit}},
                                                   Sharing{.border_seconds = kBorder})};
  const IRModule program = program_of("%0 = split(%x, indices_or_sections=2); exp(%0.0)");
  const CostDecision decision(program, OpCosts(backends, {kMachine}));
  Labels labels;
  double exp_seconds = 0;
  for_each_placeable(decision.module(), [&](const relay::CallNode& call) {
    if (call.as_op()->name == "split") labels.emplace(&call, "chip");
    if (call.as_op()->name == "exp") exp_seconds = cost::native_seconds(call, kMachine, 1);
  });
  EXPECT_NEAR(decision.plan_of(decision.module(), labels).seconds, kSplit + exp_seconds + kBorderSeconds + 2 * kBorder,
              kTolerance);
}

TEST(PlaceByCost, APatternIsOneCall) {
  const std::string table = "{ other.sum: add(exp(_), _) }";
  const Backends backends{priced("other", {{"multiply", 0}}, table, 0)};
  const IRModule program = program_of("multiply(add(exp(%x), nn.dense(%x, %y)), %x)");
  const PlacedByCost placed = placed_by_cost(program, OpCosts(backends, {kMachine}));
  EXPECT_THAT(backends_of(placed), ElementsAre("nn.dense native", "exp other", "add other", "multiply other"))
      << relay::print_module(placed.module);
}

// A piece that is too dear is ops again, so that native passes fuse them.
TEST(PlaceByCost, ADearPatternIsNativeOps) {
  const Backends backends{priced("other", {}, "{ other.sum: add(exp(_), _) }", 1)};
  const IRModule program = program_of("add(exp(%x), %y)");
  const PlacedByCost placed = placed_by_cost(program, OpCosts(backends, {kMachine}));
  EXPECT_THAT(backends_of(placed), ElementsAre("exp native", "add native"));
  EXPECT_TRUE(structural_equal(placed.module, program)) << relay::print_module(placed.module);
}

// Another backend takes the ops that the first one's pattern would tie together.
TEST(PlaceByCost, APatternDoesNotKeepOpsFromABetterBackend) {
  const Backends backends{priced("other", {}, "{ other.sum: add(exp(_), _) }", 1),
                          priced("better", {{"exp", 0}, {"add", 0}})};
  const std::string chain = "%0 = add(exp(%x), %y); %1 = add(exp(%0), %y); %2 = add(exp(%1), %y); add(exp(%2), %y)";
  const PlacedByCost placed = placed_by_cost(program_of(chain), OpCosts(backends, {kMachine}));
  EXPECT_THAT(backends_of(placed), ::testing::Each(HasSubstr("better")));
  EXPECT_NEAR(placed.plan.seconds, 2 * kBorderSeconds, kTolerance);
}

// An op that is taken only within a pattern is where it is because of costs.
TEST(PlaceByCost, TheReasonNamesThePatternThatCostsMore) {
  const Backends backends{priced("own", {{"own.both", 1.0}}, "{ own.both: tanh(exp(_)) }")};
  const PlacedByCost placed = placed_by_cost(program_of("tanh(exp(%x))"), OpCosts(backends, {kMachine}));
  ASSERT_EQ(placed.placement.size(), 2u);
  for (const artifact::Placement& row : placed.placement) {
    EXPECT_EQ(row.reason, HR_REASON_PLACE_BY_COST) << row.kind;
    EXPECT_THAT(row.message, HasSubstr("; the pattern own.both, which takes it, costs 1 s by own")) << row.kind;
  }
}

// A plan that overrides change keeps its bound, and costs what its own calls and borders cost.
TEST(PlaceByCost, OverridesChangeTheCostOfThePlan) {
  const Backends backends{priced("fast", {{"exp", 0}, {"abs", 0}, {"sqrt", 0}})};
  const IRModule program = program_of("sqrt(abs(exp(%x)))");
  const CostDecision alone(program, OpCosts(backends, {kMachine}));
  const OverrideDecision overridden(std::make_shared<CostDecision>(program, OpCosts(backends, {kMachine})),
                                    {{.pattern = "*", .backend = kNative}});
  const PlanCost plan = *overridden.cost();
  const PlacedModule placed = place(overridden);
  EXPECT_THAT(backends_of(placed), ElementsAre("exp native", "abs native", "sqrt native"));
  EXPECT_EQ(placed.placement[0].reason, HR_REASON_PLACE_BY_OVERRIDE);
  EXPECT_EQ(placed.costs[0].size(), 2u);
  EXPECT_NEAR(plan.seconds, counted_seconds(placed.module, backends), kTolerance);
  EXPECT_EQ(plan.lower_bound, alone.plan().lower_bound);
  EXPECT_GT(plan.gap(), kTolerance);
}

TEST(PlaceByCost, ConstantsAndOtherPartsHaveNoCost) {
  const Backends backends{priced("fast", {{"exp", 0}, {"add", 0}})};
  const PlacedByCost placed =
      placed_by_cost(program_of("let %a = exp(add(%x, 1f)); if (less(sum(%a), 1f)) { exp(%a) } else { %a }"),
                     OpCosts(backends, {kMachine}));
  EXPECT_THAT(backends_of(placed), ElementsAre("add fast", "exp fast", "sum native", "less native", "exp fast"));
  EXPECT_NEAR(placed.plan.seconds, counted_seconds(placed.module, backends), kTolerance);
  EXPECT_NEAR(placed.plan.gap(), 0, kTolerance);
}

// NaN and a border below 0 count as 0, and a greater one than 1000 s as that; a backend is not asked about values that
// its regions cannot have.
TEST(PlaceByCost, OddBordersCountAsTheNearest) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const IRModule program = program_of("exp(%x)");
  for (const auto& [answer, border] : std::vector<std::pair<double, double>>{
           {std::numeric_limits<double>::quiet_NaN(), 0}, {-1, 0}, {kInfinity, 1000}, {1e300, 1000}, {3, 3}}) {
    const Backends backends{
        std::make_shared<Priced>("odd", std::map<std::string, double>{{"exp", 0}}, Sharing{.border_seconds = answer})};
    const OpCosts costs(backends, {kMachine});
    const CostDecision decision(program, costs);
    const Labels labels{{passes::main_of(decision.module()).body.object(), "odd"}};
    EXPECT_NEAR(decision.plan_of(decision.module(), labels).seconds, kBorderSeconds + 2 * border, 1e-9) << answer;
  }
}

TEST(PlaceByCost, ACostMustBeSeconds) {
  for (const double seconds :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), -1.0, 1001.0}) {
    const Backends backends{priced("odd", {{"exp", seconds}})};
    EXPECT_THAT(kit::user_error_of([&] { placed_by_cost(program_of("exp(%x)"), OpCosts(backends, {kMachine})); }),
                HasSubstr("the backend 'odd' says that exp costs"));
  }
}

// Returns how the plan that placement by cost finds differs from the best of all plans, which are enumerated.
std::optional<std::string> fault_of_plan(const RandomPlan& plan) {
  const IRModule program = program_of(plan.body);
  const Backends backends = backends_of_plan(plan);
  const PlacedByCost costed = placed_by_cost(program, OpCosts(backends, {kMachine}));
  const double counted = counted_seconds(costed.module, backends);
  const double least = least_seconds(program, backends);
  if (std::abs(counted - costed.plan.seconds) > kTolerance)
    return fmt::format("the plan says {}, its module costs {}", costed.plan.seconds, counted);
  if (costed.plan.seconds > least + kTolerance)
    return fmt::format("the plan costs {}, the least one {}", costed.plan.seconds, least);
  if (costed.plan.lower_bound > least + kTolerance)
    return fmt::format("bound {}, least {}", costed.plan.lower_bound, least);
  if (costed.plan.gap() > kTolerance) return fmt::format("the gap of the best plan is {}", costed.plan.gap());
  for (const LabelSeconds& other : costed.plan.others) {
    if (other.seconds < costed.plan.seconds) return fmt::format("'{}' costs less: {}", other.label, other.seconds);
  }
  return std::nullopt;
}

// Plans of up to ten calls and three labels (seven calls in ci).
TEST(PlaceByCost, RandomPlansAreTheLeast) {
  register_test_compilers();
  kit::Property<RandomPlan> property;
  property.runs_ci = 60;
  property.runs_full = 2000;
  property.generate = [](kit::Random& random) { return random_plan(random, kit::by_size(7, 10)); };
  property.show = show_plan;
  property.check = &fault_of_plan;
  EXPECT_TRUE(kit::holds(property));
}

// Both backends have patterns, whose matches share calls. Each set of matches that can be chosen is tried with each way
// to place the other calls.
TEST(PlaceByCost, RandomPlansWithPatternsAreTheLeast) {
  register_test_compilers();
  kit::Property<RandomPlan> property;
  property.runs_ci = 80;
  property.runs_full = 1000;
  property.generate = [](kit::Random& random) {
    return with_random_patterns(random_plan(random, kit::by_size(5, 7)), random);
  };
  property.show = show_plan;
  property.check = &fault_of_plan;
  EXPECT_TRUE(kit::holds(property));
}

// A pattern is cheap for one of two chains, single ops for the other.
TEST(PlaceByCost, EachMatchOfAPatternIsChosenByItself) {
  const IRModule program = read_program(
      "def @main(%x: Tensor[(512, 4096), float32], %y: Tensor[(4096, 4096), float32]) {\n"
      "  (sin(cos(%x)), sin(cos(%y)))\n}");
  const Backends backends{std::make_shared<ByRows>("aa", "{ aa.p: sin(cos(_)) }", 512, std::set<std::string>{}),
                          std::make_shared<ByRows>("bb", "", 4096, std::set<std::string>{"sin", "cos"})};
  const PlacedByCost placed = placed_by_cost(program, OpCosts(backends, {kMachine}));
  EXPECT_THAT(backends_of(placed), ElementsAre("cos aa", "sin aa", "cos bb", "sin bb"));
  EXPECT_NEAR(placed.plan.seconds, 3e-6 + 2 * kBorderSeconds, kTolerance);
  EXPECT_NEAR(placed.plan.gap(), 0, kTolerance);
}

// The smaller match leaves the other op to the backend for which it is cheap.
TEST(PlaceByCost, ASmallerMatchInsideALargerOneIsChosen) {
  const IRModule program = read_program("def @main(%x: Tensor[(512, 512), float32]) { tanh(add(exp(%x), %x)) }");
  const Backends backends{priced("own", {{"own.both", 1e-3}, {"own.sum", 0}},
                                 "{ own.both: tanh(add(exp(_), _)), own.sum: add(exp(_), _) }"),
                          priced("other", {{"tanh", 0}})};
  const PlacedByCost placed = placed_by_cost(program, OpCosts(backends, {kMachine}));
  EXPECT_THAT(backends_of(placed), ElementsAre("exp own", "add own", "tanh other"));
  EXPECT_NEAR(placed.plan.seconds, 2 * kBorderSeconds, kTolerance);
  EXPECT_NEAR(placed.plan.gap(), 0, kTolerance);
}

// The first backend takes all ops, so that the list has no pieces, and the plan of the second one has.
TEST(PlaceByCost, ABackendAloneHasItsPatternsBehindOneThatTakesTheirOps) {
  const IRModule program = read_program("def @main(%x: Tensor[(512, 512), float32]) { exp(exp(%x)) }");
  const Backends backends{priced("first", {{"exp", 1}}), priced("second", {}, "{ second.two: exp(exp(_)) }", 1e-6)};
  const PlacedByCost placed = placed_by_cost(program, OpCosts(backends, {kMachine}));
  EXPECT_THAT(backends_of(placed), ElementsAre("exp second", "exp second"));
  ASSERT_EQ(placed.plan.others.back().label, "second");
  EXPECT_NEAR(placed.plan.others.back().seconds, 1e-6 + kBorderSeconds, kTolerance);
}

}  // namespace
}  // namespace headrace::partition
