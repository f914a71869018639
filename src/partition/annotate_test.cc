// AnnotateTarget and annotations by hand. tests/upstream_intents.md says which of Relay's tests each one answers.
#include "ir/op_table.h"
#include "object/structural_equal.h"
#include "partition/annotations.h"
#include "partition/tests/region_testing.h"
#include "relay/op_keys.h"

namespace headrace::partition {
namespace {

constexpr const char* kXY = "def @main(%x: Tensor[(4), float32], %y: Tensor[(4), float32]) {\n";

IRModule annotated(const std::string& body, const std::string& names = "red", bool all = true) {
  Map<std::string, Value> config = targets(names);
  config.set("relay.AnnotateTarget.include_non_call_ops", Value(all));
  return run_list("AnnotateTarget", read_program(kXY + body + "}"), config);
}

void expect_annotated(const std::string& body, const std::string& expected, const std::string& names = "red",
                      bool all = true) {
  const IRModule got = annotated(body, names, all), want = read_program(kXY + expected + "}");
  EXPECT_TRUE(structural_equal(got, want)) << relay::print_module(got) << relay::print_module(want);
}

// Text of a value that enters or leaves a part.
std::string enter(const std::string& value, const std::string& compiler = "red") {
  return fmt::format("annotation.compiler_begin({}, compiler=\"{}\")", value, compiler);
}
std::string leave(const std::string& value, const std::string& compiler = "red") {
  return fmt::format("annotation.compiler_end({}, compiler=\"{}\")", value, compiler);
}

TEST(AnnotateTarget, EachUserGetsAnEndOfItsOwn) {
  expect_annotated("%0 = nn.relu(%x); add(tanh(%0), negative(%0))",
                   "%0 = nn.relu(" + enter("%x") + ");\n%1 = tanh(" + enter(leave("%0"), "default") +
                       ");\n%2 = negative(" + enter(leave("%0"), "default") + ");\n%3 = add(" +
                       enter(leave("%1", "default")) + ", " + enter(leave("%2", "default")) + ");\n" + leave("%3"));
}

TEST(AnnotateTarget, ChecksSeeTypes) {
  register_test_compilers();
  int calls = 0;
  set_target_check(get_op("cosh"), "typed", [&](const relay::CallNode& call) {
    ++calls;
    return call.args[0]->checked_type().as<TensorTypeNode>()->dtype == DataType::float_(32);
  });
  expect_annotated("cosh(cosh(%x))",
                   leave("cosh(" + enter(leave("cosh(" + enter("%x", "typed") + ")", "typed"), "typed") + ")", "typed"),
                   "typed");
  EXPECT_EQ(calls, 2);
  get_op("cosh")->erase("target.typed");
}

TEST(AnnotateTarget, TheFirstCompilerOfTheListWins) {
  for (const auto& [names, compiler] : {std::pair{"red,blue", "red"}, {"blue,red", "blue"}, {"green,blue", "blue"}})
    expect_annotated("exp(%x)", leave("exp(" + enter("%x", compiler) + ")", compiler), names);
  expect_annotated("subtract(%x, %y)",
                   leave("subtract(" + enter("%x", "blue") + ", " + enter("%y", "blue") + ")", "blue"), "red,blue");
}

TEST(AnnotateTarget, TuplesFollowTheirInputs) {
  const std::string tuple =
      "(" + enter(leave("exp(" + enter("%x") + ")")) + ", " + enter(leave("abs(" + enter("%y") + ")")) + ")";
  expect_annotated("concatenate((exp(%x), abs(%y)))", leave("concatenate(" + enter(leave(tuple)) + ")"));
  expect_annotated("concatenate((exp(%x), abs(%y)))",
                   "%0 = (" + leave("exp(" + enter("%x") + ")") + ", " + leave("abs(" + enter("%y") + ")") + ");\n" +
                       leave("concatenate(" + enter("%0") + ")"),
                   "red", false);
  expect_annotated("(exp(%x), %y)", leave("(" + enter(leave("exp(" + enter("%x") + ")"), "default") + ", " +
                                              enter("%y", "default") + ")",
                                          "default"));
  expect_annotated(
      "(exp(%x), tanh(%y)).0",
      leave("(" +
                enter(leave("(" + enter(leave("exp(" + enter("%x") + ")"), "default") + ", " +
                                enter(leave("tanh(" + enter("%y", "default") + ")", "default"), "default") + ")",
                            "default"),
                      "default") +
                ").0",
            "default"));
}

TEST(AnnotateTarget, CompositeFunctionsGoByTheirPrefix) {
  const std::string function =
      "%0 = fn (%a: Tensor[(4), float32], Composite=\"NAME\") -> Tensor[(4), float32] { cosh(%a) };\n";
  const auto named = [&](const std::string& name) {
    std::string text = function;
    return text.replace(text.find("NAME"), 4, name);
  };
  expect_annotated(named("red.cosh") + "%0(%x)", named("red.cosh") + leave("%0(" + enter("%x") + ")"));
  for (const char* name : {"blue.cosh", "red", "reddish.cosh", ".red"}) {
    expect_annotated(named(name) + "%0(%x)", named(name) + leave("%0(" + enter("%x", "default") + ")", "default"));
  }
  // One that captures a variable could not be a function of the module.
  const std::string captures =
      "%0 = fn (%a: Tensor[(4), float32], Composite=\"red.sum\") -> Tensor[(4), float32] { add(%a, %y) };\n";
  expect_annotated(captures + "%0(%x)", captures + leave("%0(" + enter("%x", "default") + ")", "default"));
}

TEST(AnnotateTarget, ValuesThatNothingComputesAreInputs) {
  for (const char* body : {"%x", "zeros(shape=[4], dtype=\"float32\")", "()"}) expect_annotated(body, body);
  expect_annotated("abs(zeros(shape=[4], dtype=\"float32\"))",
                   leave("abs(" + enter("zeros(shape=[4], dtype=\"float32\")") + ")"));
  expect_annotated("(%x, ())", leave("(" + enter("%x", "default") + ", " + enter("()", "default") + ")", "default"));
}

TEST(AnnotateTarget, LetsEndTheirValues) {
  expect_annotated("let %a = exp(%x); let %b = %a; abs(add(%b, %y))",
                   "let %a = " + leave("exp(" + enter("%x") + ")") + ";\nlet %b = %a;\n%0 = add(" + enter("%b") + ", " +
                       enter("%y") + ");\n" + leave("abs(" + enter(leave("%0")) + ")"));
}

TEST(AnnotateTarget, MatchesAndGlobalCalls) {
  const IRModule module = read_program(
      "type Box { Full(Tensor[(4), float32]), Empty }\n"
      "def @open(%b: Box) -> Tensor[(4), float32] { match (%b) { Full(%v) => exp(%v), Empty => zeros(shape=[4], "
      "dtype=\"float32\") } }\n"
      "def @main(%x: Tensor[(4), float32]) { abs(@open(Full(exp(%x)))) }");
  const IRModule after = partitioned(module);
  EXPECT_EQ(regions_of(after).size(), 3u);
  EXPECT_EQ(count_annotations(after), 0);
  EXPECT_EQ(after->type_definitions().size(), 1u);
  expect_equal_results(module, after);
}

// Functions that another compiler has already, or that are to be left alone, keep their bodies.
TEST(AnnotateTarget, EntersNoSealedFunctions) {
  for (const char* attr : {"Compiler=\"other\"", "Primitive=1", "SkipOptimization=1", "Composite=\"other.exp\""}) {
    const IRModule module =
        read_program(fmt::format("def @f(%a: Tensor[(4), float32], {}) -> Tensor[(4), float32] {{ exp(%a) }}\n"
                                 "def @main(%x: Tensor[(4), float32]) {{ abs(@f(%x)) }}",
                                 attr));
    const IRModule after = partitioned(module);
    EXPECT_EQ(after->lookup("f"), module->lookup("f")) << attr;
    EXPECT_EQ(regions_of(after).size(), std::string_view(attr).starts_with("Compiler") ? 2u : 1u) << attr;
  }
}

TEST(AnnotateTarget, StatefulOpsStay) {
  register_test_compilers();
  const Op op = make_op("test.region_noise");
  op->set(relay::kTypeRelation,
          relay::TypeRelationFn([](const relay::RelationInput& input) { return input.arg_types[0]; }));
  op->set(relay::kStateful, true);
  op->num_inputs = 1;
  publish_op(op, true);
  set_target_check(op, "red", [](const relay::CallNode&) { return true; });
  expect_annotated("test.region_noise(%x)", leave("test.region_noise(" + enter("%x", "default") + ")", "default"));
}

TEST(AnnotateTarget, ReportsWrongOptionsAndChecks) {
  const IRModule module = read_program(std::string(kXY) + "sinh(%x) }");
  EXPECT_EQ(run_list("AnnotateTarget", module), module) << "no compilers";
  EXPECT_EQ(kit::user_error_of([&] { run_list("AnnotateTarget", module, targets("default")); }),
            "'default' names no compiler; AnnotateTarget takes names such as \"dnnl\"");
  EXPECT_EQ(kit::user_error_of([&] { run_list("AnnotateTarget", module, targets("red,")); }),
            "'' names no compiler; AnnotateTarget takes names such as \"dnnl\"");
  const Op op = get_op("sinh");
  op->set(OpKey<Value>{"target.wrong"}, Value(int64_t{3}));
  EXPECT_EQ(kit::user_error_of([&] { run_list("AnnotateTarget", module, targets("wrong")); }),
            "the attribute 'target.wrong' of op 'sinh' is 3; it is a function that says whether a call is supported");
  op->set(OpKey<Value>{"target.wrong"}, Value(make_packed([](const Expr&) { return 0.5; })));
  EXPECT_EQ(kit::user_error_of([&] { run_list("AnnotateTarget", module, targets("wrong")); }),
            "the attribute 'target.wrong' of op 'sinh' gave 0.5; it must give True or False, or a string that says why "
            "not");
  op->erase("target.wrong");
}

TEST(AnnotateTarget, ChecksGiveReasons) {
  const Op op = get_op("sinh");
  const IRModule module = relay::infer_type(read_program(std::string(kXY) + "sinh(%x) }"));
  const Expr call = module->lookup("main").cast<relay::FunctionNode>()->body;
  const auto verdict = [&] { return CheckedCompiler("choosy").verdict_of(*call.as<relay::CallNode>()); };
  EXPECT_EQ(verdict().message, "has no attribute target.choosy that says so");
  set_target_check(op, "choosy", [](const relay::CallNode&) {
    return Verdict{.reason = HR_REASON_SHAPE_UNSUPPORTED, .message = "the tensor is too small"};
  });
  EXPECT_EQ(verdict().message, "the tensor is too small");
  EXPECT_EQ(verdict().reason, HR_REASON_SHAPE_UNSUPPORTED);
  set_target_check(op, "choosy", [](const relay::CallNode&) { return Verdict(); });
  EXPECT_TRUE(verdict().ok());
  set_target_check(op, "choosy", [](const relay::CallNode&) { return false; });
  EXPECT_EQ(verdict().message, "the op's attribute target.choosy says no to this call");
  op->set(OpKey<Value>{"target.choosy"}, Value(make_packed([](const Expr&) { return std::string("it is odd"); })));
  EXPECT_EQ(verdict().message, "it is odd");
  EXPECT_EQ(verdict().reason, HR_REASON_OP_UNSUPPORTED);
  op->erase("target.choosy");
}

// Annotations by hand: what they enclose, by the ops of each part.
std::vector<std::string> parts_of(const std::string& body) {
  const IRModule module = read_program(kXY + body + "}");
  const Annotated read = read_annotations(passes::main_of(module).body);
  std::vector<std::string> parts(read.compiler.size());
  for (size_t i = 0; i < parts.size(); ++i) parts[i] = read.compiler[i] + ":";
  for (size_t i = 0; i < read.flow.nodes.size(); ++i) {
    const auto* call = read.flow.nodes[i].as<relay::CallNode>();
    if (read.part[i] != kNone && call != nullptr) parts[static_cast<size_t>(read.part[i])] += " " + call->as_op()->name;
  }
  return parts;
}

using Parts = std::vector<std::string>;

TEST(Annotations, EncloseWhatIsBetweenThem) {
  EXPECT_EQ(parts_of("tanh(" + leave("exp(abs(" + enter("%x") + "))") + ")"), (Parts{"red: abs exp"}));
  // Two ways around: what is not closed is outside.
  EXPECT_EQ(
      parts_of("%0 = abs(" + enter("%x") + ");\n%1 = exp(%0);\nadd(" + leave("%1") + ", tanh(" + leave("%0") + "))"),
      (Parts{"red: abs exp"}));
  EXPECT_EQ(
      parts_of("add(" + leave("exp(" + enter("%x") + ")") + ", " + leave("tanh(" + enter("%y", "b") + ")", "b") + ")"),
      (Parts{"red: exp", "b: tanh"}));
}

TEST(Annotations, AreCompleted) {
  // An input without compiler_begin, a constant, and a value that leaves without compiler_end.
  EXPECT_EQ(parts_of("%0 = add(" + enter("%x") + ", %y);\n%1 = multiply(%0, 2f);\nadd(" + leave("%1") + ", tanh(%0))"),
            (Parts{"red: add multiply"}));
  // A part ends where a branch begins.
  EXPECT_EQ(parts_of("%0 = exp(" + enter("%x") + ");\nif (less(sum(%0), 1f)) {" + leave("abs(%0)") + "} else { %y }"),
            (Parts{"red: exp", "red: abs"}));
  EXPECT_EQ(parts_of(leave("add(1f, zeros(shape=[4], dtype=\"float32\"))")), (Parts{"red: add"}));
}

std::string refusal(const std::string& body) {
  try {
    parts_of(body);
  } catch (const UserError& error) {
    return error.where().op + ": " + error.message() + (error.where().place.empty() ? " (nowhere)" : "");
  }
  return "no error";
}

TEST(Annotations, AreRefusedWhereTheyAreUnbalanced) {
  EXPECT_EQ(refusal("exp(" + enter("%x") + ")"),
            "annotation.compiler_begin: no compiler_end closes the part that it opens for 'red'; put one around each "
            "result of the part");
  EXPECT_EQ(refusal(leave("exp(%x)")),
            "annotation.compiler_end: no compiler_begin opens the part that it closes for 'red'; put one around each "
            "input of the part");
  EXPECT_EQ(refusal(leave("exp(" + enter("%x", "blue") + ")")),
            "annotation.compiler_end: the part is annotated for 'blue' and for 'red'; one compiler computes a part");
  EXPECT_EQ(refusal(leave("add(" + enter("%x") + ", " + enter("%y", "blue") + ")")),
            "annotation.compiler_begin: the part is annotated for 'red' and for 'blue'; one compiler computes a part");
  EXPECT_EQ(refusal(leave("%x")), "annotation.compiler_end: it closes a part that has no computation");
  EXPECT_EQ(refusal(leave(enter("%x"))), "annotation.compiler_begin: it opens a part that has no computation");
  EXPECT_EQ(refusal(leave(leave("exp(" + enter("%x") + ")"))),
            "annotation.compiler_end: it closes a part that is closed already");
  EXPECT_EQ(refusal("let %a = " + enter("%x") + "; %a"),
            "annotation.compiler_begin: it opens a part that has no computation");
  EXPECT_EQ(refusal(leave("ref_read(" + enter("ref(%x)") + ")")),
            "annotation.compiler_begin: a reference stays in the program");
  EXPECT_EQ(refusal("let %f = fn (%a: Tensor[(4), float32]) { exp(%a) };\n" + leave("%f(" + enter("%x") + ")")),
            "annotation.compiler_begin: only calls of ops and of composite functions can be computed elsewhere");
}

TEST(Annotations, APartThatIsEnteredAgainIsRefused) {
  const IRModule module = read_program(std::string(kXY) + "%0 = exp(" + enter("%x") + ");\nadd(" +
                                       leave("multiply(%0, " + enter("tanh(" + leave("%0") + ")") + ")") + ", %y) }");
  for (const char* pass : {"PartitionGraph", "MergeCompilerRegions"}) {
    try {
      run_list(pass, module);
      FAIL() << "no error";
    } catch (const UserError& error) {
      EXPECT_EQ(
          error.message(),
          "a part for the compiler 'red' needs a value that depends on another value of the part; close it before "
          "that value and open a new one behind");
      EXPECT_FALSE(error.where().place.empty());
    }
  }
}

// The ops themselves: any type, no effect on results, a name is needed.
TEST(Annotations, GiveTheirArgument) {
  const IRModule module =
      read_program(std::string(kXY) +
                   "let %r = annotation.compiler_begin(ref(%x), compiler=\"default\");\n"
                   "let %t = annotation.compiler_end((ref_read(%r), %y), compiler=\"default\");\n%t.0 }");
  const auto results = interp::run_main(module, inputs_of(module));
  EXPECT_EQ(results[0].data<float>()[1], inputs_of(module)[0].data<float>()[1]);
}

}  // namespace
}  // namespace headrace::partition
