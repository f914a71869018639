// Passes that take functions apart: Defunctionalization, PartialEvaluate.
#include "passes/fold/partial_evaluate.h"
#include "passes/functions/defunctionalization.h"
#include "passes/functions/specialize.h"
#include "kit/errors.h"
#include "passes/tests/golden_pass.h"
#include "relay/visit.h"

namespace headrace::passes {
namespace {

// x = 0.5: 0.5 + 1; 11 + 5; 0.5 * 4; 0.5 * 4; the loop from 1 adds the step 3 times to -1, from 2 it adds 4 to -1.
TEST(Defunctionalization, ResultsByHand) {
  const IRModule after =
      run_pass("Defunctionalization", relay::infer_type(program_before(read_golden("defunctionalization"))));
  std::vector<double> results;
  for (const NDArray& result : interp::run_main(after, {ramp({}, 0.5f)}))
    results.push_back(element_as_double(result.tensor(), 0));
  EXPECT_EQ(results, (std::vector<double>{1.5, 16, 2, 2, 5}));
}

TEST(Defunctionalization, LeavesNoFunctionAsAValue) {
  const IRModule after =
      run_pass("Defunctionalization", relay::infer_type(program_before(read_golden("defunctionalization"))));
  for (const auto& [var, function] : after->functions()) {
    EXPECT_EQ(to_string(function->checked_type()).find("fn", 2), std::string::npos) << var->name_hint;
    relay::post_order(function.as<relay::FunctionNode>()->body, [&](const Expr& e) {
      EXPECT_FALSE(e.is<relay::FunctionNode>()) << relay::print_expr(e);
      const bool holds_function = e.is<relay::VarNode>() && e->checked_type().is<FuncTypeNode>();
      EXPECT_FALSE(holds_function) << relay::print_expr(e);
    });
  }
  EXPECT_EQ(run_pass("Defunctionalization", after), after) << "it finds nothing more";
}

// Returns the error that Defunctionalization raises for the program.
std::string message(const std::string& text) {
  try {
    defunctionalization(read(text));
  } catch (const UserError& e) {
    return e.message();
  }
  return "no error";
}

TEST(Defunctionalization, WhatHasNoFirstOrderFormIsTold) {
  EXPECT_EQ(message("def @main(%f: fn (float32) -> float32) -> float32 { %f(1f) }"),
            "its type is fn (fn (float32) -> float32) -> float32; what is called from outside cannot take or give "
            "functions");
  EXPECT_EQ(message("def @main(%x: Tensor[(n), float32]) -> Tensor[(n), float32] {\n"
                    "  let %f = if (True) { fn (%y: Tensor[(n), float32]) -> Tensor[(n), float32] { add(%x, %y) } } "
                    "else { fn (%y: Tensor[(n), float32]) -> Tensor[(n), float32] { %y } };\n  %f(%x)\n}"),
            "a function that is a value captures a Tensor[(n), float32]; no data type holds one whose dimension 'n' is "
            "a symbol");
  EXPECT_EQ(message("type List[A] { Cons(A, List[A]), Nil }\n"
                    "def @deep[A](%x: A, %n: int32) -> int32 {\n"
                    "  if (less(%n, 0)) { %n } else { @deep((%x, %x), subtract(%n, 1)) }\n}\n"
                    "def @main() -> int32 { let %g = fn (%x: int32) -> int32 { @deep(%x, 3) };"
                    " if (True) { %g } else { %g }(1) }")
                .substr(0, 50),
            "it is used with ever larger types; does it call it");
  EXPECT_EQ(message("type Holder[A] { Holder(fn (A) -> A) }\n"
                    "def @main(%x: float32) -> float32 {\n"
                    "  match (Holder(fn (%y: float32) -> float32 { %y })) { Holder(%f) => %f(%x) }\n}"),
            "the data type Holder has type parameters and holds functions; give it none");
}

// The results of `@main(0.5f)` once no function is a value any more.
std::vector<double> first_order_results(const std::string& text) {
  const IRModule after = run_pass("Defunctionalization", read(text));
  EXPECT_EQ(defunctionalization(after), after) << text;
  std::vector<double> results;
  for (const NDArray& result : interp::run_main(after, {ramp({}, 0.5f)}))
    results.push_back(element_as_double(result.tensor(), 0));
  return results;
}

TEST(Defunctionalization, FunctionsWithTypeParametersAreValuesOfTheTypeThatIsAskedFor) {
  const std::string id = "def @id[A](%y: A) -> A { %y }\n";
  const std::string exp = "fn (%y: float32) -> float32 { exp(%y) }";
  EXPECT_EQ(first_order_results(id + "def @main(%x: float32) -> float32 {\n  let %r = ref(" + exp +
                                ");\n  let %u = ref_write(%r, @id);\n  ref_read(%r)(%x)\n}"),
            std::vector<double>{0.5});
  EXPECT_EQ(
      first_order_results(id + "def @main(%x: float32) -> float32 {\n  let %f = if (less(%x, 1f)) { @id } else { " +
                          exp + " };\n  %f(%x)\n}"),
      std::vector<double>{0.5});
  EXPECT_EQ(first_order_results(id + "def @get() -> fn (float32) -> float32 { @id }\n"
                                     "def @main(%x: float32) -> float32 { @get()(%x) }"),
            std::vector<double>{0.5});
  EXPECT_EQ(first_order_results(id + "def @main(%x: float32) -> (float32, int32, float32) {\n"
                                     "  let %f = @id;\n  let %g = %f;\n  let %h: fn (float32) -> float32 = %g;\n"
                                     "  (%g(%x), %f(7), %h(2f))\n}"),
            (std::vector<double>{0.5, 7, 2}));
  EXPECT_EQ(first_order_results("type Pair[A] { Pair(A, A) }\n"
                                "def @main(%x: float32) -> float32 {\n"
                                "  let %p = Pair;\n  match (%p(%x, 2f)) { Pair(%a, %b) => add(%a, %b) }\n}"),
            std::vector<double>{2.5});
}

TEST(Defunctionalization, FunctionsOfSeveralTypesAreToldWithAdvice) {
  EXPECT_EQ(message("def @id[A](%y: A) -> A { %y }\n"
                    "def @main(%x: float32) -> float32 { let %f = (@id, 2f); %f.0(%x) }"),
            "a function with type parameters is a value here, and not of one type; write fn (%x0: T0) { @id(%x0) } "
            "with its types");
  EXPECT_EQ(message("def @main(%x: float32) { let %id = fn[A](%y: A) -> A { %y }; (%id(%x), %id(1)) }"),
            "a function with type parameters, fn [A](A) -> A, is used as a value; no data type holds it; make it a "
            "function of the module, or write one for each of its types");
}

TEST(Defunctionalization, EntriesDoNotTakeOrGiveDataThatHoldsFunctions) {
  EXPECT_EQ(message("type B { B(fn (float32) -> float32) }\n"
                    "def @main(%x: float32) -> B { B(fn (%y: float32) -> float32 { add(%x, %y) }) }"),
            "its type is fn (float32) -> B; what is called from outside cannot take or give functions, and the data "
            "type B holds some");
  const std::string nested =
      "type Inner { Inner(ref(fn (float32) -> float32)) }\n"
      "type List[A] { Cons(A, List[A]), Nil }\n"
      "type Outer { Outer((float32, List[Inner])), None }\n"
      "type Plain { Plain(float32) }\n";
  const std::string use =
      "def @use(%o: Outer, %x: float32) -> float32 {\n"
      "  match? (%o) { Outer((%a, Cons(Inner(%r), _))) => ref_read(%r)(%x), _ => %x }\n}\n";
  EXPECT_EQ(message(nested + use + "def @main(%o: Outer, %x: float32) -> float32 { @use(%o, %x) }"),
            "its type is fn (Outer, float32) -> float32; what is called from outside cannot take or give functions, "
            "and the data type Outer holds some");
  EXPECT_EQ(message(nested + use + "def @main(%p: Plain, %l: List[Plain]) -> float32 { @use(None, 1f) }"), "no error");
}

TEST(Defunctionalization, ALiteralThatHandsItsParametersOnTwiceIsAFunction) {
  EXPECT_EQ(
      first_order_results("def @g(%c: float32, %a: float32, %b: float32, %d: float32) -> float32 {\n"
                          "  add(multiply(%c, %a), subtract(%b, %d))\n}\n"
                          "def @app(%f: fn (float32, float32) -> float32, %x: float32) -> float32 { %f(%x, 3f) }\n"
                          "def @main(%x: float32) -> float32 {\n"
                          "  @app(fn (%a: float32, %b: float32) -> float32 { @g(%x, %a, %a, %b) }, %x)\n}"),
      std::vector<double>{-2.25});
}

TEST(Defunctionalization, ALiteralHandsAnotherLiteralOn) {
  EXPECT_EQ(first_order_results("def @app(%f: fn (float32) -> float32, %x: float32) -> float32 { %f(%x) }\n"
                                "def @main(%x: float32) -> float32 {\n"
                                "  let %f = fn (%y: float32) -> float32 { add(%y, %x) };\n"
                                "  @app(fn (%a: float32) -> float32 { @app(%f, %a) }, 2f)\n}"),
            std::vector<double>{2.5});
}

std::vector<std::string> function_names(const IRModule& module) {
  std::vector<std::string> names;
  for (const auto& [var, function] : module->functions()) names.push_back(var->name_hint);
  return names;
}

TEST(Specialize, OneCopyForEachSetOfTypes) {
  const IRModule before = read(
      "def @first[A, B](%a: A, %b: B) -> A { %a }\n"
      "def @both[A](%a: A) -> A { @first(%a, %a) }\n"
      "def @main(%x: float32) { (@both(%x), @both(1), @first(%x, %x), @both(2f)) }");
  const IRModule after = specialize(before);
  EXPECT_EQ(function_names(after), (std::vector<std::string>{"main", "both_1", "both_2", "first_1", "first_2"}));
  expect_same_results(before, after, {ramp({}, 3)}, 0);
}

// Symbols of one name are not one symbol: Tensor[(n, n)] is not Tensor[(n, n')], where both are called n. A function's
// symbols are its own: the copy for Tensor[(n, n)] serves @other, too.
TEST(Specialize, SymbolsAreToldApartByWhatTheyAre) {
  ops::register_all_ops();
  const PrimVar n = make_prim_var("n"), other_n = make_prim_var("n"), third_n = make_prim_var("n");
  const auto param = [](const char* name, const PrimExpr& rows, const PrimExpr& columns) {
    return relay::make_var(name, make_tensor_type(Array<PrimExpr>{rows, columns}));
  };
  const TypeVar type = make_type_var("A");
  const relay::Var held = relay::make_var("y", type);
  const IRModule module = make_module();
  const GlobalVar id = module->add_function(make_global_var("id"), relay::make_function({held}, held, type, {type}));
  const relay::Var a = param("a", n, n), b = param("b", n, other_n), c = param("c", third_n, third_n);
  const auto call = [&](const relay::Var& arg) { return Expr(relay::make_call(Expr(id), {arg})); };
  const GlobalVar other = module->add_function(make_global_var("other"), relay::make_function({c}, call(c), {}));
  const Expr both = relay::make_tuple({call(a), call(b), relay::make_call(Expr(other), {a})});
  module->add_function(make_global_var("main"), relay::make_function({a, b}, both, {}));
  const IRModule after = specialize(relay::infer_type(module));
  EXPECT_EQ(function_names(after), (std::vector<std::string>{"other", "main", "id_1", "id_2"}));
  expect_same_results(relay::infer_type(module), after, {ramp({2, 2}, 1), ramp({2, 3}, 2)}, 0);
}

// Each copy is inferred once.
TEST(Specialize, ChainsOfAnyLength) {
  constexpr int kLength = 1'500;
  std::string text = fmt::format("def @p{}[A](%a: A) -> A {{ %a }}\n", kLength);
  for (int i = 0; i < kLength; ++i) text += fmt::format("def @p{}[A](%a: A) {{ @p{}(%a) }}\n", i, i + 1);
  const IRModule before = read(text + "def @main(%x: float32) -> float32 { @p0(%x) }");
  const IRModule after = specialize(before);
  EXPECT_EQ(after->functions().size(), size_t{kLength} + 2);
  EXPECT_TRUE(after->find_global_var("p1500_1"));
  expect_same_results(before, after, {ramp({}, 3)}, 0);
}

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

// The item type of a list may be written at its let alone: such lets stay, those of tensors go.
TEST(ToGraphNormalForm, KeepsWhatWrittenTypesDecide) {
  const IRModule before = read(
      "type List[A] { Cons(A, List[A]), Nil }\n"
      "def @main(%x: float32) -> float32 {\n"
      "  let %empty: List[float32] = Nil;\n"
      "  let %pair: (float32, ref(List[float32])) = (%x, ref(Nil));\n"
      "  let %plain: float32 = exp(%x);\n"
      "  match (%empty) { Cons(%h, %t) => %plain, Nil => add(%plain, %pair.0) }\n}");
  const IRModule after = run_pass("ToGraphNormalForm", before);
  int lets = 0;
  relay::post_order(after->lookup("main"), [&](const Expr& e) { lets += e.is<relay::LetNode>() ? 1 : 0; });
  EXPECT_EQ(lets, 2) << relay::print_module(after);
  expect_same_results(before, after, {ramp({}, 0.5f)}, 0);
}

// As Python and JSON can make them.
TEST(PartialEvaluate, AVariableThatNothingBindsIsTold) {
  const relay::Var x = relay::make_var("x", make_tensor_type(Shape{2})),
                   z = relay::make_var("z", make_tensor_type(Shape{2}));
  const Expr sum = relay::make_call("add", {z, x});
  for (const Expr& body : {sum, Expr(relay::make_let(z, sum, z))}) {
    const IRModule module = make_module(relay::make_function({x}, body));
    EXPECT_TRUE(kit::user_error_of([&] {
                  partial_evaluate(relay::infer_type(module));
                }).starts_with("%z is used where nothing binds it"));
  }
}

}  // namespace
}  // namespace headrace::passes
