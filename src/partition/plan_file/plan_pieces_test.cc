// Plans with rows of patterns: what their parts say, and what a wrong list of parts says and where.
#include "partition/plan_file/plan_pieces.h"

#include <gmock/gmock.h>

#include "object/structural_equal.h"
#include "partition/break_up.h"
#include "partition/plan_file/plan_decision.h"
#include "partition/placement/tests/cost_testing.h"

namespace headrace::partition {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Gives all calls of main one place, as a model does whose nodes all have one name.
IRModule all_at_one_place(const IRModule& module) {
  const Span span = make_span("n");
  relay::post_order(passes::main_of(module).body, [&](const Expr& expr) {
    if (expr.is<relay::CallNode>()) const_cast<ExprNode&>(*expr).span = span;
  });
  return module;
}

IRModule program_at_one_place(const std::string& body) {
  return all_at_one_place(
      read_program("def @main(%x: Tensor[(64, 64), float32], %y: Tensor[(512, 512), float32]) {\n" + body + "}"));
}

constexpr const char* kTwoPairs = "(sin(cos(%x)), sin(cos(%y)))";

Backends pair_backend() { return {priced("aa", {}, "{ aa.pair: sin(cos(_)), aa.far: exp(sin(cos(_))) }")}; }

Plan read_again(Plan plan) {
  plan.model_hash = std::string(32, '1');
  return parse_plan(print_plan(plan), "plan.json");
}

// The plan in which all goes to the first backend that takes it.
Plan read_plan_of_order(const IRModule& program, const Backends& backends) {
  return read_again(make_plan(PlanNames(program), OrderDecision(compose(program, backends), backends)));
}

IRModule split_again(const Plan& plan, const IRModule& program, const Backends& backends) {
  PatternRefusals refusals;
  return split_of_plan(plan, PlanNames(program), program, backends, refusals);
}

std::vector<std::string> row_names(const IRModule& program, const IRModule& module) {
  std::vector<std::string> rows;
  for (const NamedCall& one : PlanNames(program).calls_of(module)) rows.push_back(one.name + " " + one.kind);
  return rows;
}

std::vector<std::string> shown_rows(const Plan& plan) {
  std::vector<std::string> rows;
  for (const PlannedOp& op : plan.ops) {
    rows.push_back(fmt::format("{} {} {}", op.name, op.kind, op.backend));
    for (const PlannedPart& part : op.parts) rows.back() += fmt::format(" [{} {}]", part.name, part.kind);
  }
  return rows;
}

// The parameter of the program that each call of a composite function takes.
std::vector<std::string> inputs_of_pieces(const IRModule& module) {
  std::vector<std::string> inputs;
  for_each_decided_call(module, [&](const relay::CallNode& call) {
    if (call.as_op() == nullptr) inputs.push_back(call.args[0].as<relay::VarNode>()->name_hint);
  });
  return inputs;
}

// The numbers behind names are those of the program, whichever of its ops a pattern takes.
TEST(PlanPieces, PatternsDoNotChangeTheNamesOfOps) {
  const IRModule program = program_at_one_place(kTwoPairs);
  EXPECT_THAT(row_names(program, program), ElementsAre("n cos", "n sin", "n#2 cos", "n#2 sin"));
  const InstanceSet set = find_instances(program, pair_backend());
  const auto with = [&](size_t which) {
    return with_instances_where(set, [&](const Instance& one) { return &one == &set.all.at(which); });
  };
  std::vector<std::vector<std::string>> names{row_names(program, with(0)), row_names(program, with(1))};
  std::sort(names.begin(), names.end());
  EXPECT_THAT(names[0], ElementsAre("n aa.pair", "n#2 cos", "n#2 sin"));
  EXPECT_THAT(names[1], ElementsAre("n cos", "n sin", "n#2 aa.pair"));
}

// The backend takes one of two pairs that have the same names.
TEST(PlanPieces, ThePairIsTheOneThatThePlanWasMadeFor) {
  const IRModule program = program_at_one_place(kTwoPairs);
  const Backends backends = pair_backend();
  const InstanceSet set = find_instances(program, backends);
  for (const char* wanted : {"x", "y"}) {
    const IRModule split = with_instances_where(
        set, [&](const Instance& one) { return one.inputs[0].as<relay::VarNode>()->name_hint == wanted; });
    const Plan plan = read_again(make_plan(PlanNames(program), OrderDecision(split, backends)));
    const IRModule again = split_again(plan, program, backends);
    EXPECT_TRUE(structural_equal(again, split)) << relay::print_module(again);
    EXPECT_THAT(inputs_of_pieces(again), ElementsAre(wanted));
  }
}

TEST(PlanPieces, ARowListsItsParts) {
  const IRModule program = program_at_one_place(kTwoPairs);
  const Plan plan = read_plan_of_order(program, pair_backend());
  EXPECT_THAT(shown_rows(plan), ElementsAre("n aa.pair aa [n cos] [n sin]", "n#2 aa.pair aa [n#2 cos] [n#2 sin]"));
  EXPECT_TRUE(structural_equal(split_again(plan, program, pair_backend()), compose(program, pair_backend())));
}

// A part that others use, too, has a row as well. Where the piece is broken up, the op has one row.
TEST(PlanPieces, APartThatIsComputedTwiceIsInBothRows) {
  const IRModule program = program_at_one_place("%0 = exp(%x); add(%0, tan(%0))");
  const Backends backends{priced("aa", {}, "{ aa.sum: add(exp(_), _) }")};
  const Plan plan = read_plan_of_order(program, backends);
  EXPECT_THAT(shown_rows(plan), ElementsAre("n exp native", "n tan native", "n aa.sum aa [n exp] [n add]"));
  const IRModule split = split_again(plan, program, backends);
  EXPECT_TRUE(structural_equal(split, compose(program, backends)));
  std::set<const Object*> pieces;
  for_each_decided_call(split, [&](const relay::CallNode& call) {
    if (call.as_op() == nullptr) pieces.insert(&call);
  });
  const OrderDecision order(break_up(split, pieces).module, backends);
  const Plan broken = read_again(make_plan(PlanNames(program), order));
  EXPECT_THAT(shown_rows(broken), ElementsAre("n exp native", "n tan native", "n add native"));
  EXPECT_TRUE(structural_equal(split_again(broken, program, backends), program));
}

// A composite function of the program itself is a piece, too.
constexpr const char* kOwnPiece = R"(def @main(%x: Tensor[(4), float32]) {
  let %a = fn (%p: Tensor[(4), float32], Composite="own.pair") { sin(cos(%p)) }(%x);
  sin(cos(%a))
})";

TEST(PlanPieces, ThePiecesOfTheProgramStayOrAreBrokenUp) {
  const IRModule program = all_at_one_place(read_program(kOwnPiece));
  const Backends backends = pair_backend();
  const Plan whole = read_plan_of_order(program, backends);
  EXPECT_THAT(shown_rows(whole),
              ElementsAre("n own.pair native [n cos] [n sin]", "n#2 aa.pair aa [n#2 cos] [n#2 sin]"));
  EXPECT_TRUE(structural_equal(split_again(whole, program, backends), compose(program, backends)));
  Plan broken = whole;
  broken.ops[0] = {.name = "n", .kind = "cos", .backend = "native"};
  broken.ops.push_back({.name = "n", .kind = "sin", .backend = "native"});
  const IRModule split = split_again(read_again(broken), program, backends);
  EXPECT_THAT(row_names(program, split), ElementsAre("n cos", "n sin", "n#2 aa.pair"));
}

struct WrongRow {
  const char* before;   // a part of the rows below
  const char* after;    // in its place
  const char* place;    // "line:column"
  const char* message;  // a part
};

constexpr const char* kGoodRows = R"({"headrace": "plan", "version": 2,
"model": {"hash": "0123456789abcdef0123456789abcdef", "inputs": []},
"backends": [{"name": "aa", "version": ""}], "ops": [
{"name": "n", "kind": "aa.pair", "backend": "aa", "parts": [{"name": "n", "kind": "cos"}, {"name": "n", "kind": "sin"}]},
{"name": "n", "kind": "exp", "backend": "native"},
{"name": "n#2", "kind": "cos", "backend": "native"},
{"name": "n#2", "kind": "sin", "backend": "native"}
]})";

constexpr WrongRow kWrongRows[] = {
    {"\"kind\": \"cos\"}", "\"kind\": \"tan\"}", "4:61", "the model has no op 'n' of kind tan"},
    {"{\"name\": \"n\", \"kind\": \"cos\"}", "{\"name\": \"n#3\", \"kind\": \"cos\"}", "4:61",
     "the model has no op 'n#3' of kind cos"},
    {"{\"name\": \"n\", \"kind\": \"cos\"}", "{\"name\": \"n#2\", \"kind\": \"cos\"}", "4:61",
     "the pattern aa.pair does not match these ops as one; make the plan again"},
    {"{\"name\": \"n\", \"kind\": \"cos\"}, ", "", "4:61", "the pattern aa.pair does not match these ops as one"},
    {"aa.pair", "aa.pear", "4:61", "no backend of the plan has a pattern 'aa.pear'; did you mean aa.pair"},
    {", \"parts\": [{\"name\": \"n\", \"kind\": \"cos\"}, {\"name\": \"n\", \"kind\": \"sin\"}]", "", "4:1",
     "the row of the pattern aa.pair does not list the ops that it has as \"parts\"; make the plan again"},
    {"\"n#2\", \"kind\": \"sin\", \"backend\": \"native\"",
     "\"n#2\", \"kind\": \"aa.pair\", \"backend\": \"aa\", \"parts\": [{\"name\": \"n\", \"kind\": \"sin\"}, "
     "{\"name\": \"n\", \"kind\": \"cos\"}]",
     "7:63", "another row of the pattern aa.pair has these parts; remove one of the two"},
    {"\"kind\": \"exp\", \"backend\": \"native\"",
     "\"kind\": \"aa.far\", \"backend\": \"aa\", \"parts\": [{\"name\": \"n\", \"kind\": \"exp\"}, "
     "{\"name\": \"n\", \"kind\": \"sin\"}, {\"name\": \"n\", \"kind\": \"cos\"}]",
     "5:120", "the row 'n' of the pattern aa.pair has the op 'n' of kind cos as well, and only one of the two can"},
    {"\"n\", \"kind\": \"exp\"", "\"n\", \"kind\": \"cos\"", "5:1",
     "the op 'n' of kind cos is a part of the row 'n' of the pattern aa.pair already; remove one of the two"},
    {"\"n\", \"kind\": \"exp\"", "\"n\", \"kind\": \"tan\"", "5:1", "the model has no op 'n' of kind tan"},
    {"{\"name\": \"n#2\", \"kind\": \"cos\", \"backend\": \"native\"},\n", "", "3:53",
     "the op 'n#2' of kind cos of the model is not in the list; add it"},
    {"{\"name\": \"n\", \"kind\": \"aa.pair\"", "{\"name\": \"m\", \"kind\": \"aa.pair\"", "4:1",
     "the model has no op 'm' of kind aa.pair"},
};

TEST(PlanPieces, EachWrongRowSaysWhere) {
  const IRModule program = program_at_one_place("(exp(sin(cos(%x))), sin(cos(%y)))");
  const Backends backends = pair_backend();
  const auto error = [&](const std::string& text) {
    return kit::user_error_of([&] {
      const Plan plan = parse_plan(text, "wrong.json");
      const IRModule split = split_again(plan, program, backends);
      PlanDecision(split, plan, backends, PlanNames(program));
    });
  };
  EXPECT_EQ(error(kGoodRows), "");
  for (const WrongRow& wrong : kWrongRows) {
    std::string text = kGoodRows;
    const size_t at = text.find(wrong.before);
    ASSERT_NE(at, std::string::npos) << wrong.before;
    text.replace(at, std::string_view(wrong.before).size(), wrong.after);
    EXPECT_THAT(error(text), HasSubstr(fmt::format("wrong.json:{}: {}", wrong.place, wrong.message))) << wrong.after;
  }
}

// Plans of any matches, of programs whose ops all have one name, place the same ops when they are read from their text.
TEST(PlanPieces, RandomPlansAreReadAgain) {
  register_test_compilers();
  int64_t pieces = 0;
  kit::Property<RandomPlan> property;
  property.runs_ci = 150;
  property.runs_full = 1500;
  property.generate = [](kit::Random& random) {
    return with_random_patterns(random_plan(random, kit::by_size(7, 10)), random);
  };
  property.show = show_plan;
  property.check = [&](const RandomPlan& random) -> std::optional<std::string> {
    const IRModule program = all_at_one_place(program_of(random.body));
    const Backends backends = backends_of_plan(random);
    kit::Random chance(random.body.size() * 31 + random.one_call);
    const IRModule chosen =
        with_instances_where(find_instances(program, backends), [&](const Instance&) { return chance.chance(0.5F); });
    const OrderDecision order(chosen, backends);
    const Plan plan = read_again(make_plan(PlanNames(program), order));
    const IRModule split = split_again(plan, program, backends);
    pieces += static_cast<int64_t>(count_composites(split));
    const PlanDecision by_plan(split, plan, backends, PlanNames(program));
    const std::string before = relay::print_module(place(order).module);
    const std::string after = relay::print_module(place(by_plan).module);
    if (before != after) return fmt::format("{}\nis placed as\n{}", before, after);
    return std::nullopt;
  };
  EXPECT_TRUE(kit::holds(property));
  EXPECT_GT(pieces, kit::detail::runs_of(property) / 4);
}

}  // namespace
}  // namespace headrace::partition
