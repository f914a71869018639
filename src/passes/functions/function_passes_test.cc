// Passes over functions: Inline, InlineCalls, LambdaLift, EtaExpand, RemoveUnusedFunctions.
#include "passes/functions/eta_expand.h"
#include "passes/functions/inline.h"
#include "passes/functions/lambda_lift.h"
#include "kit/errors.h"
#include "kit/options.h"
#include "passes/tests/golden_pass.h"
#include "relay/visit.h"

namespace headrace::passes {
namespace {

TEST(Inline, EffectsKeepOrderAndNumber) {
  const IRModule after = run_pass("Inline", relay::infer_type(program_before(read_golden("inline"))));
  const auto results = interp::run_main(after, {ramp({2}, 0.5f)});
  // The let of %f took 5; the two calls after it took 6 and 7.
  EXPECT_EQ(element_as_double(results[1].tensor(), 0), 53.0);
  EXPECT_EQ(element_as_double(results.back().tensor(), 0), 8.0);
}

// A value that a function shares with its surroundings is evaluated where the function is made: at the let, before the
// write.
TEST(InlineCalls, SharedValuesAreReadWhereTheFunctionIsMade) {
  const IRModule before = read(
      "def @main(%x: float32) {\n"
      "  let %r = ref(%x);\n"
      "  %0 = ref_read(%r);\n"
      "  let %f = fn () -> float32 { %0 };\n"
      "  let %u = ref_write(%r, 9f);\n"
      "  (%f(), %0)\n"
      "}");
  const IRModule after = run_pass("InlineCalls", before);
  EXPECT_NE(after, before);
  const auto results = interp::run_main(after, {ramp({}, 5)});
  EXPECT_EQ(element_as_double(results[0].tensor(), 0), 5.0);
  EXPECT_EQ(element_as_double(results[1].tensor(), 0), 5.0);
}

// A region stays as the program marks it, with the matches of its patterns, in whichever form it is written.
TEST(InlineCalls, RegionsOfOtherCompilersAreLeftAlone) {
  const std::string region =
      "(%a: float32, Compiler=\"x\", global_symbol=\"f\", Primitive=1) -> float32 {\n"
      "  %0 = fn (%p: float32, Composite=\"x.exp\") -> float32 { exp(%p) };\n"
      "  %0(%a)\n}\n";
  const std::string open = "  %1 = fn (%q: float32) -> float32 { sqrt(%q) };\n";
  for (const std::string& text : {"def @main(%x: float32) {\n" + open + "  %2 = fn " + region + ";\n  %2(%1(%x))\n}",
                                  "def @f" + region + "def @main(%x: float32) {\n" + open + "  @f(%1(%x))\n}"}) {
    const std::string after = relay::print_module(run_pass("InlineCalls", read(text)));
    EXPECT_NE(after.find("Composite=\"x.exp\""), std::string::npos) << after;
    EXPECT_EQ(after.find("%q"), std::string::npos) << after;
  }
}

// Passes do not enter a function that is marked Composite; this one takes it apart, unless another mark keeps it whole.
TEST(InlineCalls, OnlyOtherMarksKeepACompositeWhole) {
  for (const auto& [marks, is_kept] : std::vector<std::pair<std::string, bool>>{
           {"", false}, {", SkipOptimization=1", true}, {", Primitive=1", true}, {", Compiler=\"x\"", true}}) {
    const std::string after = relay::print_module(
        run_pass("InlineCalls", read("def @main(%x: float32) {\n"
                                     "  %1 = fn (%p: float32, Composite=\"x.both\"" +
                                     marks +
                                     ") -> float32 {\n"
                                     "    %0 = fn (%q: float32) -> float32 { sqrt(%q) };\n    exp(%0(%p))\n  };\n"
                                     "  %1(%x)\n}")));
    EXPECT_EQ(after.find("%q") != std::string::npos, is_kept) << after;
    EXPECT_EQ(after.find("Composite") != std::string::npos, is_kept) << after;
  }
}

// Each calls the next twice: 2^40 bodies if it were done to the end.
TEST(Inline, StopsBeforeTheProgramExplodes) {
  std::string text;
  for (int i = 0; i < 40; ++i)
    text +=
        fmt::format("def @f{}(%x: float32, Inline=1) -> float32 {{ add(@f{}(%x), @f{}(exp(%x))) }}\n", i, i + 1, i + 1);
  text += "def @f40(%x: float32) -> float32 { %x }\ndef @main(%x: float32) -> float32 { @f0(%x) }";
  const IRModule after = inline_functions(read(text));
  int64_t nodes = 0;
  for (const auto& [var, function] : after->functions()) relay::post_order(function, [&](const Expr&) { ++nodes; });
  EXPECT_LE(nodes, 2 * kMostInlinedNodes + 1000);
}

// Function literals that each call their argument twice, 2^40 additions deep; and one literal with many names.
TEST(InlineCalls, LiteralsStopBeforeTheProgramExplodes) {
  if (kit::options().size == kit::TestSize::kFew) GTEST_SKIP() << "200,000 nodes take 20 s in a sanitized build";
  std::string nest = "fn (%a: float32) -> float32 { add(%a, 1f) }", names = "let %f0 = " + nest + ";\n";
  for (int i = 0; i < 40; ++i)
    nest = fmt::format(
        "(fn (%g{0}: fn (float32) -> float32) {{ fn (%b{0}: float32) -> float32 {{ %g{0}(%g{0}(%b{0})) }} }})({1})", i,
        nest);
  const IRModule after = inline_calls(read(fmt::format("def @main(%x: float32) {{ ({})(%x) }}", nest)));
  int64_t nodes = 0;
  relay::post_order(after->lookup("main"), [&](const Expr&) { ++nodes; });
  EXPECT_LE(nodes, 2 * kMostInlinedNodes + 1000);
  for (int i = 0; i < 1000; ++i) names += fmt::format("let %f{} = %f{};\n", i + 1, i);
  const IRModule named = inline_calls(read(fmt::format("def @main(%x: float32) {{ {} %f1000(%x) }}", names)));
  EXPECT_TRUE(named->lookup("main").as<relay::FunctionNode>()->body.is<relay::CallNode>());
}

TEST(LambdaLift, LeavesNoFunctionThatComputes) {
  const IRModule after = run_pass("LambdaLift", relay::infer_type(program_before(read_golden("lambda_lift"))));
  for (const auto& [var, function] : after->functions()) {
    relay::post_order(function.as<relay::FunctionNode>()->body, [&](const Expr& e) {
      const auto* inner = e.as<relay::FunctionNode>();
      const auto* call = inner == nullptr ? nullptr : inner->body.as<relay::CallNode>();
      EXPECT_TRUE(inner == nullptr || (call != nullptr && call->op.is<GlobalVarNode>())) << relay::print_expr(e);
    });
  }
  EXPECT_EQ(run_pass("LambdaLift", after), after) << "it finds nothing more";
}

TEST(LambdaLift, DeepNestsAndLongChainsAreLinear) {
  std::string deep = "%x", chain;
  for (int i = 0; i < 300; ++i) deep = fmt::format("fn (%a{}: float32) {{ {} }}(%x)", i, deep);
  for (int i = 0; i < 2000; ++i) {
    const std::string before = i == 0 ? "add(%a, %x)" : fmt::format("%f{}(%a)", i - 1);
    chain += fmt::format("let %f{} = fn (%a: float32) -> float32 {{ {} }};\n", i, before);
  }
  const IRModule before =
      read(fmt::format("def @main(%x: float32) -> (float32, float32) {{ {}({}, %f1999(%x)) }}", chain, deep));
  const IRModule after = run_pass("LambdaLift", before);
  EXPECT_EQ(after->functions().size(), 2301u);
  expect_same_results(before, after, {ramp({}, 1)}, 0);
}

// `%g` and `%h` are names of `%f`, which captures a variable.
TEST(LambdaLift, AFunctionMayHaveSeveralNames) {
  const std::string lets =
      "def @main(%x: float32) {\n"
      "  let %f = fn (%a: float32) -> float32 { if (less(%a, 0f)) { %x } else { add(%f(subtract(%a, 1f)), %x) } };\n"
      "  let %g = %f;\n  let %h = %g;\n";
  for (const char* use : {"%h(2f)", "(%g, %x).0(2f)", "{ let %k = if (less(%x, 3f)) { %g } else { %f }; %k(2f) }",
                          "fn (%a: float32) -> float32 { %g(%f(%a)) }(-1f)"}) {
    const IRModule before = read(lets + "  " + use + "\n}");
    for (const char* pass : {"LambdaLift", "Defunctionalization"}) {
      SCOPED_TRACE(fmt::format("{} of {}", pass, use));
      expect_same_results(before, run_pass(pass, before), {ramp({}, 1.5f)}, 0);
    }
  }
}

TEST(LambdaLift, AFunctionMayBeBoundTwice) {
  ops::register_all_ops();
  const Type scalar = make_tensor_type(Shape{});
  const relay::Var x = relay::make_var("x", scalar), a = relay::make_var("a", scalar), f = relay::make_var("f"),
                   g = relay::make_var("g");
  const Expr literal = relay::make_function({a}, relay::make_call("add", {a, x}));
  const Expr uses = relay::make_tuple({relay::make_call(f, {x}), relay::make_call(g, {relay::make_call(f, {x})})});
  const IRModule before = relay::infer_type(
      make_module(relay::make_function({x}, relay::make_let(f, literal, relay::make_let(g, literal, uses)))));
  for (const char* pass : {"LambdaLift", "Defunctionalization"})
    expect_same_results(before, run_pass(pass, before), {ramp({}, 1.5f)}, 0);
}

// As Python and JSON can make them, and a caller of the pass alone hands on: free, and bound inside a literal only.
TEST(LambdaLift, AVariableThatNothingBindsIsTold) {
  ops::register_all_ops();
  const Type scalar = make_tensor_type(Shape{});
  const relay::Var x = relay::make_var("x", scalar), y = relay::make_var("y", scalar), f = relay::make_var("f");
  const Expr captures = relay::make_function({}, relay::make_call("add", {x, y}));
  const Expr binds = relay::make_function({y}, relay::make_call("exp", {y}));
  for (const Expr& body : {Expr(relay::make_let(f, captures, x)), Expr(relay::make_let(f, binds, y))}) {
    const IRModule module = relay::infer_type(make_module(relay::make_function({x}, body)));
    EXPECT_TRUE(kit::user_error_of([&] { lambda_lift(module); }).starts_with("%y is used where nothing binds it"));
  }
}

TEST(EtaExpand, OptionsMustBeBools) {
  pass::PassContext context;
  EXPECT_FALSE(eta_options(context).expand_constructor);
  EXPECT_FALSE(eta_options(context).expand_global_var);
  context.config.set("relay.EtaExpand.expand_constructor", Value("yes"));
  try {
    eta_options(context);
    FAIL() << "no error";
  } catch (const UserError& e) {
    EXPECT_EQ(e.message(), "configuration 'relay.EtaExpand.expand_constructor': expected bool, got str");
  }
}

TEST(EtaExpand, ExpandsWhatIsAskedFor) {
  const IRModule before = read(
      "type Box { Box(float32) }\n"
      "def @step(%x: float32) -> float32 { %x }\n"
      "def @main(%x: float32) -> float32 { let %f = @step; let %g = Box; let %b = %g(%x); %f(%x) }");
  EXPECT_EQ(eta_expand(before, {}), before);
  const auto count = [&](const EtaOptions& options) {
    const std::string text = relay::print_module(eta_expand(before, options));
    return std::make_pair(text.find("Box(%x0)") != std::string::npos,
                          text.find(" @step(%x") != text.rfind(" @step(%x"));
  };
  EXPECT_EQ(count({.expand_constructor = true}), std::make_pair(true, false));
  EXPECT_EQ(count({.expand_global_var = true}), std::make_pair(false, true));
}

TEST(RemoveUnusedFunctions, KeepsWhatTheEntriesReach) {
  const IRModule before = read(
      "def @shared(%x: float32) { exp(%x) }\ndef @other(%x: float32) { @shared(%x) }\n"
      "def @unused(%x: float32) { %x }\ndef @main(%x: float32) { %x }");
  const auto names = [](const IRModule& module) {
    std::vector<std::string> result;
    for (const auto& [var, function] : module->functions()) result.push_back(var->name_hint);
    return result;
  };
  EXPECT_EQ(names(run_pass("RemoveUnusedFunctions", before)), std::vector<std::string>{"main"});
  const auto entries = [](Array<std::string> list) {
    return with_option("relay.RemoveUnusedFunctions.entry_functions", Value(std::move(list)));
  };
  EXPECT_EQ(names(run_pass("RemoveUnusedFunctions", before, entries({"other"}))),
            (std::vector<std::string>{"shared", "other"}));
  EXPECT_EQ(names(run_pass("RemoveUnusedFunctions", before, entries({"main", "unused"}))),
            (std::vector<std::string>{"unused", "main"}));
  EXPECT_EQ(kit::user_error_of([&] { run_pass("RemoveUnusedFunctions", before, entries({"mian"})); }),
            "RemoveUnusedFunctions: the module has no function @mian to enter");
}

}  // namespace
}  // namespace headrace::passes
