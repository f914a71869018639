// Passes that take functions apart: Defunctionalization, and the copies for types that it needs.
#include "passes/functions/defunctionalization.h"
#include "passes/functions/specialize.h"
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

TEST(Defunctionalization, ProgramsWithoutAFirstOrderFormAreReported) {
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
            "the data type Holder has type parameters and holds functions; remove its type parameters");
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
  EXPECT_EQ(first_order_results("def @apply[A, B](%f: fn (A) -> B, %x: A) -> B { %f(%x) }\n"
                                "def @main(%x: float32) -> (float32, int32) {\n"
                                "  let %y = @apply(fn [A](%y: A) -> A { %y }, %x);\n"
                                "  (%y, @apply(fn [A](%y: A) -> A { %y }, 3))\n}"),
            (std::vector<double>{0.5, 3}));
  EXPECT_EQ(first_order_results("def @main(%x: float32) -> (float32, int32) {\n"
                                "  let %id = fn [A](%y: A) -> A { %y };\n  (%id(%x), %id(1))\n}"),
            (std::vector<double>{0.5, 1}));
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
  EXPECT_EQ(
      message("def @main(%x: float32) { let %id = fn[A](%y: A) -> (A, float32) { (%y, %x) }; (%id(%x), %id(1)) }"),
      "a function with type parameters, fn [A](A) -> (A, float32), is used as a value; no data type holds it; make "
      "it a function of the module, or write one for each of its types");
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

}  // namespace
}  // namespace headrace::passes
