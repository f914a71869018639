// MergeCompilerRegions, PartitionGraph and partition_by_labels. tests/upstream_intents.md says which of Relay's tests
// each one answers.
#include "kit/options.h"
#include "object/structural_equal.h"
#include "partition/extract.h"
#include "partition/merge.h"
#include "partition/tests/region_testing.h"

namespace headrace::partition {
namespace {

constexpr const char* kMain = "def @main(%x: Tensor[(4), float32], %y: Tensor[(4), float32]) {\n";

struct Outcome {
  IRModule before, after;
  std::vector<relay::Function> regions;
  std::string text() const { return relay::print_module(after); }
};

Outcome partition(const std::string& body, const std::string& names = "red") {
  const IRModule before = read_program(kMain + body + "}");
  const IRModule after = partitioned(before, names);
  EXPECT_EQ(count_annotations(after), 0);
  expect_equal_results(before, after);
  return {before, after, regions_of(after)};
}

std::string text_of(const relay::Function& function) { return relay::print_expr(function); }

size_t num_results(const relay::Function& function) { return leaves_of(function->body->checked_type()).size(); }

TEST(PartitionGraph, OneOpBecomesAFunctionWithItsAttributes) {
  const Outcome got = partition("exp(%x)");
  ASSERT_EQ(got.regions.size(), 1u);
  const DictAttrs& attrs = got.regions[0]->attrs;
  EXPECT_EQ(attrs.at("global_symbol").as<std::string>(), "tvmgen_default_red_main_0");
  EXPECT_EQ(attrs.at("Compiler").as<std::string>(), "red");
  EXPECT_EQ(attrs.at("Primitive").as<int64_t>(), 1);
  EXPECT_EQ(attrs.at("Inline").as<int64_t>(), 1);
  EXPECT_EQ(got.regions[0]->params[0]->name_hint, "red_0_i0");
  EXPECT_TRUE(got.after->find_global_var("tvmgen_default_red_main_0"));
}

TEST(PartitionGraph, EachInputIsOneParameterInOrderOfUse) {
  const Outcome got = partition("add(add(%y, exp(%x)), multiply(%x, %y))");
  ASSERT_EQ(got.regions.size(), 1u);
  ASSERT_EQ(got.regions[0]->params.size(), 2u);
  const auto* call = passes::main_of(got.after).body.as<relay::CallNode>();
  EXPECT_EQ(call->args[0].as<relay::VarNode>()->name_hint, "y");
  EXPECT_EQ(call->args[1].as<relay::VarNode>()->name_hint, "x");
}

TEST(PartitionGraph, FunctionsAreNamedAfterTheirFunction) {
  const IRModule module = read_program(
      "def @sub(%a: Tensor[(4), float32]) -> Tensor[(4), float32] { exp(%a) }\n"
      "def @main(%x: Tensor[(4), float32]) { abs(@sub(%x)) }");
  const IRModule after = partitioned(module);
  EXPECT_TRUE(after->find_global_var("tvmgen_default_red_sub_0"));
  EXPECT_TRUE(after->find_global_var("tvmgen_default_red_main_0"));
  expect_equal_results(module, after);
}

TEST(PartitionGraph, NamesAreSanitizedAndNotTaken) {
  EXPECT_EQ(sanitized("unsanitary-name++"), "unsanitary_name__");
  EXPECT_EQ(sanitized("a.b c\xc3\xa4"), "a_b_c__");
  register_test_compilers();
  set_target_check(get_op("exp"), "odd name.1", [](const relay::CallNode&) { return true; });
  const IRModule module = read_program(
      "def @tvmgen_default_odd_name_1_main_0(%a: Tensor[(4), float32]) -> Tensor[(4), float32] { tanh(%a) }\n"
      "def @main(%x: Tensor[(4), float32]) { exp(@tvmgen_default_odd_name_1_main_0(%x)) }");
  const IRModule after = partitioned(module, "odd name.1");
  ASSERT_EQ(regions_of(after).size(), 1u);
  EXPECT_EQ(regions_of(after)[0]->attrs.at("global_symbol").as<std::string>(), "tvmgen_default_odd_name_1_main_1");
  EXPECT_EQ(regions_of(after)[0]->attrs.at("Compiler").as<std::string>(), "odd name.1");
  expect_equal_results(module, after);
  const IRModule bare = run_list("PartitionGraph", run_list("AnnotateTarget", module, targets("odd name.1")),
                                 {{"relay.PartitionGraph.mod_name", Value(std::string())}});
  EXPECT_TRUE(bare->find_global_var("tvmgen_odd_name_1_main_0"));
  get_op("exp")->erase("target.odd name.1");
}

TEST(PartitionGraph, ConstantsAreInside) {
  const Outcome got = partition("add(%x, const(Tensor[(4), float32], [1, 2, 3, 4]))");
  ASSERT_EQ(got.regions.size(), 1u);
  EXPECT_EQ(got.regions[0]->params.size(), 1u);
  // A tuple of constants, too.
  const Outcome tuple = partition("concatenate((const(Tensor[(1), float32], [1]), const(Tensor[(1), float32], [2])))");
  ASSERT_EQ(tuple.regions.size(), 1u);
  EXPECT_TRUE(tuple.regions[0]->params.empty());
}

TEST(PartitionGraph, SeveralResultsAreAFlatTuple) {
  const Outcome got = partition("%0 = exp(%x);\n%1 = abs(%0);\n(tanh(%0), (tanh(%1), tanh(%0)))");
  ASSERT_EQ(got.regions.size(), 1u);
  EXPECT_EQ(num_results(got.regions[0]), 2u);
  EXPECT_EQ(got.regions[0]->body->checked_type().as<TupleTypeNode>()->items.size(), 2u);
}

TEST(PartitionGraph, OneResultIsNoTuple) {
  const Outcome got = partition("%0 = exp(%x);\n(tanh(%0), negative(%0))");
  ASSERT_EQ(got.regions.size(), 1u);
  EXPECT_TRUE(got.regions[0]->body->checked_type().is<TensorTypeNode>());
}

TEST(PartitionGraph, DuplicateResultsAreOne) {
  const Outcome got = partition("%0 = abs(%x);\n(%0, %0, %0)");
  ASSERT_EQ(got.regions.size(), 1u);
  EXPECT_EQ(num_results(got.regions[0]), 1u);
  const Outcome nested = partition("%0 = abs(%x);\n%1 = (%0, (%0, exp(%0)));\n(%1, %1.0, %1.1.1)");
  ASSERT_EQ(nested.regions.size(), 1u);
  EXPECT_EQ(num_results(nested.regions[0]), 2u);
}

TEST(PartitionGraph, AResultMayGoToItsOwnAndOtherRegions) {
  const Outcome got = partition("%0 = exp(%x);\n%1 = tanh(%0);\nadd(add(%0, %1), abs(%0))", "red,green");
  ASSERT_EQ(got.regions.size(), 3u) << got.text();
  EXPECT_EQ(num_results(got.regions[0]), 2u) << "exp, for tanh and the last region, and abs, for the last region";
}

TEST(PartitionGraph, ATupleThatAnOpGivesStaysOne) {
  const Outcome got = partition("%0 = split(%x, indices_or_sections=2);\n(%0, tanh(%0.1))");
  ASSERT_EQ(got.regions.size(), 1u);
  EXPECT_EQ(num_results(got.regions[0]), 2u);
  EXPECT_TRUE(got.regions[0]->body.is<relay::CallNode>()) << got.text();
  const Outcome all = partition("split(%x, indices_or_sections=2)");
  EXPECT_TRUE(passes::main_of(all.after).body.is<relay::CallNode>()) << all.text();
}

TEST(PartitionGraph, PiecesOfASplitCanLeave) {
  const Outcome got =
      partition("%0 = split(%x, indices_or_sections=2);\n%1 = abs(%0.0);\ntanh(concatenate((tanh(%1), %0.1)))");
  EXPECT_EQ(got.regions.size(), 2u) << got.text();
  EXPECT_EQ(num_results(got.regions[0]), 2u);
}

// A tuple needs no region if only those of its fields are used that came in.
TEST(PartitionGraph, ARegionWithoutResultsIsDropped) {
  const IRModule module = read_program(std::string(kMain) +
                                       "%0 = annotation.compiler_begin(%x, compiler=\"red\");\n"
                                       "%1 = annotation.compiler_begin(%y, compiler=\"red\");\n"
                                       "%2 = (exp(%0), %1);\nannotation.compiler_end(%2.1, compiler=\"red\") }");
  const IRModule after = run_list("PartitionGraph", module);
  EXPECT_TRUE(regions_of(after).empty());
  EXPECT_TRUE(passes::main_of(after).body.is<relay::VarNode>()) << relay::print_module(after);
}

TEST(PartitionGraph, WithoutAnnotationsNothingChanges) {
  const IRModule module = read_program(std::string(kMain) + "tanh(exp(%x)) }");
  EXPECT_EQ(run_list("PartitionGraph", module), module);
  EXPECT_EQ(run_list("MergeCompilerRegions", module), module);
  const IRModule only_default = run_list("AnnotateTarget", module, targets("blu"));
  EXPECT_TRUE(structural_equal(run_list("PartitionGraph", only_default), module));
}

TEST(PartitionGraph, TypesSymbolsAndTypeVariablesAreKept) {
  const IRModule module = read_program(
      "def @twice[A](%f: fn (A) -> A, %a: A) -> A { %f(%f(%a)) }\n"
      "def @main(%x: Tensor[(n, 4), float32]) { abs(@twice(fn (%a: Tensor[(n, 4), float32]) { exp(%a) }, %x)) }");
  const IRModule after = partitioned(module);
  EXPECT_EQ(regions_of(after).size(), 2u);
  const std::vector<NDArray> inputs{passes::ramp({3, 4}, -0.5f)};
  passes::expect_same_results(module, after, inputs, 0);
}

TEST(PartitionGraph, TheOptimizeHookSeesTheRegion) {
  int calls = 0;
  const std::string hook = "relay.ext.hooked.optimize";
  register_test_compilers();
  for (const char* op : {"exp", "abs"})
    set_target_check(get_op(op), "hooked", [](const relay::CallNode&) { return true; });
  register_global(hook, make_packed([&](const IRModule& module) {
                    ++calls;
                    EXPECT_TRUE(module->lookup("main")->has_checked_type());
                    return relay::parse_module(
                        "#[version = \"0.0.5\"]\ndef @main(%a: Tensor[(4), float32]) { exp(negative(negative(%a))) }");
                  }),
                  true);
  const Outcome got = partition("exp(%x)", "hooked");
  EXPECT_EQ(calls, 1);
  ASSERT_EQ(got.regions.size(), 1u);
  EXPECT_EQ(passes::count_calls(got.after, "negative"), 0);
  EXPECT_NE(text_of(got.regions[0]).find("negative"), std::string::npos);
  EXPECT_EQ(got.regions[0]->attrs.at("Compiler").as<std::string>(), "hooked");

  const IRModule module = read_program(std::string(kMain) + "abs(%x) }");
  register_global(hook, make_packed([](const IRModule&) { return int64_t{1}; }), true);
  EXPECT_EQ(kit::user_error_of([&] { partitioned(module, "hooked"); }),
            hook + " gives no module; it takes and gives an IRModule");
  register_global(
      hook, make_packed([](const IRModule&) {
        return relay::parse_module("#[version = \"0.0.5\"]\ndef @main(%a: Tensor[(5), float32]) { exp(%a) }");
      }),
      true);
  EXPECT_EQ(kit::user_error_of([&] { partitioned(module, "hooked"); }),
            hook + " gives a function of another type than it got; parameters and result are those of the region");
  for (const char* op : {"exp", "abs"}) get_op(op)->erase("target.hooked");
}

TEST(PartitionGraph, ItsListOrderIsChecked) {
  const IRModule module = read_program(std::string(kMain) + "exp(%x) }");
  const std::string error =
      kit::user_error_of([&] { run_list("PartitionGraph,AnnotateTarget", module, targets("red")); });
  EXPECT_NE(error.find("PartitionGraph comes after AnnotateTarget"), std::string::npos) << error;
}

// Relay's example of its design paper: three parts on a way with two other ops.
TEST(MergeCompilerRegions, FewPartsOnTheExampleOfTheDesign) {
  const Outcome got = partition(
      "%0 = abs(%x);\n%1 = exp(%y);\n%2 = tanh(%0);\n%3 = add(%1, %0);\n%4 = nn.relu(%3);\n%5 = tanh(%4);\n"
      "%6 = add(%3, %5);\nadd(multiply(%6, %2), %4)");
  EXPECT_EQ(got.regions.size(), 2u) << got.text();
}

TEST(MergeCompilerRegions, APathThroughABranchSeparates) {
  const IRModule module = read_program(
      "def @main(%c: bool, %x: Tensor[(4), float32]) {\n"
      "%0 = exp(%x);\n%1 = if (%c) { tanh(%0) } else { %x };\nadd(abs(%0), %1) }");
  const IRModule after = partitioned(module);
  EXPECT_EQ(regions_of(after).size(), 2u) << relay::print_module(after);
  expect_equal_results(module, after);
}

// A value that is shared by a branch and its surroundings is computed outside; what only the branch uses, inside.
TEST(MergeCompilerRegions, NothingMovesIntoOrOutOfABranch) {
  const IRModule module = read_program(
      "def @main(%c: bool, %x: Tensor[(4), float32]) {\n"
      "%0 = exp(%x);\n(if (%c) { abs(%0) } else { add(exp(%x), %0) }, %0) }");
  const IRModule after = partitioned(module);
  ASSERT_EQ(regions_of(after).size(), 3u) << relay::print_module(after);
  expect_equal_results(module, after);
}

TEST(MergeCompilerRegions, ALetInBracesKeepsItsScope) {
  const IRModule module = read_program(
      "def @main(%x: Tensor[(4), float32]) {\n"
      "%0 = exp(%x);\n%1 = add({ let %b = tanh(%x); add(%0, %b) }, abs(%0));\n(%1, tanh(%0)) }");
  const IRModule after = partitioned(module);
  relay::verify(after);
  expect_equal_results(module, after);
}

TEST(MergeCompilerRegions, TuplesConnect) {
  const Outcome got = partition("tanh(concatenate((exp(%x), %y, split(%x, indices_or_sections=2).1)))");
  ASSERT_EQ(got.regions.size(), 1u) << got.text();
  const IRModule calls_only = run_list("AnnotateTarget,MergeCompilerRegions,PartitionGraph", got.before,
                                       {{"relay.AnnotateTarget.targets", Value(std::string("red"))},
                                        {"relay.AnnotateTarget.include_non_call_ops", Value(false)}});
  EXPECT_EQ(regions_of(calls_only).size(), 1u) << relay::print_module(calls_only);
}

// Labels

Labels label_calls(const IRModule& module, const std::function<std::string(const std::string&)>& backend) {
  Labels labels;
  for (const auto& [var, function] : module->functions()) {
    relay::post_order(function, [&](const Expr& expr) {
      const auto* call = expr.as<relay::CallNode>();
      if (call == nullptr || call->as_op() == nullptr) return;
      if (const std::string name = backend(call->as_op()->name); !name.empty()) labels.emplace(expr.object(), name);
    });
  }
  return labels;
}

TEST(PartitionByLabels, GivesModuleRegionsAndBound) {
  const IRModule module =
      read_program(std::string(kMain) + "%0 = exp(%x);\n%1 = tanh(%0);\nadd(abs(%0), multiply(%1, %y)) }");
  const Labels labels = label_calls(module, [](const std::string& op) { return op == "tanh" ? "b" : "a"; });
  const Partitioned result = partition_by_labels(module, labels, {.mod_name = "m"});
  ASSERT_EQ(result.regions.size(), 3u);
  EXPECT_EQ(result.fewest_regions, 3);
  EXPECT_EQ(result.regions[0].name, "tvmgen_m_a_main_0");
  EXPECT_EQ(result.regions[0].num_calls, 2);
  EXPECT_EQ(result.regions[1].backend, "b");
  relay::verify(result.module, {.types = true});
  EXPECT_EQ(relay::infer_type(result.module), result.module) << "all nodes have types";
  expect_equal_results(module, result.module);
}

// A tuple that is made for one call is in its region, one for several calls is not.
TEST(PartitionByLabels, BackendsOfOneCallHaveARegionForEach) {
  const IRModule module = read_program(std::string(kMain) +
                                       "%0 = exp(%x);\n%1 = (%0, %y);\n%2 = concatenate((abs(%0), tanh(%0)));\n"
                                       "(%2, concatenate(%1), concatenate(%1), negative(negative(%y))) }");
  const Labels labels = label_calls(module, [](const std::string& op) { return op == "negative" ? "b" : "a"; });
  const Partitioned result = partition_by_labels(module, labels, {.one_call = {"a"}});
  std::vector<int64_t> calls;
  for (const ExtractedRegion& region : result.regions) calls.push_back(region.num_calls);
  EXPECT_EQ(calls, (std::vector<int64_t>{1, 1, 1, 1, 1, 1, 2}));
  EXPECT_EQ(result.fewest_regions, 7);
  int with_tuple = 0;
  for (const relay::Function& region : regions_of(result.module)) {
    for (const relay::Var& param : region->params) with_tuple += param->checked_type().is<TupleTypeNode>() ? 1 : 0;
  }
  EXPECT_EQ(with_tuple, 2) << relay::print_module(result.module);
  expect_equal_results(module, result.module);
}

TEST(PartitionByLabels, NoLabelsChangeNothing) {
  const IRModule module = read_program(std::string(kMain) + "exp(%x) }");
  EXPECT_EQ(partition_by_labels(module, {}).module, module);
  const IRModule zeros = read_program(std::string(kMain) + "zeros(shape=[4], dtype=\"float32\") }");
  EXPECT_EQ(partition_by_labels(zeros, label_calls(zeros, [](const std::string&) { return "a"; })).module, zeros);
}

TEST(PartitionByLabels, RefusesCallsThatNoRegionCanHold) {
  const IRModule module =
      read_program(std::string(kMain) + "let %f = fn (%a: Tensor[(4), float32]) { exp(%a) };\n%f(%x) }");
  Labels labels;
  relay::post_order(module->lookup("main"), [&](const Expr& expr) {
    const auto* call = expr.as<relay::CallNode>();
    if (call != nullptr && call->as_op() == nullptr) labels.emplace(expr.object(), "a");
  });
  EXPECT_NE(kit::user_error_of([&] { partition_by_labels(module, labels); }).find("only calls of ops and of composite"),
            std::string::npos);
}

// A chain of ops; every tenth stays.
IRModule chain_of(int length) {
  register_test_compilers();
  const relay::Var param = relay::make_var("x", make_tensor_type(Shape{2}));
  Expr value = param;
  for (int i = 0; i < length; ++i) value = relay::make_call(i % 10 == 0 ? "sqrt" : "exp", {value});
  return relay::infer_type(make_module(relay::make_function({param}, value)));
}

TEST(PartitionByLabels, LongChainsNeedNoStack) {
  const int length = kit::by_depth(100'000);
  const IRModule module = chain_of(length);
  const Labels labels = label_calls(module, [](const std::string& op) { return op == "exp" ? "a" : ""; });
  EXPECT_EQ(partition_by_labels(module, labels).regions.size(), static_cast<size_t>(length / 10));
}

TEST(PartitionGraph, LongChainsNeedNoStack) {
  const int length = kit::by_depth(30'000);
  const IRModule annotated = annotate_target(chain_of(length), {.targets = {"red"}});
  EXPECT_EQ(partition_graph(merge_compiler_regions(annotated)).regions.size(), static_cast<size_t>(length / 10));
}

// Functions for other compilers

constexpr const char* kInlined =
    "fn (%a: Tensor[(4), float32], Compiler=\"red\", global_symbol=\"NAME\", Primitive=1) -> Tensor[(4), float32] "
    "{ BODY }";

std::string literal(const std::string& name, const std::string& body) {
  std::string text = kInlined;
  text.replace(text.find("NAME"), 4, name);
  return text.replace(text.find("BODY"), 4, body);
}

constexpr const char* kOutline = "OutlineCompilerFunctionsWithExistingGlobalSymbols";

TEST(OutlineCompilerFunctions, EqualOnesBecomeOne) {
  const IRModule module = read_program(std::string(kMain) + "%0 = " + literal("f", "exp(%a)") +
                                       ";\n%1 = " + literal("f", "exp(%a)") + ";\nadd(%0(%x), %1(%y)) }");
  const IRModule after = run_list(kOutline, module);
  EXPECT_EQ(after->functions().size(), 2u);
  expect_equal_results(module, after);
  EXPECT_EQ(
      run_list(kOutline, module, {{fmt::format("relay.{}.compiler_filter", kOutline), Value(std::string("blue"))}}),
      module);
}

TEST(OutlineCompilerFunctions, RefusesWhatHasNoNameOrCaptures) {
  const auto error_of = [](const std::string& body) {
    const IRModule module = read_program(kMain + body + "}");
    return kit::user_error_of([&] { run_list(kOutline, module); });
  };
  EXPECT_NE(
      error_of("%0 = " + literal("f", "exp(%a)") + ";\n%1 = " + literal("f", "abs(%a)") + ";\nadd(%0(%x), %1(%y))")
          .find("another function is named 'f' already; rename one"),
      std::string::npos);
  EXPECT_NE(
      error_of("%0 = " + literal("f", "add(%a, %y)") + ";\n%0(%x)").find("the function 'f' uses the variable 'y'"),
      std::string::npos);
  EXPECT_NE(error_of("%0 = fn (%a: Tensor[(4), float32], Compiler=\"red\") { exp(%a) };\n%0(%x)")
                .find("has no name; give it the attribute global_symbol"),
            std::string::npos);
}

TEST(InlineCompilerFunctions, UndoesAPartitioning) {
  const Outcome got = partition("%0 = exp(%x);\n%1 = tanh(%0);\n(abs(%0), add(%1, %y))");
  ASSERT_FALSE(got.regions.empty());
  std::string names;
  for (const relay::Function& region : got.regions)
    names += (names.empty() ? "" : ",") + region->attrs.at("global_symbol").as<std::string>();
  const IRModule back = run_list("InlineCompilerFunctionsBoundTo", got.after,
                                 {{"relay.InlineCompilerFunctionsBoundTo.global_vars", Value(names)}});
  EXPECT_TRUE(regions_of(back).empty());
  expect_equal_results(got.before, back);
}

TEST(InlineCompilerFunctions, ReportsOtherFunctions) {
  const IRModule module = read_program(
      "def @f(%a: Tensor[(4), float32]) -> Tensor[(4), float32] { exp(%a) }\n"
      "def @g(%a: Tensor[(4), float32], Compiler=\"red\") -> Tensor[(4), float32] { exp(%a) }\n"
      "def @main(%x: Tensor[(4), float32]) { let %h = @g; add(@f(%x), %h(%x)) }");
  const auto error_of = [&](const std::string& name) {
    return kit::user_error_of([&] {
      run_list("InlineCompilerFunctionsBoundTo", module,
               {{"relay.InlineCompilerFunctionsBoundTo.global_vars", Value(name)}});
    });
  };
  EXPECT_EQ(error_of("f"), "@f is not marked Compiler, and only functions that are can be inlined here");
  EXPECT_NE(error_of("g").find("@g cannot be inlined, because @main refers to it in another way"), std::string::npos);
  EXPECT_NE(error_of("nothing").find("nothing"), std::string::npos);
}

// An argument with an effect is evaluated once, whatever the body does with it.
TEST(InlineCompilerFunctions, EffectsOfArgumentsStay) {
  const IRModule module = read_program(
      "def @g(%a: Tensor[(4), float32], %b: Tensor[(4), float32], Compiler=\"red\") -> Tensor[(4), float32] { add(%b, "
      "%b) }\n"
      "def @main(%x: Tensor[(4), float32]) {\n"
      "let %r = ref(%x);\n%0 = { let %u = ref_write(%r, exp(ref_read(%r))); ref_read(%r) };\n"
      "let %s = @g(%0, %x);\nadd(%s, ref_read(%r)) }");
  const IRModule after = run_list("InlineCompilerFunctionsBoundTo", module,
                                  {{"relay.InlineCompilerFunctionsBoundTo.global_vars", Value(std::string("g"))}});
  expect_equal_results(module, after);
}

}  // namespace
}  // namespace headrace::partition
