// Tables of measured costs: what a call is known by, the file, and how placement by cost uses them.
#include "partition/placement/cost_table.h"

#include <gmock/gmock.h>

#include "object/structural_equal.h"
#include "partition/placement/by_cost.h"
#include "partition/place.h"
#include "partition/instances.h"
#include "partition/placement/tests/cost_testing.h"

namespace headrace::partition {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

std::string key_of(const std::string& program) {
  return cost_key(*passes::main_of(read_program(program)).body.as<relay::CallNode>());
}

TEST(CostKey, NamesOpAttributesShapesAndTypes) {
  const std::string key = key_of("def @main(%a: Tensor[(2, 3), float32]) { nn.softmax(%a) }");
  EXPECT_EQ(key, key_of("def @main(%b: Tensor[(2, 3), float32]) { nn.softmax(%b) }"));
  EXPECT_NE(key, key_of("def @main(%a: Tensor[(2, 3), float32]) { nn.log_softmax(%a) }"));
  EXPECT_NE(key, key_of("def @main(%a: Tensor[(2, 3), float32]) { nn.softmax(%a, axis=0) }"));
  EXPECT_NE(key, key_of("def @main(%a: Tensor[(3, 2), float32]) { nn.softmax(%a) }"));
  EXPECT_NE(key, key_of("def @main(%a: Tensor[(2, 3), float64]) { nn.softmax(%a) }"));
}

TEST(CostKey, AConstantIsNotAVariable) {
  const std::string one = key_of("def @main(%a: Tensor[(2), float32]) { add(%a, 1f) }");
  EXPECT_EQ(one, key_of("def @main(%a: Tensor[(2), float32]) { add(%a, 2f) }"));
  EXPECT_NE(one, key_of("def @main(%a: Tensor[(2), float32], %b: float32) { add(%a, %b) }"));
}

TEST(CostKey, TheProgramComputesTheCall) {
  const IRModule module =
      read_program("def @main(%a: Tensor[(2), float32], %b: Tensor[(2), float32]) { concatenate((%a, %b)) }");
  const relay::Function alone = program_of_call(*passes::main_of(module).body.as<relay::CallNode>());
  EXPECT_EQ(alone->params.size(), 2u);
  EXPECT_TRUE(structural_equal(relay::infer_type(make_module(alone))->lookup("main")->checked_type(),
                               module->lookup("main")->checked_type()));
}

CostTable small_table() {
  CostTable table{.source = "t.json", .cpu = "znver4", .threads = 2, .costs = {}};
  table.costs[{"fn (%x0) { \"exp\" }", "native"}] = {"0.1", 1.5e-6};
  table.costs[{"fn (%x0) { \"exp\" }", "other"}] = {"", 0};
  table.plans[{"1f", "native"}] = {"0.1", 2e-3};
  table.plans[{"1f", "other,third"}] = {"5,6", 1e-3};
  table.plans[{"2e", "native"}] = {"0.1", 0};
  return table;
}

TEST(CostTable, TheFileReadsBack) {
  const CostTable read = parse_cost_table({to_json(small_table()), "t.json"});
  EXPECT_EQ(read.cpu, "znver4");
  EXPECT_EQ(read.threads, 2);
  EXPECT_EQ(read.costs.size(), 2u);
  EXPECT_EQ(read.find("fn (%x0) { \"exp\" }", "native"), 1.5e-6);
  EXPECT_EQ(read.find("fn (%x0) { \"exp\" }", "third"), std::nullopt);
  EXPECT_EQ(read.costs.begin()->second.version, "0.1");
  EXPECT_EQ(read.plans.size(), 3u);
  const MeasuredCost* plan = read.find_plan("1f", "other,third");
  ASSERT_NE(plan, nullptr);
  EXPECT_EQ(plan->version, "5,6");
  EXPECT_EQ(plan->seconds, 1e-3);
  EXPECT_EQ(read.find_plan("2e", "native")->seconds, 0);
  EXPECT_EQ(read.find_plan("2e", "other,third"), nullptr);
}

TEST(CostTable, TheFileHasAListOfPlans) {
  EXPECT_THAT(to_json(small_table()), HasSubstr(R"( "plans": [
  {
   "model": "1f",
   "plan": "native",
   "version": "0.1",
   "seconds": 0.002
  },)"));
}

// Tables that were made before there were plans.
TEST(CostTable, VersionOneIsRead) {
  const CostTable read = parse_cost_table({R"({"headrace_costs": 1, "cpu": "x", "threads": 3, "costs": [
      {"call": "c", "backend": "b", "version": "4", "seconds": 0.5}]})",
                                           "t.json"});
  EXPECT_EQ(read.threads, 3);
  EXPECT_EQ(read.find("c", "b"), 0.5);
  EXPECT_TRUE(read.plans.empty());
}

TEST(CostTable, FaultsHaveAPlace) {
  const auto error = [](const std::string& text) {
    return kit::user_error_of([&] { parse_cost_table({text, "t.json"}); });
  };
  EXPECT_THAT(error("{\n\"headrace_costs\": 1,,"), HasSubstr("t.json:2:21: a key in quotes should be here"));
  EXPECT_THAT(error("[]"), HasSubstr("t.json: it is not a table of costs"));
  for (const char* version : {"0", "4", "2.5", "\"2\""})
    EXPECT_THAT(error(fmt::format("{{\"headrace_costs\": {}}}", version)),
                HasSubstr(fmt::format("\"headrace_costs\" is {}, this program reads 1 to 3", version)));
  EXPECT_THAT(error("{\"headrace_costs\": 1}"), HasSubstr("t.json: there is no \"cpu\""));
  const auto head = [](const std::string& rest) { return "{\"headrace_costs\": 1, \"cpu\": \"x\", " + rest + "}"; };
  EXPECT_THAT(error(head("\"threads\": 0")), HasSubstr("\"threads\" is not a number from 1 on"));
  EXPECT_THAT(error(head("\"threads\": 1, \"costs\": 3")), HasSubstr("\"costs\" is not a list"));
  const auto row = [&](const std::string& text) { return head("\"threads\": 1, \"costs\": [" + text + "]"); };
  EXPECT_THAT(error(row("7")), HasSubstr("t.json: costs[0]: there is no \"seconds\""));
  const std::string good = "{\"call\": \"c\", \"backend\": \"b\", \"version\": \"\", \"seconds\": 1}";
  EXPECT_EQ(error(row(good)), "");
  EXPECT_THAT(error(row(good + "," + good)), HasSubstr("t.json: costs[1]: the call and the backend are there twice"));
  EXPECT_THAT(error(row("{\"call\": 1, \"backend\": \"b\", \"version\": \"\", \"seconds\": 1}")),
              HasSubstr("costs[0]: \"call\" is not text"));
  for (const char* seconds : {"-1", "1001", "\"fast\"", "null"}) {
    EXPECT_THAT(error(row(fmt::format("{{\"seconds\": {}}}", seconds))), HasSubstr("not a number from 0 to 1000"));
  }
}

TEST(CostTable, FaultsOfPlansHaveAPlace) {
  const auto error = [](const std::string& rest) {
    const std::string head = R"({"headrace_costs": 2, "cpu": "x", "threads": 1, "costs": [])";
    return kit::user_error_of([&] { parse_cost_table({head + rest + "}", "t.json"}); });
  };
  EXPECT_THAT(error(""), HasSubstr("t.json: there is no \"plans\""));
  EXPECT_THAT(error(R"(, "plans": {})"), HasSubstr("t.json: \"plans\" is not a list"));
  const auto rows = [&](const std::string& text) { return error(R"(, "plans": [)" + text + "]"); };
  const auto row = [](const std::string& plan, const std::string& seconds = "1") {
    return R"({"model": "1f", "version": "", "plan": )" + plan + R"(, "seconds": )" + seconds + "}";
  };
  EXPECT_EQ(rows(row(R"("native")") + "," + row(R"("onednn,ccompiler")")), "");
  EXPECT_EQ(rows(row(R"("a,b by cost 1f")") + "," + row(R"("a,b by cost 2e")") + "," + row(R"("a,b")")), "");
  EXPECT_THAT(rows("3"), HasSubstr("t.json: plans[0]: there is no \"seconds\""));
  EXPECT_THAT(rows(row("7")), HasSubstr("plans[0]: \"plan\" is not text"));
  EXPECT_THAT(rows(R"({"plan": "native", "version": "", "seconds": 1})"), HasSubstr("there is no \"model\""));
  EXPECT_THAT(rows(R"({"model": 5, "plan": "native", "version": "", "seconds": 1})"),
              HasSubstr("\"model\" is not text"));
  EXPECT_THAT(rows(R"({"model": "1f", "plan": "native", "seconds": 1})"), HasSubstr("there is no \"version\""));
  const std::string native = row(R"("native")");
  EXPECT_THAT(rows(native + "," + native), HasSubstr("plans[1]: the model and the plan are there twice"));
  for (const char* name : {"", ",", "onednn,", ",onednn", "native,onednn", "onednn,onednn", "onednn by cost ",
                           " by cost 1f", "a,a by cost 1f"}) {
    EXPECT_THAT(rows(row(fmt::format("\"{}\"", name))), HasSubstr(fmt::format("plans[0]: '{}' names no plan", name)));
  }
  for (const char* seconds : {"-1", "1001", "\"fast\"", "null", "[]"}) {
    EXPECT_THAT(rows(row(R"("native")", seconds)), HasSubstr("plans[0]: \"seconds\" is not a number from 0 to 1000"));
  }
}

// A backend that takes all ops; its cost does not count where one was measured.
class Measured : public Backend {
 public:
  explicit Measured(double border = 0, double seconds = 1) : border_(border), seconds_(seconds) {}
  std::string_view name() const override { return "measured"; }
  std::string version() const override { return "7"; }
  Verdict supports(const relay::CallNode&) const override { return {}; }
  double cost(const relay::CallNode&, const cost::Machine&, int) const override { return seconds_; }
  double border(const Type&, const cost::Machine&, int) const override { return border_; }
  std::vector<Expected<RegionCode>> compile(const RegionRequest& request) const override {
    return {request.regions.size(), Refusal{HR_REASON_SHAPE_UNSUPPORTED, "it compiles nothing"}};
  }

 private:
  double border_;
  double seconds_;
};

// One call by itself has a border on each side, which the regions of a plan may not have.
TEST(CostTable, TheShareOfBordersIsTakenOff) {
  const IRModule module = read_program("def @main(%x: Tensor[(4), float32]) { add(%x, 1f) }");
  const auto& call = *passes::main_of(module).body.as<relay::CallNode>();
  auto table = std::make_shared<CostTable>();
  table->costs[{cost_key(call), "measured"}] = {"7", 3e-6};
  const auto seconds_with = [&](double border) {
    return OpCosts({std::make_shared<Measured>(border)}, {.measured = table}).of(call)[1].seconds;
  };
  EXPECT_DOUBLE_EQ(seconds_with(0), 3e-6);
  EXPECT_DOUBLE_EQ(seconds_with(1), 1e-6) << "the estimates: 1 s for the call, 1 s for each of two borders";
}

// At most the borders themselves are taken off, and never all of the time.
TEST(CostTable, BordersTakeOffAPart) {
  const IRModule module = read_program("def @main(%x: Tensor[(4), float32]) { add(%x, %x) }");
  const auto& call = *passes::main_of(module).body.as<relay::CallNode>();
  EXPECT_EQ(program_of_call(call)->params.size(), 2u) << "a value that is there twice crosses two borders";
  auto table = std::make_shared<CostTable>();
  table->costs[{cost_key(call), "measured"}] = {"7", 4e-6};
  const auto seconds_with = [&](double border, double estimate) {
    return OpCosts({std::make_shared<Measured>(border, estimate)}, {.measured = table}).of(call)[1].seconds;
  };
  EXPECT_NEAR(seconds_with(1, 1), 1e-6, 1e-15) << "three borders of four parts";
  EXPECT_NEAR(seconds_with(1, 0), 4e-7, 1e-15) << "a tenth is left";
  EXPECT_NEAR(seconds_with(1e-7, 1e-7), 3.7e-6, 1e-15) << "three quarters would be more than the borders";
}

TEST(CostTable, ANativeConvolutionIsFasterInANetwork) {
  const auto seconds_of = [](const std::string& channels, const std::string& groups) {
    const IRModule module = read_program(
        "def @main(%x: Tensor[(1, 16, 32, 32), float32], %w: Tensor[(16, " + channels +
        ", 1, 1), float32]) {\n  nn.conv2d(%x, %w, kernel_size=[1, 1], channels=16, groups=" + groups + ") }");
    const auto& call = *passes::main_of(module).body.as<relay::CallNode>();
    auto table = std::make_shared<CostTable>();
    table->costs[{cost_key(call), kNative}] = {HEADRACE_VERSION, 3e-6};
    const cost::Machine machine{.packing_conv_share = 0.4, .network_conv_share = 0.8};
    return OpCosts({}, {.machine = machine, .measured = table}).of(call)[0].seconds;
  };
  EXPECT_DOUBLE_EQ(seconds_of("16", "1"), 1.5e-6);
  EXPECT_DOUBLE_EQ(seconds_of("1", "16"), 3e-6) << "depthwise";
}

TEST(CostTable, MeasuredCostsComeBeforeEstimates) {
  const std::string program = "def @main(%x: Tensor[(4), float32]) { tanh(exp(%x)) }";
  const std::string exp = key_of("def @main(%x: Tensor[(4), float32]) { exp(%x) }");
  auto table = std::make_shared<CostTable>();
  table->costs[{exp, kNative}] = {HEADRACE_VERSION, 5e-6};
  table->costs[{exp, "measured"}] = {"7", 2e-6};
  const Backends backends{std::make_shared<Measured>()};
  const CostDecision decision(read_program(program), OpCosts(backends, {.measured = table}));
  const PlacedModule placed = place(decision);
  ASSERT_EQ(placed.placement.size(), 2u);
  EXPECT_EQ(placed.placement[0].backend, "measured");
  EXPECT_EQ(placed.placement[1].backend, kNative);
  EXPECT_THAT(decision.plan().source, MatchesRegex("measured for 2 of 4 \\(the costs\\), the others estimated.*"));
  table->costs[{exp, "measured"}].version = "6";
  EXPECT_THAT(kit::user_error_of([&] { OpCosts(backends, {.measured = table}); }),
              HasSubstr("of 'measured' was measured with version '6', and this is version '7'"));
}

// A backend that was not measured is no faster beside measured native code than its estimate is beside the estimate.
TEST(CostTable, EstimatesOfBackendsFollowMeasuredNativeCode) {
  const IRModule module = read_program("def @main(%x: Tensor[(64, 64), float32]) { exp(%x) }");
  const auto& call = *passes::main_of(module).body.as<relay::CallNode>();
  const double estimate = OpCosts({}, {.machine = {}}).of(call)[0].seconds;
  auto table = std::make_shared<CostTable>();
  const Backends backends{std::make_shared<Measured>(0, estimate / 2)};
  const auto seconds_of = [&] { return OpCosts(backends, {.machine = {}, .measured = table}).of(call)[1].seconds; };
  EXPECT_DOUBLE_EQ(seconds_of(), estimate / 2);
  table->costs[{cost_key(call), kNative}] = {HEADRACE_VERSION, 10 * estimate};
  EXPECT_DOUBLE_EQ(seconds_of(), 5 * estimate);
  table->costs[{cost_key(call), "measured"}] = {"7", estimate};
  EXPECT_DOUBLE_EQ(seconds_of(), estimate);
}

// A match of a pattern that was not measured is missing, as a call is.
TEST(CostTable, MatchesWithoutCostsAreCounted) {
  const IRModule program = program_of("exp(tanh(%x))");
  const Backends backends{priced("chip", {}, "{ chip.both: exp(tanh(_)) }", 1e-6)};
  auto table = std::make_shared<CostTable>();
  for_each_placeable(program, [&](const relay::CallNode& call) {
    table->costs[{cost_key(call), kNative}] = {HEADRACE_VERSION, 1e-6};
  });
  const auto source = [&] { return CostDecision(program, OpCosts(backends, {.measured = table})).plan().source; };
  EXPECT_THAT(source(), HasSubstr("measured for 2 of 3 (the costs), the others estimated"));
  for (const Instance& one : find_instances(program, backends).all)
    table->costs[{cost_key(*one.call.as<relay::CallNode>()), "chip"}] = {"", 1e-6};
  EXPECT_EQ(source(), "measured (the costs)");
}

}  // namespace
}  // namespace headrace::partition
