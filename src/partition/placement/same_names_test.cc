// Programs in which calls of one kind have one place, or none: each call has its own reasons.
#include <gmock/gmock.h>

#include "partition/override_decision.h"
#include "partition/place.h"
#include "partition/placement/tests/cost_testing.h"

namespace headrace::partition {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Takes the places of all calls of main away.
IRModule without_places(const IRModule& module) {
  relay::post_order(passes::main_of(module).body, [&](const Expr& expr) {
    if (expr.is<relay::CallNode>()) const_cast<ExprNode&>(*expr).span = {};
  });
  return module;
}

IRModule program_without_places(const std::string& body) {
  return without_places(
      read_program("def @main(%x: Tensor[(64, 64), float32], %y: Tensor[(512, 512), float32]) {\n" + body + "}"));
}

// The messages of the calls of a kind, in their order.
std::vector<std::string> messages_of(const PlacedModule& placed, const std::string& kind) {
  std::vector<std::string> messages;
  for (const artifact::Placement& row : placed.placement) {
    if (row.kind == kind) messages.push_back(row.message);
  }
  return messages;
}

TEST(SameNames, APatternIsNamedAtItsOwnOps) {
  const IRModule program = program_without_places("(tanh(exp(%x)), tanh(sqrt(%y)))");
  const Backends backends{priced("own", {{"own.both", 1.0}}, "{ own.both: tanh(exp(_)) }")};
  const PlacedByCost placed = placed_by_cost(program, OpCosts(backends, {kMachine}));
  const std::string pattern = "; the pattern own.both, which takes it, costs 1 s by own";
  EXPECT_THAT(messages_of(placed, "tanh"), ElementsAre(HasSubstr(pattern), Not(HasSubstr(pattern))));
  EXPECT_THAT(messages_of(placed, "exp"), ElementsAre(HasSubstr(pattern)));
  EXPECT_THAT(messages_of(placed, "sqrt"), ElementsAre(Not(HasSubstr(pattern))));
}

TEST(SameNames, AKernelIsThatOfItsOwnOperand) {
  const IRModule program = program_without_places("(tanh(exp(%x)), tanh(sqrt(%y)))");
  const Backends backends{priced("own", {{"tanh", 0.5}, {"exp", 0.5}, {"sqrt", 0.5}})};
  const PlacedByCost placed = placed_by_cost(program, OpCosts(backends, {kMachine}));
  EXPECT_THAT(messages_of(placed, "tanh"),
              ElementsAre(HasSubstr("natively in the kernel of exp"), HasSubstr("natively in the kernel of sqrt")));
}

// The instances of a pattern that a plan takes, one of which saves by its operand in the region.
TEST(SameNames, ARegionIsThatOfItsOwnOperand) {
  const IRModule program = program_without_places("(exp(sqrt(%x)), exp(%y))");
  const Backends backends{std::make_shared<Priced>("own", std::map<std::string, double>{{"exp", 2e-9}, {"sqrt", 1e-9}},
                                                   Sharing{.halved = {"exp"}})};
  const PlacedByCost placed = placed_by_cost(program, OpCosts(backends, {kMachine}));
  EXPECT_THAT(backends_of(placed), ElementsAre("sqrt own", "exp own", "exp own"));
  EXPECT_THAT(messages_of(placed, "exp"),
              ElementsAre(HasSubstr("0.001 us by own with sqrt"), HasSubstr("0.002 us by own,")));
}

// A backend that refuses a pattern for values of 64 rows.
class RefusesSmall : public Priced {
 public:
  RefusesSmall(const std::string& name, const std::string& patterns) : Priced(name, {}, patterns) {
    for (const CompositePattern& entry : Priced::patterns()) table_.push_back(entry);
    for (CompositePattern& entry : table_) {
      entry.accepts = [](const relay::PatternGroup& group, const Expr&) -> CheckAnswer {
        if (group.root->checked_type().as<TensorTypeNode>()->concrete_shape()[0] != 64) return true;
        return Verdict{.reason = HR_REASON_SHAPE_UNSUPPORTED, .message = "it is too small"};
      };
    }
  }
  std::span<const CompositePattern> patterns() const override { return table_; }

 private:
  std::vector<CompositePattern> table_;
};

PlacedModule placed_by_order(const IRModule& program, const Backends& backends) {
  PatternRefusals refusals;
  const IRModule composed = compose(program, backends, &refusals);
  return place(OrderDecision(composed, backends, refusals.of_split(program, composed)));
}

// The match of one of two equal calls is refused, also where an earlier pattern has changed the calls between.
TEST(SameNames, ARefusalIsOfItsOwnOps) {
  const std::string refused = "its pattern bb.pair is refused here: it is too small";
  for (const char* body :
       {"(tanh(exp(%x)), tanh(exp(%y)), tanh(sqrt(%y)))", "(tanh(exp(cos(%x))), tanh(exp(%y)), tanh(sqrt(%y)))"}) {
    const IRModule program = program_without_places(body);
    const Backends backends{priced("aa", {}, "{ aa.cos: cos(_) }"),
                            std::make_shared<RefusesSmall>("bb", "{ bb.pair: tanh(exp(_)) }")};
    const PlacedModule placed = placed_by_order(program, backends);
    EXPECT_THAT(messages_of(placed, "tanh"),
                ElementsAre(HasSubstr(refused), HasSubstr("bb.pair matches"), Not(HasSubstr(refused))))
        << body;
    EXPECT_THAT(messages_of(placed, "exp"), ElementsAre(HasSubstr(refused), HasSubstr("bb.pair matches"))) << body;
  }
}

TEST(SameNames, AnOverrideIsNamedAtTheOpsThatItFrees) {
  const IRModule program =
      read_program("def @main(%x: Tensor[(4), float32]) {\n  (tanh(exp(%x)), tanh(sqrt(%x)), tanh(exp(%x)))\n}");
  const Backends backends{priced("own", {}, "{ own.both: tanh(exp(_)) }")};
  const Span named = make_span("named"), other = make_span("other");
  int exps = 0;
  relay::post_order(passes::main_of(program).body, [&](const Expr& expr) {
    const auto* call = expr.as<relay::CallNode>();
    if (call != nullptr)
      const_cast<ExprNode&>(*expr).span = call->as_op()->name == "exp" && exps++ == 0 ? named : other;
  });
  const IRModule composed = compose(program, backends);
  const PlacedModule placed = place(OverrideDecision(std::make_shared<OrderDecision>(composed, backends),
                                                     {{.pattern = "named", .backend = kNative}}));
  EXPECT_THAT(backends_of(placed),
              ElementsAre("exp native", "tanh native", "sqrt native", "tanh native", "exp own", "tanh own"));
  const std::string freed = "--place 'named=native' breaks up the pattern own.both that it was in";
  EXPECT_THAT(messages_of(placed, "tanh"), ElementsAre(HasSubstr(freed), Not(HasSubstr(freed)), Not(HasSubstr(freed))));
  EXPECT_EQ(placed.placement[1].reason, HR_REASON_PLACE_BY_OVERRIDE);
  EXPECT_EQ(placed.placement[3].reason, HR_REASON_OP_UNSUPPORTED);
}

// Calls of the placed program, by the call of the program before.
TEST(SameNames, PlacedCallsAreThoseOfTheModule) {
  const IRModule program = program_without_places("(tanh(exp(%x)), tanh(exp(%y)), sqrt(tanh(%x)))");
  const Backends backends{priced("own", {{"exp", 1}}, "{ own.root: sqrt(tanh(_)) }")};
  const IRModule composed = compose(program, backends);
  std::set<const Object*> before, now;
  for_each_decided_call(composed, [&](const relay::CallNode& call) { before.insert(&call); });
  const PlacedModule placed = place(composed, backends);
  for (const relay::Function& region : regions_of(placed.module)) {
    relay::post_order(
        region->body, [](const Expr& expr) { return !expr.is<relay::FunctionNode>(); },
        [&](const Expr& expr) {
          if (const auto* call = expr.as<relay::CallNode>()) now.insert(&placed.call(*call).own);
        });
  }
  for_each_decided_call(placed.module, [&](const relay::CallNode& call) { now.insert(&placed.call(call).own); });
  EXPECT_EQ(now, before);
  EXPECT_EQ(now.size(), 5u);
}

// A hook keeps a call and makes others.
TEST(SameNames, ACallThatAHookMakesHasNoneBefore) {
  const IRModule program = read_program("def @main(%x: Tensor[(4), float32]) { negative(exp(%x)) }");
  register_global("relay.ext.rewriting.optimize", make_packed([](const IRModule&) {
                    return relay::parse_module(
                        "#[version = \"0.0.5\"]\ndef @main(%a: Tensor[(4), float32]) { exp(negative(negative(%a))) }");
                  }),
                  true);
  const auto* result = passes::main_of(program).body.as<relay::CallNode>();
  const auto* exp = result->args[0].as<relay::CallNode>();
  const Partitioned made = partition_by_labels(program, {{exp, "rewriting"}});
  const Expr body = regions_of(made.module).at(0)->body;
  EXPECT_THAT(made.before.find(body.object()), testing::Pointee(exp));
  EXPECT_FALSE(made.before.contains(body.as<relay::CallNode>()->args[0].object()));
  EXPECT_THAT(made.before.find(passes::main_of(made.module).body.object()), testing::Pointee(result));
}

}  // namespace
}  // namespace headrace::partition
