// Placement by plans and by overrides.
#include "partition/override_decision.h"
#include "partition/plan_file/plan_decision.h"

#include <gmock/gmock.h>

#include "partition/place.h"
#include "partition/program_graph.h"
#include "partition/tests/region_testing.h"

namespace headrace::partition {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// A backend that takes the ops of its list.
class Choosy : public Backend {
 public:
  Choosy(std::string name, std::vector<std::string> ops) : name_(std::move(name)), ops_(std::move(ops)) {}
  std::string_view name() const override { return name_; }
  std::string version() const override { return "7"; }
  Verdict supports(const relay::CallNode& call) const override {
    ++asked[call.as_op()->name];
    if (std::find(ops_.begin(), ops_.end(), call.as_op()->name) != ops_.end()) return {};
    return {.reason = HR_REASON_OP_UNSUPPORTED, .message = "is not in its list"};
  }
  std::vector<Expected<RegionCode>> compile(const RegionRequest&) const override { return {}; }

  mutable std::map<std::string, int> asked = {};  // how often, by op

 private:
  std::string name_;
  std::vector<std::string> ops_;
};

Backends one_and_two() {
  return {std::make_shared<Choosy>("one", std::vector<std::string>{"exp", "sin", "ones"}),
          std::make_shared<Choosy>("two", std::vector<std::string>{"exp", "cos"})};
}

constexpr const char* kProgram =
    "def @main(%x: Tensor[(4), float32]) {\n"
    "  let %a = exp(%x);\n"
    "  let %b = tan(%a);\n"
    "  cos(sin(%b))\n}";

Plan plan_of(const IRModule& module, const Backends& backends) {
  Plan plan = make_plan(PlanNames(module), OrderDecision(module, backends));
  plan.model_hash = std::string(32, '1');
  return plan;
}

// As a person writes it: from its text.
Plan edited(const Plan& plan, const std::string& before, const std::string& after) {
  std::string text = print_plan(plan);
  const size_t at = text.find(before);
  EXPECT_NE(at, std::string::npos) << text;
  return parse_plan(text.replace(at, before.size(), after), "plan.json");
}

std::vector<std::string> rows_of(const PlacedModule& placed) {
  std::vector<std::string> rows;
  for (const artifact::Placement& row : placed.placement)
    rows.push_back(fmt::format("{} {} {}", row.kind, row.backend, static_cast<int>(row.reason)));
  return rows;
}

std::vector<std::string> rows_of(const Plan& plan) {
  std::vector<std::string> rows;
  for (const PlannedOp& op : plan.ops) rows.push_back(fmt::format("{} {} {}", op.name, op.kind, op.backend));
  return rows;
}

// Rows, a plan and the graph of a decision by order are made of the answers by which it decided. Only the backends that
// come after the chosen one were not asked yet.
TEST(OrderDecision, ABackendIsAskedOnceAboutACall) {
  const IRModule module = read_program(kProgram);
  const auto one = std::make_shared<Choosy>("one", std::vector<std::string>{"exp", "sin", "ones"});
  const auto two = std::make_shared<Choosy>("two", std::vector<std::string>{"exp", "cos"});
  const OrderDecision decision(module, {one, two});
  const PlacedModule placed = place(decision);
  EXPECT_THAT(rows_of(make_plan(PlanNames(module), decision)), SizeIs(4));
  const std::map<std::string, int> once{{"exp", 1}, {"tan", 1}, {"sin", 1}, {"cos", 1}};
  EXPECT_EQ(one->asked, once);
  EXPECT_EQ(two->asked, (std::map<std::string, int>{{"tan", 1}, {"cos", 1}}));
  const ProgramGraph graph = read_graph(placed, decision);
  EXPECT_THAT(graph.nodes[2].alternatives[1].message, HasSubstr("is not in its list")) << "of tan on two";
  EXPECT_EQ(one->asked, once);
  EXPECT_EQ(two->asked, once);
}

TEST(PlanDecision, APlanOfAnOrder) {
  const IRModule module = read_program(kProgram);
  EXPECT_THAT(rows_of(plan_of(module, one_and_two())),
              ElementsAre("test.relay:3:12 exp one", "test.relay:4:12 tan native", "test.relay:5:7 sin one",
                          "test.relay:5:3 cos two"));
}

TEST(PlanDecision, PutsOpsWhereThePlanSays) {
  const IRModule module = read_program(kProgram);
  const Plan plan = edited(plan_of(module, one_and_two()), "\"backend\": \"one\"", "\"backend\": \"two\"");
  const PlanDecision decision(module, plan, one_and_two(), PlanNames(module));
  const PlacedModule placed = place(decision);
  EXPECT_THAT(rows_of(placed), ElementsAre("exp two 66", "tan native 66", "sin one 66", "cos two 66"));
  EXPECT_EQ(placed.regions.size(), 3u);
  // The plan is what it was, its reasons too.
  Plan again = make_plan(PlanNames(module), decision);
  again.model_hash = plan.model_hash;
  EXPECT_EQ(print_plan(again), print_plan(plan));
}

TEST(PlanDecision, NamesAreAloneOfTheirKind) {
  IRModule module = read_program("def @main(%x: Tensor[(4), float32]) { exp(exp(exp(tan(%x)))) }");
  const Span span = make_span("a"), taken = make_span("a#2");
  int count = 0;
  relay::post_order(module->lookup("main").cast<relay::FunctionNode>()->body, [&](const Expr& expr) {
    if (expr.is<relay::CallNode>()) const_cast<ExprNode&>(*expr).span = count++ == 1 ? taken : span;
  });
  std::vector<std::string> names;
  for (const NamedCall& one : PlanNames(module).calls_of(module)) names.push_back(one.name + " " + one.kind);
  EXPECT_THAT(names, ElementsAre("a tan", "a#2 exp", "a exp", "a#3 exp"));
}

TEST(PlanDecision, RefusesWhatTheModelOrABackendHasNot) {
  const IRModule module = read_program(kProgram);
  const Plan plan = plan_of(module, one_and_two());
  const auto error = [&](const std::string& before, const std::string& after) {
    const Plan wrong = edited(plan, before, after);
    return kit::user_error_of([&] { PlanDecision(module, wrong, one_and_two(), PlanNames(module)); });
  };
  EXPECT_EQ(error("reason", "reason"), "");
  const std::string unknown = error("test.relay:4:12", "test.relay:4:13");
  EXPECT_THAT(unknown, HasSubstr("plan.json:14:5: the model has no op 'test.relay:4:13' of kind tan; there is "));
  EXPECT_THAT(error("\"kind\": \"tan\"", "\"kind\": \"tanh\""), HasSubstr("has no op 'test.relay:4:12' of kind tanh"));
  const std::string sin = error("\"kind\": \"sin\", \"backend\": \"one\"", "\"kind\": \"sin\", \"backend\": \"two\"");
  EXPECT_THAT(sin, HasSubstr("plan.json:15:58: two does not take the op 'test.relay:5:7' of kind sin: is not in its "
                             "list"));
  EXPECT_THAT(error("\"kind\": \"sin\", \"backend\": \"one\"", "\"kind\": \"sin\", \"backend\": \"external\""),
              HasSubstr("calls no function of the process, so it cannot be 'external'"));
  const std::string text = print_plan(plan);
  const size_t row = text.find("    {\"name\": \"test.relay:5:3\"");
  const std::string last = text.substr(row, text.find('\n', row) - row);
  EXPECT_THAT(
      error(",\n" + last, ""),
      HasSubstr("plan.json:12:10: the op 'test.relay:5:3' of kind cos of the model is not in the list; add it"));
}

TEST(PlanDecision, ACallThatNoRegionHoldsStays) {
  const IRModule module =
      read_program("def @main(%x: Tensor[(4), float32]) { add(ones(shape=[4], dtype=\"float32\"), %x) }");
  const Plan plan = edited(plan_of(module, one_and_two()), "\"kind\": \"ones\", \"backend\": \"native\"",
                           "\"kind\": \"ones\", \"backend\": \"one\"");
  EXPECT_THAT(kit::user_error_of([&] { PlanDecision(module, plan, one_and_two(), PlanNames(module)); }),
              HasSubstr("one does not take the op 'test.relay:2:43' of kind ones: a call without operands computes in "
                        "no region"));
}

TEST(PlanDecision, SaysWhatIsOutOfDate) {
  const IRModule module = read_program(kProgram);
  const Plan fresh = plan_of(module, one_and_two());
  const Plan plan = edited(fresh, "reason", "reason");
  const auto error = [&](Plan now) { return kit::user_error_of([&] { check_is_current(plan, now); }); };
  EXPECT_EQ(error(fresh), "");
  Plan now = fresh;
  now.backends[1].version = "8";
  EXPECT_THAT(error(now), HasSubstr("plan.json:10:5: the plan is for version '7' of two, and here is version '8'"));
  now = fresh;
  now.model_hash = std::string(32, '2');
  EXPECT_THAT(error(now), HasSubstr("plan.json:5:13: the plan is for another model"));
  EXPECT_THAT(error(now), HasSubstr("its ops are the same, and their attributes, shapes or order are not"));
  now.ops.pop_back();
  EXPECT_THAT(error(now), HasSubstr("the op 'test.relay:5:3' of kind cos is not in it any more"));
  now.ops = fresh.ops;
  now.ops.push_back({.name = "new", .kind = "exp", .backend = "native"});
  EXPECT_THAT(error(now), HasSubstr("the op 'new' of kind exp is new"));
  now.inputs = {"x: int32"};
  EXPECT_THAT(error(now), HasSubstr("its inputs were  and are x: int32"));
}

TEST(PlanDecision, SaysThatItsCostsAreOthers) {
  const IRModule module = read_program(kProgram);
  Plan now = plan_of(module, one_and_two());
  const Plan without = edited(now, "reason", "reason");
  now.costs_hash = std::string(32, 'c');
  const Plan with = edited(now, "reason", "reason");
  const auto error = [&](const Plan& plan) { return kit::user_error_of([&] { check_is_current(plan, now); }); };
  EXPECT_EQ(error(with), "");
  EXPECT_THAT(error(without), HasSubstr("plan.json:1:1: the plan was made without measured costs"));
  now.costs_hash = std::string(32, 'd');
  EXPECT_THAT(error(with), HasSubstr("plan.json:8:12: the plan was made by other measured costs; make the plan again"));
  now.costs_hash = {};
  EXPECT_EQ(error(with), "");
}

std::unique_ptr<OverrideDecision> overriding(const IRModule& module, std::vector<PlaceOverride> overrides) {
  return std::make_unique<OverrideDecision>(std::make_shared<OrderDecision>(module, one_and_two()),
                                            std::move(overrides));
}

TEST(OverrideDecision, TheFirstThatMatchesDecides) {
  const IRModule module = read_program(kProgram);
  const auto decision = overriding(module, {{"*:3:*", "two"}, {"*relay:[35]*", "native"}});
  EXPECT_THAT(rows_of(place(*decision)), ElementsAre("exp two 67", "tan native 20", "sin native 67", "cos native 67"));
  const Plan plan = make_plan(PlanNames(module), *decision);
  EXPECT_EQ(plan.ops[2].reason, HR_REASON_PLACE_BY_OVERRIDE);
  EXPECT_EQ(plan.ops[2].message, "--place '*relay:[35]*=native' says so");
  EXPECT_EQ(plan.ops[1].reason, HR_REASON_OP_UNSUPPORTED);
}

TEST(OverrideDecision, RefusesWhatHasNoEffect) {
  const IRModule module = read_program(kProgram);
  const auto error = [&](std::vector<PlaceOverride> overrides) {
    return kit::user_error_of([&] { overriding(module, std::move(overrides)); });
  };
  EXPECT_THAT(error({{"layer4.*", "native"}}), HasSubstr("--place 'layer4.*=native': it decides on no op"));
  EXPECT_THAT(error({{"*", "native"}, {"*:3:*", "two"}}), HasSubstr("--place '*:3:*=two': it decides on no op"));
  EXPECT_THAT(error({{"*", "three"}}), HasSubstr("the backend 'three' is not among those of this compile"));
  EXPECT_THAT(error({{"*", "three"}}), HasSubstr("; add it by --backends"));
  EXPECT_THAT(error({{"*", "ones"}}),
              HasSubstr("the backend 'ones' is not among those of this compile; did you mean one?"));
  EXPECT_THAT(error({{"*", " native"}}), HasSubstr("did you mean native?"));
  EXPECT_THAT(error({{"layer4.*", "native"}}), HasSubstr("no op; no name matches (headrace"));
  EXPECT_THAT(error({{"*", "native"}, {"*:3:*", "two"}}), HasSubstr("or an earlier --place matches the same ops"));
  EXPECT_THAT(error({{"sin", "native"}}), HasSubstr("it is compared with names of ops, and not with their kinds"));
  EXPECT_THAT(error({{"*:4:*", "one"}}),
              HasSubstr("--place '*:4:*=one': one does not take the tan at test.relay:4:12: is not in its list"));
}

}  // namespace
}  // namespace headrace::partition
