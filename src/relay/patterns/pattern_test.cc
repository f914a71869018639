// Patterns in C++: nodes, the matcher's rules and limits, groups, the text form.
#include <gtest/gtest.h>

#include "kit/errors.h"
#include "kit/options.h"
#include "object/json.h"
#include "object/structural_equal.h"
#include "ops/all_ops.h"
#include "relay/infer/infer_type.h"
#include "relay/patterns/matcher.h"
#include "relay/patterns/partition.h"
#include "relay/patterns/pattern_text.h"
#include "relay/patterns/rewrite.h"
#include "relay/text/parse.h"
#include "relay/text/print.h"
#include "relay/visit.h"

namespace headrace::relay {
namespace {

using namespace patterns;

DFPattern pattern_of(const std::string& text) {
  ops::register_all_ops();
  return parse_pattern(text);
}

Expr expr_of(const std::string& text) {
  ops::register_all_ops();
  return parse_expr(text);
}

constexpr const char* kVars = "free_var %x: Tensor[(2, 3), float32];\nfree_var %y: Tensor[(2, 3), float32];\n";

bool matches(const std::string& pattern, const std::string& expr) {
  const DFPattern read = pattern_of(pattern);
  const bool result = match_pattern(read, expr_of(kVars + expr));
  release_recursions(read);
  return result;
}

// Returns the expression after partitioning by the pattern, as text without the variables.
std::string split_by(const std::string& pattern, const std::string& expr) {
  const std::string text = print_expr(partition_pattern(pattern_of(pattern), expr_of(kVars + expr)));
  const size_t last = text.rfind("free_var");
  return text.substr(text.find('\n', last) + 1);
}

struct MatchCase {
  const char* pattern;
  const char* expr;
  bool matches;
};

class Matches : public testing::TestWithParam<MatchCase> {};

TEST_P(Matches, AsWritten) {
  EXPECT_EQ(matches(GetParam().pattern, GetParam().expr), GetParam().matches)
      << GetParam().pattern << " / " << GetParam().expr;
}

INSTANTIATE_TEST_SUITE_P(
    Patterns, Matches,
    testing::Values(
        MatchCase{"_", "%x", true}, MatchCase{"var", "%x", true}, MatchCase{"var(\"y\")", "%x", false},
        MatchCase{"const", "%x", false}, MatchCase{"const", "1f", true}, MatchCase{"expr(\"1f\")", "1f", true},
        MatchCase{"expr(\"2f\")", "1f", false}, MatchCase{"exp(_)", "exp(%x)", true},
        MatchCase{"exp(_)", "tanh(%x)", false}, MatchCase{"exp(*)", "exp(%x)", true},
        MatchCase{"_(*)", "add(%x, %y)", true}, MatchCase{"_(_)", "add(%x, %y)", false},
        MatchCase{"add(exp(_), _)", "add(%x, exp(%y))", true},
        MatchCase{"subtract(exp(_), _)", "subtract(%x, exp(%y))", false},
        MatchCase{"%0 = _; add(%0, %0)", "add(%x, %y)", false}, MatchCase{"%0 = _; add(%0, %0)", "add(%x, %x)", true},
        MatchCase{"exp(_) or tanh(_)", "tanh(%x)", true}, MatchCase{"exp(_) or tanh(_)", "%x", false},
        MatchCase{"tuple(_, exp(_))", "(%x, exp(%y))", true}, MatchCase{"tuple(*)", "()", true},
        MatchCase{"tuple()", "(%x, %y)", false}, MatchCase{"item(_, 1)", "(%x, %y).1", true},
        MatchCase{"item(_, 1)", "(%x, %y).0", false}, MatchCase{"item(_)", "(%x, %y).0", true},
        MatchCase{"if(_, exp(_), _)", "if (True) { exp(%x) } else { %y }", true},
        MatchCase{"let(_, exp(_), _)", "let %a = exp(%x); %a", true},
        MatchCase{"fn(_) { exp(_) }", "fn (%a) { exp(%a) }", true},
        MatchCase{"fn(_, _) { exp(_) }", "fn (%a) { exp(%a) }", false},
        MatchCase{"fn(*) { exp(_) }", "fn (%a) { exp(%a) }", true}, MatchCase{"_[dtype float32]", "exp(%x)", true},
        MatchCase{"_[dtype int8]", "exp(%x)", false}, MatchCase{"_[shape (2, 3)]", "exp(%x)", true},
        MatchCase{"_[shape (2, ?)]", "exp(%x)", false},
        MatchCase{"_[type \"Tensor[(2, 3), float32]\"]", "exp(%x)", true},
        MatchCase{"sum(_)[attrs axis=[1]]", "sum(%x, axis=[1])", true},
        MatchCase{"sum(_)[attrs axis=[0]]", "sum(%x, axis=[1])", false},
        MatchCase{"sum(_)[attrs axes=[1]]", "sum(%x, axis=[1])", false},
        MatchCase{"(var(\"x\") * var(\"y\")) / const", "multiply(divide(%y, 2f), %x)", true},
        MatchCase{"(var(\"x\") * var(\"y\")) / const", "multiply(%y, divide(%x, 2f))", true},
        MatchCase{"(var(\"x\") * var(\"y\")) / const", "multiply(%y, divide(2f, %x))", false},
        MatchCase{"(var(\"x\") / const) * var(\"y\")", "divide(multiply(%y, %x), 2f)", true},
        MatchCase{"(var(\"x\") / const) * var(\"y\")", "divide(multiply(%y, %y), 2f)", false},
        MatchCase{"dominates(exp(_), tanh(_), add(_, _))", "%0 = exp(%x); add(tanh(tanh(%0)), tanh(%0))", true},
        MatchCase{"dominates(exp(_), tanh(_), add(_, _))", "%0 = exp(%x); add(tanh(abs(%0)), tanh(%0))", false},
        MatchCase{"rec %0 = exp(%0) or var; exp(%0)", "exp(exp(exp(%x)))", true},
        MatchCase{"rec %0 = exp(%0) or var; exp(%0)", "exp(exp(tanh(%x)))", false}));

// A repetition binds its own parts anew each time, and what is used outside of it once.
TEST(PatternMatcher, SharedPartsOfARepetitionAreOneExpression) {
  const std::string own = "rec %0 = add(%0, const) or var; %0";
  EXPECT_TRUE(matches(own, "add(add(%x, 1f), 2f)"));
  const std::string shared = "%1 = const; rec %0 = add(%0, %1) or var; tuple(%1, %0)";
  const Expr one = make_scalar(1), two = make_scalar(2), x = make_var("x");
  const auto chain = [&](const Expr& a, const Expr& b) {
    return make_tuple({one, make_call("add", {make_call("add", {x, a}), b})});
  };
  const DFPattern pattern = pattern_of(shared);
  EXPECT_TRUE(match_pattern(pattern, chain(one, one)));
  EXPECT_FALSE(match_pattern(pattern, chain(one, two)));
  release_recursions(pattern);
}

TEST(PatternMatcher, ManyOrdersOfArgumentsTakeFewSteps) {
  std::string pattern = "tanh(_)", expr = "%x";
  for (int i = 0; i < 40; ++i) pattern = fmt::format("add({0}, abs(_))", pattern);
  for (int i = 0; i < 40; ++i) expr = fmt::format("add({}, abs(%y))", expr);
  EXPECT_FALSE(matches(pattern, expr));
}

// Each sum is tried in both orders, and its parts may not be remembered because they share a part with the rest.
TEST(PatternMatcher, TooManyStepsAreAnError) {
  std::string pattern = "tanh(%0)", expr = "%0 = exp(%x);\n";
  for (int i = 0; i < 30; ++i) pattern = fmt::format("add({}, _)", pattern);
  for (int i = 0; i < 30; ++i) expr += fmt::format("%{1} = add(%{0}, %{0});\n", i, i + 1);
  const std::string message =
      kit::user_error_of([&] { matches("%0 = _; tuple(%0, " + pattern + ")", expr + "(%x, %30)"); });
  EXPECT_TRUE(message.starts_with("matching the pattern takes more than 1000")) << message;
}

TEST(PatternMatcher, ARepetitionThatIsTooLongIsAnError) {
  if (kit::options().size == kit::TestSize::kFew) GTEST_SKIP() << "800,000 levels of a match take a sanitizer long";
  ops::register_all_ops();
  Expr chain = make_var("x");
  for (int i = 0; i < 150'000; ++i) chain = make_call("exp", {chain});
  const DFPattern recursion = pattern_of("rec %0 = exp(%0) or var; exp(%0)");
  EXPECT_EQ(kit::user_error_of([&] { match_pattern(recursion, chain); }), "the pattern repeats too often in a row");
  release_recursions(recursion);
}

TEST(PatternMatcher, AWildcardThatLeadsToItselfIsAnError) {
  ops::register_all_ops();
  const auto a = wildcard().cast<WildcardPatternNode>(), b = wildcard().cast<WildcardPatternNode>();
  redirect(*a, b);
  redirect(*b, a);
  const auto fault = [](const DFPattern& p) { return kit::user_error_of([&] { match_pattern(p, make_var("x")); }); };
  EXPECT_TRUE(fault(a).starts_with("the pattern stands for itself")) << fault(a);
  const DFPattern left = pattern_of("rec %0 = %0 or exp(_); %0");
  EXPECT_TRUE(fault(left).starts_with("the pattern stands for itself"));
  release_recursions(left);
  redirect(*a, {});
  EXPECT_TRUE(match_pattern(b, make_var("x")));
  redirect(*b, {});
}

TEST(PatternMatcher, LongChainsTakeLinearTimeAndNoStack) {
  ops::register_all_ops();
  Expr chain = make_var("x");
  const int length = kit::by_depth(100'000);
  for (int i = 0; i < length; ++i) chain = make_call(i % 2 == 0 ? "exp" : "tanh", {chain});
  const DFPattern recursion = pattern_of("rec %0 = exp(%0) or tanh(%0) or const; exp(%0)");
  EXPECT_EQ(partition_pattern(recursion, chain), chain) << "it ends in no constant";
  release_recursions(recursion);
  const DFPattern pair = pattern_of("tanh(exp(_))");
  int calls = 0;
  post_order(partition_pattern(pair, chain), [&](const Expr& e) { calls += e.is<FunctionNode>() ? 1 : 0; });
  EXPECT_EQ(calls, length / 2);
}

TEST(PatternNodes, AreSavedAndCompared) {
  const DFPattern pattern = pattern_of("%0 = nn.conv2d(_, const)[attrs groups=1]; %0 or dominates(%0, _, tuple(*))");
  const ObjectRef again = load_json(save_json(Value(pattern))).as<ObjectRef>();
  EXPECT_TRUE(structural_equal(Value(pattern), Value(again)));
  EXPECT_FALSE(structural_equal(Value(pattern_of("%0 = _; add(%0, %0)")), Value(pattern_of("add(_, _)"))));
  const auto any = wildcard().cast<WildcardPatternNode>();
  redirect(*any, call(is_op("exp"), Array<DFPattern>{any}));
  EXPECT_EQ(kit::user_error_of([&] { save_json(Value(any)); }),
            "a wildcard that is redirected has no JSON; write the pattern as text");
  EXPECT_TRUE(structural_equal(Value(any), Value(any)));
  EXPECT_NE(kit::user_error_of([&] { redirect(*any, any); }), "");
  redirect(*any, {});
  EXPECT_NE(kit::user_error_of([&] { call(DFPattern(), Array<DFPattern>{}); }), "");
}

TEST(PatternGroups, SplitIntoFunctions) {
  EXPECT_EQ(split_by("tanh(exp(_))", "abs(tanh(exp(%x)))"),
            "%1 = fn (%FunctionVar_0_0: Tensor[(2, 3), float32], PartitionedFromPattern=\"exp_tanh_\") {\n"
            "  %0 = exp(%FunctionVar_0_0);\n"
            "  tanh(%0)\n"
            "};\n"
            "%2 = %1(%x);\n"
            "abs(%2)\n");
}

struct StaysCase {
  const char* why;
  const char* pattern;
  const char* expr;
};

class GroupStays : public testing::TestWithParam<StaysCase> {};

TEST_P(GroupStays, TheVeryNode) {
  const Expr expr = expr_of(kVars + std::string(GetParam().expr));
  EXPECT_EQ(partition_pattern(pattern_of(GetParam().pattern), expr), expr) << GetParam().why;
}

INSTANTIATE_TEST_SUITE_P(
    Patterns, GroupStays,
    testing::Values(StaysCase{"used outside", "tanh(exp(_))", "%0 = exp(%x); (tanh(%0), %0)"},
                    StaysCase{"computes nothing", "_", "%x"}, StaysCase{"computes nothing", "const", "add(%x, 1f)"},
                    StaysCase{"reads a reference", "add(_, _(*))", "%0 = ref(%x); add(%x, ref_read(%0))"},
                    StaysCase{"a function that is not called", "fn(*) { _ }", "fn (%a) { exp(%a) }"}));

// Branches are computed when they are taken: what stands in one is not input, but a part.
TEST(PatternGroups, ExpressionsOfABranchStayInIt) {
  EXPECT_EQ(split_by("if(const, _, _)", "if (True) { exp(%x) } else { %y }"),
            "%0 = fn (%FunctionVar_0_0: Tensor[(2, 3), float32], %FunctionVar_0_1: Tensor[(2, 3), float32],"
            " PartitionedFromPattern=\"exp_If_\") {\n"
            "  if (True) {\n"
            "    exp(%FunctionVar_0_0)\n"
            "  } else {\n"
            "    %FunctionVar_0_1\n"
            "  }\n"
            "};\n"
            "%0(%x, %y)\n");
}

TEST(PatternRewrite, AnIdentityKeepsTheNode) {
  const Expr expr = expr_of(std::string(kVars) + "add(exp(%x), exp(%y))");
  int seen = 0;
  const PatternCallback same{.name = "same", .pattern = pattern_of("exp(_)"), .replace = [&](auto, auto& after, auto) {
                               return ++seen, after;
                             }};
  EXPECT_EQ(rewrite_patterns({same}, expr), expr);
  EXPECT_EQ(seen, 2);
  EXPECT_EQ(kit::user_error_of([&] { rewrite_patterns({{.name = "none"}}, expr); }),
            "the callback none has no pattern");
}

}  // namespace
}  // namespace headrace::relay
