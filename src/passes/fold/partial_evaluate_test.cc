// Tests PartialEvaluate: what it evaluates, how much work it does, and what it leaves.
#include "passes/fold/partial_evaluate.h"

#include "kit/errors.h"
#include "kit/options.h"
#include "lower/user_ops/tests/unary_op.h"
#include "passes/tests/pass_testing.h"

namespace headrace::passes {
namespace {

int count_nodes(const IRModule& module, const char* name = "main") {
  int count = 0;
  relay::post_order(module->lookup(name), [&](const Expr&) { ++count; });
  return count;
}

TEST(PartialEvaluate, AClosedProgramIsItsResult) {
  const IRModule after = run_pass("PartialEvaluate", read("def @fact(%n: int32) -> int32 {\n"
                                                          "  if (less(%n, 2)) { 1 } else { multiply(%n, @fact("
                                                          "subtract(%n, 1))) }\n}\n"
                                                          "def @main() -> int32 { @fact(6) }"));
  const auto body = after->lookup("main").as<relay::FunctionNode>()->body;
  ASSERT_TRUE(body.is<relay::ConstantNode>()) << relay::print_module(after);
  EXPECT_EQ(element_as_int(body.as<relay::ConstantNode>()->data.tensor(), 0), 720);
}

// Programs that never end, or that double with each function, or whose loops are long: the work is bounded.
TEST(PartialEvaluate, TheWorkIsBounded) {
  if (kit::options().size == kit::TestSize::kFew) GTEST_SKIP() << "the bounds take 12 s in a sanitized build";
  std::string doubling;
  for (int i = 0; i < 40; ++i)
    doubling += fmt::format("def @f{}(%x: float32) -> float32 {{ add(@f{}(%x), @f{}(exp(%x))) }}\n", i, i + 1, i + 1);
  std::string nested = "%a";
  for (int i = 0; i < 16; ++i) {
    nested = fmt::format(
        "let %f{0} = fn (%b{0}: float32) -> float32 {{ add(%b{0}, {1}) }};\n"
        "if (less(%a, {0}f)) {{ %f{0}(1f)\n }} else {{ %apply(%f{0}, 2f) }}",
        i, "{" + nested + "}");
  }
  const std::vector<std::string> programs{
      "def @f(%x: float32) -> float32 { @f(%x) }\ndef @main() -> float32 { @f(1f) }",
      "def @f(%x: float32) -> float32 { @f(add(%x, 1f)) }\ndef @main() -> float32 { @f(1f) }",
      "def @f(%x: float32) -> float32 { @g(%x) }\ndef @g(%x: float32) -> float32 { @f(add(%x, 1f)) }\n"
      "def @main(%y: float32) -> float32 { add(@f(1f), @g(%y)) }",
      "def @main(%x: float32) -> float32 {\n"
      "  let %r = ref(fn (%a: float32) -> float32 { %a });\n"
      "  let %u = ref_write(%r, fn (%a: float32) -> float32 { ref_read(%r)(%a) });\n  ref_read(%r)(1f)\n}",
      doubling + "def @f40(%x: float32) -> float32 { %x }\ndef @main(%x: float32) -> float32 { @f0(%x) }",
      "def @main(%a: float32, %apply: fn (fn (float32) -> float32, float32) -> float32) -> float32 {\n" + nested + "}"};
  for (const std::string& text : programs) {
    const IRModule after = run_pass("PartialEvaluate", read(text));
    EXPECT_LE(count_nodes(after), 300'000) << text;
    relay::verify(after);
  }
}

TEST(PartialEvaluate, ALongLoopIsUnrolledSoFar) {
  const IRModule before = read(
      "def @loop(%n: int32, %x: float32) -> float32 {\n"
      "  if (equal(%n, 0)) { %x } else { @loop(subtract(%n, 1), add(%x, 1f)) }\n}\n"
      "def @main(%x: float32) -> (float32, float32) { (@loop(900, %x), @loop(3000, %x)) }");
  const IRModule after = run_pass("PartialEvaluate", before);
  expect_same_results(before, after, {ramp({}, 2)}, 0);
  int calls = 0;
  relay::post_order(after->lookup("main"), [&](const Expr& e) {
    const auto* call = e.as<relay::CallNode>();
    calls += call != nullptr && call->op.is<GlobalVarNode>() ? 1 : 0;
  });
  EXPECT_EQ(calls, 1) << "of the longer loop one call is left";
}

TEST(PartialEvaluate, ListsOfAnyLengthNeedNoStack) {
  std::string text =
      "type List[A] { Cons(A, List[A]), Nil }\ndef @main(%x: float32) -> List[float32] {\nlet %l0 = Nil;\n";
  for (int i = 0; i < 2'000; ++i) text += fmt::format("let %l{} = Cons(%x, %l{});\n", i + 1, i);
  const IRModule after = run_pass("PartialEvaluate", read(text + "%l2000\n}"));
  EXPECT_GE(count_nodes(after), 4'000);
}

// A branch's writes, and the values it makes unknown, do not affect the other branch: 1 + 2 = 3.
TEST(PartialEvaluate, ABranchDoesNotSeeWhatTheOtherOneWrote) {
  const std::string sum = "add(ref_read(%r), ref_read(%s))";
  const IRModule before = read(
      "def @main(%x: float32) {\n  let %r = ref(1f);\n  let %s = ref(2f);\n"
      "  let %u = if (less(%x, 1f)) {\n    let %v = ref_write(%r, 5f);\n"
      "    let %w = if (less(%x, 0f)) { ref_write(%s, 9f) } else { () };\n    let %t = " +
      sum + ";\n    let %z = ref_write(%s, %t);\n    " + sum + "\n  } else { " + sum + " };\n  (%u, " + sum + ")\n}");
  const IRModule after = run_pass("PartialEvaluate", before);
  const relay::IfNode* outer = nullptr;
  relay::post_order(after->lookup("main"), [&](const Expr& e) {
    if (const auto* branch = e.as<relay::IfNode>()) outer = branch;  // the inner one comes first
  });
  ASSERT_NE(outer, nullptr);
  const auto* known = outer->false_branch.as<relay::ConstantNode>();
  ASSERT_NE(known, nullptr) << relay::print_module(after);
  EXPECT_EQ(element_as_double(known->data.tensor(), 0), 3);
  for (const float x : {-1.0f, 0.5f, 2.0f}) expect_same_results(before, after, {ramp({}, x)}, 0);
}

// Nests branches under references, and function literals in function literals: copying the known values at each level
// would take quadratic time in the depth.
TEST(PartialEvaluate, NestsAsDeepAsTheProgram) {
  constexpr int kDepth = 1'000;
  std::string references, branches = "ref_read(%r0)", literals = "%x";
  for (int i = 0; i < kDepth; ++i) {
    references += fmt::format("let %r{} = ref(add(%x, {}f));\n", i, i);
    branches = fmt::format("if (less(%x, {}f)) {{ {} }} else {{ %x }}", i, branches);
  }
  for (int i = kDepth; i-- > 0;)
    literals = fmt::format("let %f{0} = fn (%y{0}: float32) -> float32 {{ {1} }};\n%f{0}({2})", i, literals,
                           i == 0 ? "%x" : fmt::format("%y{}", i - 1));
  const IRModule nested = read("def @main(%x: float32) -> float32 {\n" + references + branches + "}");
  expect_same_results(nested, run_pass("PartialEvaluate", nested), {ramp({}, -2)}, 0);
  const IRModule after = run_pass("PartialEvaluate", read("def @main(%x: float32) -> float32 {\n" + literals + "}"));
  EXPECT_EQ(count_nodes(after), 2) << "the function and its parameter";
}

// A sum over six axes of 100 takes more steps than the budget has, though its operands and its result are small.
TEST(PartialEvaluate, ExpressionsPastTheBudgetAreNoted) {
  std::vector<pass::PassNote> notes;
  pass::PassContext context;
  context.note = [&](const pass::PassNote& note) { notes.push_back(note); };
  const IRModule before = relay::infer_type(
      read("def @main() { let %x = ones(shape=[100, 100]); einsum((%x, %x, %x), equation=\"ab,cd,ef->a\") }"));
  partial_evaluate(before, context);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].pass, "PartialEvaluate");
  EXPECT_EQ(notes[0].reason, HR_REASON_FOLD_LIMIT);
  EXPECT_THAT(notes[0].message, testing::HasSubstr("is left to be computed at each run"));
}

// Two calls stand in the loop, which comes to each of them eight times.
TEST(PartialEvaluate, ALoopNotesACallOnce) {
  std::vector<pass::PassNote> notes;
  pass::PassContext context;
  context.note = [&](const pass::PassNote& note) { notes.push_back(note); };
  const std::string sum =
      "einsum((ones(shape=[100, 100]), ones(shape=[100, 100]), ones(shape=[100, 100])), "
      "equation=\"ab,cd,ef->a\")";
  const IRModule before = relay::infer_type(
      read("def @loop(%n: int32, %x: Tensor[(100), float32]) -> Tensor[(100), float32] {\n"
           "  if (less(%n, 1)) { %x } else {\n    @loop(subtract(%n, 1), add(add(%x, " +
           sum + "),\n      " + sum + "))\n  }\n}\ndef @main(%x: Tensor[(100), float32]) { @loop(8, %x) }"));
  partial_evaluate(before, context);
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_NE(to_string(notes[0].span), to_string(notes[1].span));
}

// An op that refuses its operands stays a call; what it needs and does not find is not its operands' fault.
TEST(PartialEvaluate, OnlyRefusedOperandsLeaveACall) {
  static bool fails_as_missing = false;
  static int asked = 0;
  lower::UserOp op = lower::unary("test.refusing");
  op.relation = [](const relay::RelationInput& input) -> Type {
    if (asked++ != 2) return input.tensor(0);  // the pass asks once, after the program was typed
    if (fails_as_missing) throw MissingError("the table of types is not here");
    throw UserError("the operand is odd");
  };
  op.eval = [](const ops::EvalInput& input) { return std::vector{input.args[0]}; };
  register_user_op(op);
  const auto evaluated = [&](bool missing) {
    asked = 0;
    fails_as_missing = missing;
    return partial_evaluate(relay::infer_type(read("def @main() { test.refusing(ones(shape=[2])) }")), {});
  };
  EXPECT_EQ(count_calls(evaluated(false), "test.refusing"), 1);
  EXPECT_THROW(evaluated(true), MissingError);
}

// As Python and JSON can make them.
TEST(PartialEvaluate, AVariableThatNothingBindsIsTold) {
  const relay::Var x = relay::make_var("x", make_tensor_type(Shape{2})),
                   z = relay::make_var("z", make_tensor_type(Shape{2}));
  const Expr sum = relay::make_call("add", {z, x});
  for (const Expr& body : {sum, Expr(relay::make_let(z, sum, z))}) {
    const IRModule module = make_module(relay::make_function({x}, body));
    EXPECT_TRUE(kit::user_error_of([&] {
                  partial_evaluate(relay::infer_type(module), {});
                }).starts_with("%z is used where nothing binds it"));
  }
}

}  // namespace
}  // namespace headrace::passes
