// Placement by cost: hand-made programs, and random ones against every way to place their ops. The cost of a placement
// is counted here from the module that it makes: a border for each parameter of each region.
#include "partition/by_cost.h"

#include <gmock/gmock.h>

#include <limits>

#include "cost/op_work.h"
#include "kit/property.h"
#include "object/structural_equal.h"
#include "partition/extract.h"
#include "partition/place.h"
#include "partition/plan_decider.h"
#include "partition/tests/region_testing.h"
#include "relay/children.h"

namespace headrace::partition {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// One op over 64 x 64 floats takes longer than a border.
constexpr cost::Machine kMachine{.l2_gigabytes = 20};
constexpr double kTolerance = 1e-10;  // costs are counted in picoseconds

// How calls and values of a backend depend on each other.
struct Sharing {
  std::set<std::string> halved = {};  // ops that cost half where their operand is in the same region
  std::string needed = "";            // and where this op is there, too, if it is not empty
  double border_seconds = 0;          // a tensor that enters or leaves a region
};

// A backend that takes the ops that it has a cost for, and what its patterns match.
class Priced : public Backend {
 public:
  Priced(std::string name, std::map<std::string, double> seconds, Sharing sharing, bool one_call = false)
      : Priced(std::move(name), std::move(seconds), "", 0, one_call) {
    sharing_ = std::move(sharing);
  }
  Priced(std::string name, std::map<std::string, double> seconds, const std::string& patterns = "",
         double pattern_seconds = 0, bool one_call = false)
      : name_(std::move(name)), seconds_(std::move(seconds)), pattern_seconds_(pattern_seconds), one_call_(one_call) {
    if (!patterns.empty()) table_ = read_table(Value(patterns));
  }
  std::string_view name() const override { return name_; }
  std::span<const CompositePattern> patterns() const override { return table_; }
  Verdict supports(const relay::CallNode& call) const override {
    if (seconds_.contains(call.as_op()->name)) return {};
    return {.reason = HR_REASON_OP_UNSUPPORTED, .message = "it has no price"};
  }
  double cost(const relay::CallNode& call, const cost::Machine&, int) const override {
    return call.as_op() == nullptr ? pattern_seconds_ : seconds_.at(call.as_op()->name);
  }
  double saved(const relay::CallNode& call, const std::vector<const relay::CallNode*>& producers, const cost::Machine&,
               int) const override {
    EXPECT_FALSE(producers.empty());
    const bool is_halved = call.as_op() != nullptr && sharing_.halved.contains(call.as_op()->name);
    const bool is_there = std::any_of(producers.begin(), producers.end(), [&](const relay::CallNode* one) {
      return sharing_.needed.empty() || one->as_op()->name == sharing_.needed;
    });
    return is_halved && is_there ? seconds_.at(call.as_op()->name) / 2 : 0;
  }
  double border(const Type& type, const cost::Machine&, int) const override {
    return type.is<TensorTypeNode>() ? sharing_.border_seconds : 0;
  }
  bool one_call_per_region() const override { return one_call_; }
  std::vector<Expected<RegionCode>> compile(const RegionRequest& request) const override {
    return {request.regions.size(), Refusal{HR_REASON_SHAPE_UNSUPPORTED, "it compiles nothing"}};
  }

 private:
  std::string name_;
  std::map<std::string, double> seconds_;
  std::vector<CompositePattern> table_;
  double pattern_seconds_;
  bool one_call_;
  Sharing sharing_;
};

std::shared_ptr<const Backend> priced(const std::string& name, std::map<std::string, double> seconds,
                                      const std::string& patterns = "", double pattern_seconds = 0) {
  return std::make_shared<Priced>(name, std::move(seconds), patterns, pattern_seconds);
}

IRModule program_of(const std::string& body) {
  return read_program("def @main(%x: Tensor[(64, 64), float32], %y: Tensor[(64, 64), float32]) {\n" + body + "}");
}

double op_seconds(const relay::CallNode& call, const std::string& backend, const Backends& backends) {
  for (const auto& one : backends) {
    if (one->name() == backend) return one->cost(call, kMachine, 1);
  }
  return cost::native_seconds(call, kMachine, 1);
}

double counted_seconds(const Expr& body, const std::string& backend, const Backends& backends) {
  double seconds = 0;
  relay::post_order(
      body, [](const Expr& expr) { return !expr.is<relay::FunctionNode>(); },
      [&](const Expr& expr) {
        const auto* call = expr.as<relay::CallNode>();
        if (call != nullptr && !call->op.is<GlobalVarNode>()) seconds += op_seconds(*call, backend, backends);
      });
  return seconds;
}

using Saved = std::function<double(const relay::CallNode& producer, const relay::CallNode& call)>;

// Returns the seconds that are saved in a body: each call is joined to the first operand that is a call which nothing
// else uses, and with which it costs less.
double saved_seconds(const Expr& body, const Saved& saved) {
  std::map<const Object*, std::set<const Object*>> users{{body.object(), {nullptr}}};
  const auto in_body = [](const Expr& expr) { return !expr.is<relay::FunctionNode>(); };
  relay::post_order(body, in_body, [&](const Expr& expr) {
    relay::for_each_child(*expr.get(), [&](const ExprNode* child) { users[child].insert(expr.object()); });
  });
  double seconds = 0;
  relay::post_order(body, in_body, [&](const Expr& expr) {
    const auto* call = expr.as<relay::CallNode>();
    if (call == nullptr || call->op.is<GlobalVarNode>()) return;
    for (const Expr& arg : call->args) {
      const auto* producer = arg.as<relay::CallNode>();
      if (producer == nullptr || producer->op.is<GlobalVarNode>() || users[producer].size() != 1) continue;
      const double one = saved(*producer, *call);
      seconds += one;
      if (one > 0) return;
    }
  });
  return seconds;
}

double native_saved(const relay::CallNode& producer, const relay::CallNode& call) {
  if (producer.as_op() == nullptr || call.as_op() == nullptr) return 0;
  return cost::seconds_saved(producer, call, kMachine, 1);
}

// The changes of layout at the borders of regions: each value that leaves one, once for native code and once for each
// region that takes it, and each value that enters one.
double border_seconds(const IRModule& module, const Backends& backends) {
  const auto border_of = [&](const Expr& value) {  // of the region that makes it
    const auto* item = value.as<relay::TupleGetItemNode>();
    const auto* call = (item == nullptr ? value : item->tuple).as<relay::CallNode>();
    const auto* name = call == nullptr ? nullptr : call->op.as<GlobalVarNode>();
    if (name == nullptr) return 0.0;
    const auto region = module->lookup(name->name_hint).cast<relay::FunctionNode>();
    for (const auto& one : backends) {
      if (one->name() == region->attrs.at("Compiler").as<std::string>())
        return one->border(passes::main_of(module).params[0]->checked_type(), kMachine, 1);
    }
    return 0.0;
  };
  double seconds = 0;
  std::set<std::pair<const Object*, int64_t>> native;  // values that native code has taken
  const auto leave = [&](const Expr& value) {
    const auto* item = value.as<relay::TupleGetItemNode>();
    const std::pair<const Object*, int64_t> key(item == nullptr ? value.object() : item->tuple.object(),
                                                item == nullptr ? 0 : item->index);
    if (native.insert(key).second) seconds += border_of(value);
  };
  const Expr& body = passes::main_of(module).body;
  relay::post_order(
      body, [](const Expr& expr) { return !expr.is<relay::FunctionNode>(); },
      [&](const Expr& expr) {
        if (const auto* tuple = expr.as<relay::TupleNode>()) {
          for (const Expr& field : tuple->items) leave(field);
        }
        const auto* call = expr.as<relay::CallNode>();
        if (call == nullptr) return;
        const bool is_region = call->op.is<GlobalVarNode>();
        for (const Expr& arg : call->args) {
          if (is_region) {
            seconds += border_of(arg) + border_of(expr);
          } else {
            leave(arg);
          }
        }
      });
  leave(body);
  return seconds;
}

// The cost of a module with regions, by the definition in by_cost.h.
double counted_seconds(const IRModule& module, const Backends& backends) {
  double seconds = counted_seconds(passes::main_of(module).body, kNative, backends);
  seconds -= saved_seconds(passes::main_of(module).body, native_saved);
  for (const relay::Function& region : regions_of(module)) {
    const std::string name = region->attrs.at("Compiler").as<std::string>();
    seconds += kBorderSeconds * static_cast<double>(region->params.size());
    seconds += counted_seconds(region->body, name, backends);
    for (const auto& one : backends) {
      if (one->name() != name) continue;
      seconds -= saved_seconds(region->body, [&](const relay::CallNode& producer, const relay::CallNode& call) {
        return one->saved(call, {&producer}, kMachine, 1);
      });
    }
  }
  return seconds + border_seconds(module, backends);
}

struct PlacedByCost : PlacedModule {
  PlanCost plan;
};

PlacedByCost placed_by_cost(const IRModule& program, const OpCosts& costs) {
  CostDecider decider(program, costs);
  return {place(decider.module(), decider), decider.plan()};
}

std::vector<std::string> backends_of(const PlacedModule& placed) {
  std::vector<std::string> rows;
  for (const artifact::Placement& one : placed.placement) rows.push_back(one.kind + " " + one.backend);
  return rows;
}

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
    CostDecider decider(program, OpCosts(backends, {kMachine}));
    std::vector<const relay::CallNode*> calls;
    for_each_placeable(decider.module(), [&](const relay::CallNode& call) { calls.push_back(&call); });
    ASSERT_EQ(calls.size(), 3u);
    const auto plan_of = [&](std::vector<size_t> chips) {
      Labels labels;
      for (const size_t i : chips) labels.emplace(calls[i], "chip");
      return decider.plan_of(labels).seconds;
    };
    EXPECT_NEAR(plan_of({0, 1, 2}), dense + 1e-7 + 4e-7 + 2 * kBorderSeconds, kTolerance);
    const double native = cost::native_seconds(*calls[0], kMachine, 1);
    EXPECT_NEAR(plan_of({1, 2}), native + 1e-7 + 8e-7 + kBorderSeconds, kTolerance) << "the dense layer is native";
    EXPECT_NEAR(decider.plan().gap(), 0, kTolerance);
    const PlacedModule placed = place(decider.module(), decider);
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
    CostDecider decider(program, costs);
    Labels labels;
    for_each_placeable(decider.module(), [&](const relay::CallNode& call) {
      if (call.as_op()->name == "exp") labels.emplace(&call, "chip");
    });
    return decider.plan_of(labels).seconds;
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

// A plan that overrides change keeps its bound, and costs what its own calls and borders cost.
TEST(PlaceByCost, OverridesChangeTheCostOfThePlan) {
  const Backends backends{priced("fast", {{"exp", 0}, {"abs", 0}, {"sqrt", 0}})};
  const IRModule program = program_of("sqrt(abs(exp(%x)))");
  CostDecider alone(program, OpCosts(backends, {kMachine}));
  OverrideDecider decider(std::make_unique<CostDecider>(program, OpCosts(backends, {kMachine})),
                          {{.pattern = "*", .backend = kNative}}, backends);
  const PlanCost plan = alone.plan_of(decider.decide(program));
  const PlacedModule placed = place(program, decider);
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
    CostDecider decider(program, costs);
    const Labels labels{{passes::main_of(decider.module()).body.object(), "odd"}};
    EXPECT_NEAR(decider.plan_of(labels).seconds, kBorderSeconds + 2 * border, 1e-9) << answer;
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

struct RandomPlan {
  std::string body;
  std::vector<std::map<std::string, double>> prices;
  uint64_t one_call = 0;  // a bit for each backend whose regions have one call each
  std::vector<Sharing> sharing = {};
};

RandomPlan random_plan(kit::Random& random) {
  static constexpr const char* kUnary[] = {"exp", "tanh", "sqrt"};
  static constexpr const char* kBinary[] = {"add", "multiply"};
  RandomPlan plan;
  const int64_t count = random.integer(1, 6);
  std::vector<std::string> values{"%x", "%y"};
  for (int64_t i = 0; i < count; ++i) {
    const auto value = [&] {
      return values[static_cast<size_t>(random.integer(0, static_cast<int64_t>(values.size()) - 1))];
    };
    const std::string latest = values.back();
    const std::string call = random.chance(0.5F) ? fmt::format("{}({})", kUnary[random.index(3)], latest)
                                                 : fmt::format("{}({}, {})", kBinary[random.index(2)], latest, value());
    plan.body += fmt::format("%{} = {};\n", i, call);
    values.push_back(fmt::format("%{}", i));
  }
  plan.body += fmt::format("(%{}, {})", count - 1, values[2]);
  for (int backend = 0; backend < 2; ++backend) {
    plan.prices.emplace_back();
    for (const char* op : {"exp", "tanh", "sqrt", "add", "multiply"}) {
      if (random.chance(0.7F)) plan.prices.back()[op] = random.uniform(0, 3e-6F);
    }
    plan.sharing.emplace_back();
    if (random.chance(0.5F)) plan.sharing.back().halved = {"exp", "add"};
    if (random.chance(0.5F)) plan.sharing.back().border_seconds = random.uniform(0, 1e-6F);
  }
  plan.one_call = random.chance(0.5F) ? 0 : random.next() % 4;
  return plan;
}

// The least cost over all ways to give the calls of a program labels.
double least_seconds(const IRModule& program, const Backends& backends) {
  std::vector<const relay::CallNode*> calls;
  for_each_placeable(program, [&](const relay::CallNode& call) { calls.push_back(&call); });
  std::vector<size_t> chosen(calls.size(), 0);
  const PartitionOptions options{.one_call = one_call_backends(backends)};
  double least = std::numeric_limits<double>::infinity();
  for (bool more = true; more;) {
    Labels labels;
    bool allowed = true;
    for (size_t i = 0; i < calls.size(); ++i) {
      if (chosen[i] == 0) continue;
      allowed &= backends[chosen[i] - 1]->supports(*calls[i]).ok();
      labels.emplace(calls[i], std::string(backends[chosen[i] - 1]->name()));
    }
    if (allowed)
      least = std::min(least, counted_seconds(partition_by_labels(program, labels, options).module, backends));
    more = false;
    for (size_t i = 0; i < chosen.size() && !more; ++i) {
      more = ++chosen[i] <= backends.size();
      if (!more) chosen[i] = 0;
    }
  }
  return least;
}

TEST(PlaceByCost, RandomPlansAreBoundedByTheLeastCost) {
  register_test_compilers();
  kit::Property<RandomPlan> property;
  property.runs_ci = 60;
  property.runs_full = 1000;
  property.generate = random_plan;
  property.show = [](const RandomPlan& plan) {
    std::string text = plan.body;
    for (const auto& prices : plan.prices) {
      text += "\nprices:";
      for (const auto& [op, seconds] : prices) text += fmt::format(" {} {:.9f}", op, seconds);
    }
    for (const Sharing& one : plan.sharing)
      text += fmt::format("\nborder: {:.9f}, halved: {}", one.border_seconds, fmt::join(one.halved, " "));
    return fmt::format("{}\none call: {}", text, plan.one_call);
  };
  int exact = 0, runs = 0;
  property.check = [&](const RandomPlan& plan) -> std::optional<std::string> {
    const IRModule program = program_of(plan.body);
    const auto backend = [&](const char* name, size_t i) {
      return std::make_shared<Priced>(name, plan.prices[i], plan.sharing[i], (plan.one_call >> i & 1) != 0);
    };
    const Backends backends{backend("first", 0), backend("second", 1)};
    const PlacedByCost costed = placed_by_cost(program, OpCosts(backends, {kMachine}));
    const double counted = counted_seconds(costed.module, backends);
    const double least = least_seconds(program, backends);
    ++runs;
    exact += costed.plan.seconds < least + 1e-9 ? 1 : 0;
    if (std::abs(counted - costed.plan.seconds) > kTolerance)
      return fmt::format("the plan says {}, its module costs {}", costed.plan.seconds, counted);
    if (costed.plan.lower_bound > least + kTolerance)
      return fmt::format("bound {}, least {}", costed.plan.lower_bound, least);
    for (const LabelSeconds& other : costed.plan.others) {
      if (other.seconds < costed.plan.seconds) return fmt::format("'{}' costs less: {}", other.label, other.seconds);
    }
    return std::nullopt;
  };
  EXPECT_TRUE(kit::holds(property));
  EXPECT_GE(exact * 20, runs * 19) << exact << " of " << runs << " plans are the best ones";
}

}  // namespace
}  // namespace headrace::partition
