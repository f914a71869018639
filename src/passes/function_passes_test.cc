// Passes over functions: Inline, LambdaLift, EtaExpand, and reshapes between groups.
#include "passes/functions/eta_expand.h"
#include "passes/functions/inline.h"
#include "passes/tests/pass_testing.h"
#include "relay/visit.h"

namespace headrace::passes {
namespace {

// Effects in arguments and bodies, a parameter not used, one used by an inner function, recursion, a nested call.
constexpr const char* kInline =
    "def @half(%x: Tensor[(n), float32], Inline=1) -> Tensor[(n), float32] { multiply(%x, 0.5f) }\n"
    "def @twice(%x: Tensor[(n), float32], Inline=1) { add(@half(%x), @half(exp(%x))) }\n"
    "def @first[A](%a: A, %b: float32, inline=1) -> A { %a }\n"
    "def @bump(%r: ref(float32), Inline=1) -> float32 {\n"
    "  let %old = ref_read(%r); let %_ = ref_write(%r, add(%old, 1f)); %old\n}\n"
    "def @later(%x: float32, Inline=1) -> fn (float32) -> float32 { fn (%y: float32) -> float32 { add(%x, %y) } }\n"
    "def @down(%x: float32, Inline=1) -> float32 {\n"
    "  if (less(%x, 0f)) { %x } else { @down(subtract(%x, 1f)) }\n}\n"
    "def @off(%x: float32, Inline=0) -> float32 { negative(%x) }\n"
    "def @main(%x: Tensor[(2), float32]) {\n"
    "  let %r = ref(5f);\n"
    "  let %f = @later(@first(sum(%x), @bump(%r)));\n"
    "  (@twice(%x), subtract(multiply(@bump(%r), 10f), @bump(%r)), @first(%x, ref_read(%r)), %f(%f(1f)), @down(2f),"
    " @off(1f), ref_read(%r))\n"
    "}";

// A function of two calls, one that two others call, a generic one, an effect, recursion, and one that is a value.
constexpr const char* kCalls =
    "def @half(%x: Tensor[(n), float32]) -> Tensor[(n), float32] { multiply(%x, 0.5f) }\n"
    "def @twice(%x: Tensor[(n), float32]) { add(@half(%x), @half(exp(%x))) }\n"
    "def @first[A](%a: A, %b: float32) -> A { %a }\n"
    "def @bump(%r: ref(float32)) -> float32 {\n"
    "  let %old = ref_read(%r); let %_ = ref_write(%r, add(%old, 1f)); %old\n}\n"
    "def @down(%x: float32) -> float32 {\n"
    "  if (less(%x, 0f)) { %x } else { @down(subtract(%x, 1f)) }\n}\n"
    "def @value(%x: float32) -> float32 { negative(%x) }\n"
    "def @apply(%f: fn (float32) -> float32, %x: float32) -> float32 { %f(%x) }\n"
    "def @main(%x: Tensor[(2), float32]) {\n"
    "  let %r = ref(5f);\n"
    "  (@twice(%x), subtract(multiply(@bump(%r), 10f), @bump(%r)), @first(%x, @bump(%r)), @down(2f),"
    " @apply(@value, sum(%x)), ref_read(%r))\n"
    "}";

// Captured variables, recursion, a closure as a value, one in a branch, one inside another, a shared value, an effect.
constexpr const char* kClosures =
    "def @apply(%f: fn (float32) -> float32, %x: float32) -> float32 { %f(%x) }\n"
    "def @main(%x: float32, %y: float32) {\n"
    "  %0 = exp(%x);\n"
    "  let %r = ref(0f);\n"
    "  let %count = fn (%v: float32) -> float32 { let %_ = ref_write(%r, add(ref_read(%r), %v)); %v };\n"
    "  let %loop = fn (%i: float32, %acc: float32) -> float32 {\n"
    "    if (less(%i, 0f)) { %acc } else { %loop(subtract(%i, 1f), add(%acc, %count(%0))) }\n"
    "  };\n"
    "  let %nested = fn (%a: float32) -> float32 {\n"
    "    let %inner = fn (%b: float32) -> float32 {\n"
    "      if (less(%b, 0f)) { add(%y, %a) } else { %nested(subtract(%b, 3f)) }\n"
    "    };\n"
    "    @apply(%inner, add(%a, 1f))\n"
    "  };\n"
    "  let %chosen = if (less(%x, %y)) { fn (%v: float32) -> float32 { multiply(%v, %x) } }"
    " else { fn (%v: float32) -> float32 { negative(%v) } };\n"
    "  (%loop(2f, %0), %nested(%x), @apply(%chosen, 3f), @apply(%count, 4f), fn (%v: float32) { add(%v, %v) }(%y),"
    " ref_read(%r))\n"
    "}";

constexpr const char* kEta =
    "type Option[A] { Some(A), None }\n"
    "type Pair[A, B] { Both(A, B) }\n"
    "def @map(%f: fn (float32) -> Option[float32], %x: float32) -> Option[float32] { %f(%x) }\n"
    "def @step(%x: float32) -> float32 { add(%x, 1f) }\n"
    "def @apply[A](%f: fn (A) -> A, %x: A) -> A { %f(%x) }\n"
    "def @join[A, B](%f: fn (A, B) -> Pair[A, B], %x: A, %y: B) -> Pair[A, B] { %f(%x, %y) }\n"
    "def @main(%x: float32) -> (float32, float32, float32) {\n"
    "  let %some = @map(Some, %x);\n"
    "  let %pair = @join(Both, %x, 2f);\n"
    "  (match (%some) { Some(%y) => %y, None => 0f }, match (%pair) { Both(%a, %b) => add(%a, %b) },"
    " @apply(@step, %x))\n"
    "}";

constexpr const char* kReshapes =
    "def @main(%x: Tensor[(2, 3), float32]) {\n"
    "  %0 = fn (%p: Tensor[(2, 3), float32], Primitive=1) { exp(%p) };\n"
    "  %1 = %0(%x);\n"
    "  %2 = fn (%p: Tensor[(2, 3), float32], Primitive=1) { squeeze(reshape(%p, newshape=[6, 1]), axis=[1]) };\n"
    "  %3 = fn (%p: Tensor[(6), float32], Primitive=1) { reshape(%p, newshape=[3, 2]) };\n"
    "  %4 = fn (%p: Tensor[(6), float32], Primitive=1) { reshape(%p, newshape=[2, 3]) };\n"
    "  %5 = fn (%p: Tensor[(6), float32], Primitive=1) { negative(reshape(%p, newshape=[6])) };\n"
    "  %6 = %2(%1);\n"
    "  (%3(%6), %0(%4(%6)), %5(%6))\n"
    "}";

class FunctionPass : public testing::TestWithParam<PassCase> {};

TEST_P(FunctionPass, TextAndResults) {
  pass::PassContext context = typed_context();
  context.config.set("relay.EtaExpand.expand_constructor", Value(true));
  context.config.set("relay.EtaExpand.expand_global_var", Value(true));
  check_pass(GetParam(), context);
}

INSTANTIATE_TEST_SUITE_P(
    Passes, FunctionPass,
    testing::Values(PassCase{"Inline", "inline", kInline, {{2}}, 0},
                    PassCase{"InlineCalls", "inline_calls", kCalls, {{2}}, 0},
                    PassCase{"LambdaLift", "lambda_lift", kClosures, {{}, {}}, 0},
                    PassCase{"EtaExpand", "eta_expand", kEta, {{}}, 0},
                    PassCase{"RemoveStandaloneReshapes", "remove_standalone_reshapes", kReshapes, {{2, 3}}, 0}),
    [](const auto& info) { return std::string(info.param.pass); });

// (1, 2, 4) becomes (2, 4), then (2, 2, 2): the three are written with `?` where they differ.
TEST(RemoveStandaloneReshapes, UnknownDimensionsAreNoProof) {
  const IRModule before = read(
      "def @main(%x: Tensor[(?, 2, ?), float32]) {\n"
      "  %0 = fn (%p: Tensor[(?, 2, ?), float32], Primitive=1) { reshape(%p, newshape=[-3, 0]) };\n"
      "  %1 = fn (%p: Tensor[(?, ?), float32], Primitive=1) { reshape(%p, newshape=[0, -4, 2, -1]) };\n"
      "  %1(%0(%x))\n"
      "}");
  expect_same_results(before, run_pass("RemoveStandaloneReshapes", before), {ramp({1, 2, 4}, 0)}, 0);
}

TEST(Inline, EffectsKeepOrderAndNumber) {
  const IRModule after = run_pass("Inline", read(kInline));
  const auto results = interp::run_main(after, {ramp({2}, 0.5f)});
  // The let of %f took 5; the two calls after it took 6 and 7.
  EXPECT_EQ(element_as_double(results[1].tensor(), 0), 53.0);
  EXPECT_EQ(element_as_double(results.back().tensor(), 0), 8.0);
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

TEST(LambdaLift, LeavesNoFunctionThatComputes) {
  const IRModule after = run_pass("LambdaLift", read(kClosures));
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

}  // namespace
}  // namespace headrace::passes
