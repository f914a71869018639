// Placement by a list of backends: which op goes where and why, with right results, refusals and fallbacks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver/all_backends.h"
#include "driver/compile.h"
#include "driver/explain.h"
#include "driver/placing.h"
#include "driver/register_all.h"
#include "interp/interp.h"
#include "kit/backends.h"
#include "kit/errors.h"
#include "kit/files.h"
#include "load/run.h"
#include "partition/annotations.h"
#include "partition/backend.h"
#include "partition/compiler_functions.h"
#include "partition/place.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"

namespace headrace::driver {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr const char* kThreeParts =
    "def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(2, 3), float32]) {\n"
    "  let %a = multiply(add(%x, %y), %x);\n"
    "  let %b = nn.softmax(%a);\n"
    "  subtract(nn.relu(%b), %y)\n}\n";

IRModule module_of(const std::string& text) {
  register_all();
  return relay::infer_type(relay::parse_module("#[version = \"0.0.5\"]\n" + text));
}

std::vector<std::string> rows_of(const artifact::Manifest& manifest) {
  std::vector<std::string> rows;
  for (const artifact::Placement& one : manifest.programs[0].placement)
    rows.push_back(fmt::format("{} {}", one.backend, static_cast<int>(one.reason)));
  return rows;
}

void expect_right(const std::string& text, const CompileOptions& options) {
  const IRModule module = module_of(text);
  const NDArray x = NDArray::from_vector({2, 3}, DataType::float_(32), std::vector<float>{1, -2, 3, 0.5F, -1, 2}),
                y = NDArray::from_vector({2, 3}, DataType::float_(32), std::vector<float>{4, 5, -6, 1, 2, -3});
  const NDArray want = interp::run_main(module, {x, y}).at(0);
  const auto artifact = open_compiled(compile_to_memory(make_model(module), options), "the artifact");
  const auto executor = load::make_executor(artifact, "default", {.threads = 1, .fallback = executors::Fallback::none});
  const NDArray got = load::run(*executor, std::vector<NDArray>{x, y}).at(0);
  for (int64_t i = 0; i < want.num_elements(); ++i) EXPECT_NEAR(got.data<float>()[i], want.data<float>()[i], 1e-6);
}

TEST(Backends, EachOpGoesToTheFirstThatTakesIt) {
  if (const std::string why = kit::why_without("ccompiler"); !why.empty()) GTEST_SKIP() << why;
  const CompileOptions options{.backends = {"ccompiler"}};
  const artifact::Manifest manifest = compile_to_memory(make_model(module_of(kThreeParts)), options).report.manifest;
  EXPECT_THAT(rows_of(manifest),
              ElementsAre("ccompiler 63", "ccompiler 63", "native 20", "ccompiler 63", "ccompiler 63"));
  EXPECT_THAT(manifest.programs[0].placement[2].message, HasSubstr("ccompiler: the backend has no C text for this op"));
  ASSERT_THAT(manifest.regions, SizeIs(2));
  EXPECT_EQ(manifest.regions[0].name, "tvmgen_default_ccompiler_main_0");
  EXPECT_EQ(manifest.regions[0].symbol, manifest.regions[0].name);
  EXPECT_EQ(manifest.regions[0].fallback, manifest.regions[0].name);
  ASSERT_THAT(manifest.backends, SizeIs(1));
  EXPECT_EQ(manifest.backends[0].version, "1");
  EXPECT_THAT(manifest.modules, IsEmpty());
  for (const int level : {0, 3}) expect_right(kThreeParts, {.passes = {.opt_level = level}, .backends = {"ccompiler"}});
}

// A backend that takes all ops, refuses to compile regions of more than one, and computes the others as its functions.
class Picky : public partition::Backend {
 public:
  std::string_view name() const override { return "picky_test"; }
  partition::Verdict supports(const relay::CallNode&) const override { return {}; }
  std::vector<Expected<partition::RegionCode>> compile(const partition::RegionRequest& request) const override {
    std::vector<Expected<partition::RegionCode>> codes;
    for (const partition::RegionSource& region : request.regions)
      codes.emplace_back(Refusal{HR_REASON_SHAPE_UNSUPPORTED, fmt::format("'{}' does not fit", region.name)});
    return codes;
  }
};

// A backend that takes multiply alone and add(exp(_), _) as one, unless the result has one row, and compiles neither.
class Patterned : public partition::Backend {
 public:
  explicit Patterned(std::string name) : name_(std::move(name)) {
    const std::string text = fmt::format("{{ {}.sum: add(exp(_), _) }}", name_);
    table_ = partition::read_table(Value(text));
    table_[0].accepts = [](const relay::PatternGroup& group, const Expr&) {
      return as_shape(group.root->checked_type().as<TensorTypeNode>()->shape)->at(0) > 1;
    };
  }
  std::string_view name() const override { return name_; }
  std::span<const partition::CompositePattern> patterns() const override { return table_; }
  partition::Verdict supports(const relay::CallNode& call) const override {
    if (call.as_op()->name == "multiply") return {};
    return {.reason = HR_REASON_OP_UNSUPPORTED, .message = "it multiplies only"};
  }
  std::vector<Expected<partition::RegionCode>> compile(const partition::RegionRequest& request) const override {
    return {request.regions.size(), Refusal{HR_REASON_SHAPE_UNSUPPORTED, "it was asked for nothing"}};
  }

 private:
  std::string name_;
  std::vector<partition::CompositePattern> table_;
};

std::vector<std::string> explained(const std::string& text, const std::vector<std::string>& backends) {
  std::vector<std::string> rows;
  for (const artifact::Placement& one : explain(make_model(module_of(text)), {.backends = backends}).placement)
    rows.push_back(fmt::format("{} {}: {}", one.kind, one.backend, one.message));
  return rows;
}

TEST(Backends, PatternsTakeWhatNoEarlierBackendTakes) {
  if (const std::string why = kit::why_without("ccompiler"); !why.empty()) GTEST_SKIP() << why;
  partition::register_backend(std::make_shared<Patterned>("patterned_test"));
  const std::string program =
      "def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(2, 3), float32]) { multiply(add(exp(%x), %y), %x) }\n";
  const char* by_pattern = "it is the first backend of the list that takes what its pattern patterned_test.sum matches";
  const std::vector<std::string> rows = explained(program, {"patterned_test"});
  EXPECT_THAT(rows, ElementsAre(fmt::format("exp patterned_test: {}", by_pattern),
                                fmt::format("add patterned_test: {}", by_pattern),
                                "multiply patterned_test: it is the first backend of the list that takes the op"));
  const auto ccompiler_first = explained(program, {"ccompiler", "patterned_test"});
  EXPECT_THAT(ccompiler_first,
              ElementsAre(HasSubstr("exp ccompiler"), HasSubstr("add ccompiler"), HasSubstr("multiply ccompiler")));
  const auto one_row = explained(
      "def @main(%x: Tensor[(1, 3), float32], %y: Tensor[(1, 3), float32]) { multiply(add(exp(%x), %y), %x) }\n",
      {"patterned_test"});
  EXPECT_THAT(one_row, ElementsAre(HasSubstr("exp native"), HasSubstr("add native"), HasSubstr("multiply patterned")));
  expect_right(program, {.backends = {"patterned_test"}});  // the region is refused, and its composite is native
}

// A backend that has a cost, and the C code of ccompiler.
class Claiming : public partition::Backend {
 public:
  Claiming(std::string name, double seconds) : name_(std::move(name)), seconds_(seconds) {}
  std::string_view name() const override { return name_; }
  partition::Verdict supports(const relay::CallNode& call) const override { return code_->supports(call); }
  double cost(const relay::CallNode&, const cost::Machine&, int) const override { return seconds_; }
  std::vector<Expected<partition::RegionCode>> compile(const partition::RegionRequest& request) const override {
    return code_->compile(request);
  }

 private:
  std::string name_;
  double seconds_;
  std::shared_ptr<const partition::Backend> code_ = partition::find_backend("ccompiler");
};

TEST(Backends, CostsDecideAndResultsStay) {
  if (const std::string why = kit::why_without("ccompiler"); !why.empty()) GTEST_SKIP() << why;
  module_of(kThreeParts);
  partition::register_backend(std::make_shared<Claiming>("slow_test", 1));
  partition::register_backend(std::make_shared<Claiming>("instant_test", 0));
  const std::string program =
      "def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(2, 3), float32]) {\n"
      "  %0 = nn.dense(add(%x, %y), subtract(%x, %y)); nn.dense(%0, %0) }\n";
  const auto rows = [&](std::vector<std::string> backends) {
    const CompileOptions options{.backends = std::move(backends), .placement = Placement::cost};
    return rows_of(compile_to_memory(make_model(module_of(program)), options).report.manifest);
  };
  // Six floats are computed faster than a border is crossed, even by a backend that takes no time.
  EXPECT_THAT(rows({"slow_test", "instant_test"}), ElementsAre("native 65", "native 65", "native 20", "native 20"));
  std::string chain = "%x";
  for (int i = 0; i < 1000; ++i) chain = fmt::format("multiply(subtract({}, %x), %y)", chain);
  // Natively it takes many times of a border on every processor.
  const std::string deep =
      "def @main(%x: Tensor[(20, 30), float32], %y: Tensor[(20, 30), float32]) {\n  " + chain + "\n}\n";
  const CompileOptions options{.backends = {"slow_test", "instant_test"}, .placement = Placement::cost};
  const Explanation explained = explain(make_model(module_of(deep)), options);
  ASSERT_TRUE(explained.plan_cost);
  EXPECT_EQ(explained.placement[0].backend, "instant_test");
  EXPECT_DOUBLE_EQ(explained.plan_cost->gap(), 0);
  EXPECT_THAT(explained.costs, SizeIs(explained.placement.size()));
  expect_right("def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(2, 3), float32]) { add(multiply(%x, %y), %y) }",
               options);
}

// Takes exp and tanh; the first dimension of a tensor is the seconds of its change of layout.
class LaidOut : public Claiming {
 public:
  LaidOut() : Claiming("laid_out_test", 0) {}
  partition::Verdict supports(const relay::CallNode& call) const override {
    const std::string& name = call.as_op()->name;
    if (name == "exp" || name == "tanh") return {};
    return {.reason = HR_REASON_OP_UNSUPPORTED, .message = "is another op"};
  }
  double border(const Type& type, const cost::Machine&, int) const override {
    return static_cast<double>(as_shape(type.as<TensorTypeNode>()->shape)->at(0));
  }
};

TEST(Backends, EdgesHaveTheTimeOfChangesOfLayout) {
  if (const std::string why = kit::why_without("ccompiler"); !why.empty()) GTEST_SKIP() << why;
  module_of(kThreeParts);
  partition::register_backend(std::make_shared<LaidOut>());
  const std::string text = "def @main(%x: Tensor[(2, 3), float32]) { tanh(transpose(exp(tanh(%x)), axes=[1, 0])) }\n";
  const auto seconds = [&](std::vector<std::string> backends) {
    std::vector<double> all;
    for (const partition::GraphEdge& edge :
         explain(make_model(module_of(text)), {.backends = std::move(backends)}).graph.edges)
      all.push_back(edge.border_seconds);
    return all;
  };
  // x enters, nothing between tanh and exp, the region's result leaves; the transposed one enters and leaves.
  EXPECT_THAT(seconds({"laid_out_test"}), ElementsAre(2, 0, 2, 3, 3));
  EXPECT_THAT(seconds({"ccompiler"}), ElementsAre(0, 0, 0, 0, 0));
}

TEST(Backends, APlacementIsOrderOrCost) {
  EXPECT_EQ(read_placement("placement", "cost"), Placement::cost);
  EXPECT_EQ(kit::user_error_of([] { read_placement("placement", "luck"); }),
            "placement is 'luck'; it must be 'order' or 'cost'");
}

// The file changes after it was read: what follows sees the text that was there, under the file's name.
TEST(Backends, AFileOfAPlanIsReadOnce) {
  if (const std::string why = kit::why_without("ccompiler"); !why.empty()) GTEST_SKIP() << why;
  const Model model = make_model(module_of(kThreeParts));
  const partition::Plan plan = *explain(model, {.backends = {"ccompiler"}}, true).plan;
  const std::string path = testing::TempDir() + "headrace_once.json";
  std::filesystem::remove(path);
  CompileOptions options{.plan = path};
  EXPECT_THAT(kit::user_error_of([&] { read_plan_file(options); }), HasSubstr(path));
  kit::write_file(path, partition::print_plan(plan));
  read_plan_file(options);
  kit::write_file(path, "no plan");
  EXPECT_THAT(possible_backends(options), SizeIs(1));
  EXPECT_THAT(rows_of(compile_to_memory(model, options).report.manifest),
              ElementsAre("ccompiler 66", "ccompiler 66", "native 66", "ccompiler 66", "ccompiler 66"));
  read_plan_file(options);
  EXPECT_THAT(kit::user_error_of([&] { possible_backends(options); }), HasSubstr("headrace_once.json:1:1"));
  std::filesystem::remove(path);
}

TEST(Backends, ACallOfAnOpenSizeStaysNative) {
  partition::register_backend(std::make_shared<Patterned>("open_test"));
  EXPECT_THAT(explained("def @main(%x: Tensor[(?, 3), float32]) { multiply(%x, %x) }\n", {"open_test"}),
              ElementsAre(AllOf(HasSubstr("multiply native"), HasSubstr("has a size that is not a number"))));
}

TEST(Backends, ARegionThatIsRefusedIsNative) {
  if (const std::string why = kit::why_without("ccompiler"); !why.empty()) GTEST_SKIP() << why;
  module_of(kThreeParts);
  partition::register_backend(std::make_shared<Picky>());
  const CompileOptions options{.backends = {"picky_test", "ccompiler"}};
  const CompileReport report = compile_to_memory(make_model(module_of(kThreeParts)), options).report;
  const artifact::Manifest& manifest = report.manifest;
  ASSERT_THAT(report.notes, SizeIs(1));
  EXPECT_THAT(report.notes[0].message, HasSubstr("picky_test refused the region 'tvmgen_default"));
  EXPECT_THAT(manifest.programs[0].notes, SizeIs(1));
  EXPECT_THAT(rows_of(manifest), ElementsAre("native 23", "native 23", "native 23", "native 23", "native 23"));
  EXPECT_THAT(manifest.programs[0].placement[0].message, HasSubstr("picky_test refused its region: 'tvmgen_default"));
  EXPECT_THAT(manifest.regions, IsEmpty());
  EXPECT_THAT(manifest.backends, IsEmpty());
  EXPECT_THAT(manifest.programs, SizeIs(1));
  expect_right(kThreeParts, options);
}

TEST(Backends, AliasesStandForTheirBackend) {
  register_all();
  // Both null in a build without it.
  for (const std::string alias : {"dnnl", "mkldnn"})
    EXPECT_EQ(partition::find_backend(alias), partition::find_backend("onednn"));
  if (const std::string why = kit::why_without("examplejson"); !why.empty()) GTEST_SKIP() << why;
  EXPECT_EQ(require_backend("examplejsoncompiler")->name(), "examplejson");
}

TEST(Backends, ASourceRegistersABackendWhenItIsNamed) {
  struct Offered : Picky {
    std::string_view name() const override { return "offered_test"; }
  };
  set_backend_source(BackendSource{.names = [] { return std::vector<std::string>{"offered_test", "ccompiler"}; },
                                   .offer =
                                       [](const std::string& name) {
                                         if (name == "offered_test")
                                           partition::register_backend(std::make_shared<Offered>());
                                         if (name == "broken_test") throw MissingError("its package is missing");
                                       }});
  EXPECT_EQ(partition::find_backend("offered_test"), nullptr);
  std::vector<std::string> known = known_backends();
  EXPECT_THAT(known, Contains("offered_test"));
  EXPECT_EQ(std::count(known.begin(), known.end(), "ccompiler"), 1);
  EXPECT_EQ(require_backend("offered_test")->name(), "offered_test");
  EXPECT_EQ(require_backend("offered_test")->name(), "offered_test");  // it is not offered a second time
  EXPECT_THAT(kit::user_error_of([] { require_backend("broken_test"); }), HasSubstr("its package is missing"));
  EXPECT_THAT(kit::user_error_of([] { require_backend("nobody"); }),
              AllOf(HasSubstr("there is no backend 'nobody'; there are ccompiler"), Not(HasSubstr("python -m"))));
  set_backend_source({});
}

TEST(Backends, ASourceIsAskedForChecksEachTime) {
  static std::vector<std::string> asked;
  set_backend_source(BackendSource{.names = [] { return std::vector<std::string>(); },
                                   .offer = [](const std::string&) {},
                                   .find_checks =
                                       [](const std::string& name) {
                                         asked.push_back(name);
                                         register_global("relay.ext.found_with_checks", make_packed([] {}), true);
                                       }});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(require_backend("found_with_checks")->name(), "found_with_checks");
  EXPECT_THAT(asked, ElementsAre("found_with_checks", "found_with_checks"));
  set_backend_source({});
}

// Makes a backend of a function that compiles nothing, with a table of patterns.
void register_table(const std::string& name, const std::string& table) {
  register_global("relay.ext." + name, make_packed([](const Expr&) { throw_user_error("it was given a region"); }));
  register_global("relay.ext." + name + ".patterns", make_packed([table] { return table; }));
}

TEST(Backends, APatternTableCountsInACompile) {
  const std::string program =
      "def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(2, 3), float32]) { multiply(add(exp(%x), %y), %x) }\n";
  register_table("tabled_test", "{ tabled_test.sum: { %0 = exp(_); add(%0 or _, _) } }");
  EXPECT_THAT(explained(program, {"tabled_test"}),
              ElementsAre(HasSubstr("exp tabled_test"), HasSubstr("add tabled_test"), HasSubstr("multiply native")));
  const auto error = [&](const std::string& name) { return kit::user_error_of([&] { explained(program, {name}); }); };
  register_table("foreign_table_test", "{ other.sum: add(_, _) }");
  register_table("torn_table_test", "{ a: add(");
  EXPECT_EQ(
      error("foreign_table_test"),
      "the pattern table of 'foreign_table_test', which the function relay.ext.foreign_table_test.patterns gives, "
      "cannot be read: it has a pattern 'other.sum'; names of its patterns must begin with 'foreign_table_test.'");
  EXPECT_THAT(error("torn_table_test"), HasSubstr("relay.ext.torn_table_test.patterns gives, cannot be read: "));
}

// As `headrace verify` compiles one region to find the op that is wrong: with the region's backend alone.
TEST(Backends, WithoutPlacementOnlyTheNamedBackendIsLeft) {
  for (const char* name : {"ccompiler", "examplejson"})
    if (const std::string why = kit::why_without(name); !why.empty()) GTEST_SKIP() << why;
  const Model model = make_model(module_of(kThreeParts));
  const auto places = [&](CompileOptions options) {
    options.backends = {"examplejson"};
    std::vector<std::string> names;
    for (const artifact::Placement& one : explain(model, options).placement) names.push_back(one.backend);
    return names;
  };
  const CompileOptions given{.target = parse_target("llvm -mcpu=x86-64-v3 -extern=ccompiler,examplejson"),
                             .placement = Placement::cost,
                             .costs = "no_such_costs.json",
                             .plan = "no_such_plan.json",
                             .overrides = {{.pattern = "*", .backend = "ccompiler"}}};
  const CompileOptions alone = without_placement(given);
  EXPECT_EQ(alone.target->text("mcpu"), "x86-64-v3");
  EXPECT_THAT(places(alone), AllOf(Contains("examplejson"), Not(Contains("ccompiler"))));
  EXPECT_THAT(places({.target = given.target}), Contains("ccompiler")) << "the target names it";
}

// Passes recurse into composite functions, so a program of strangers cannot nest them without end.
TEST(Backends, CompositesInEachOtherHaveALimit) {
  const auto nested = [](int depth) {
    std::string body = "exp(%x0)";
    for (int i = 0; i < depth; ++i)
      body = fmt::format("fn (%x{}: Tensor[(2), float32], Composite=\"any.p{}\") {{ {} }}(%x{})", i, i, body, i + 1);
    return module_of(
        fmt::format("def @f(%x{}: Tensor[(2), float32], Compiler=\"any\") {{ {} }}\n"
                    "def @main(%x: Tensor[(2), float32]) {{ @f(%x) }}\n",
                    depth, body));
  };
  EXPECT_EQ(explain(make_model(nested(60)), {}).placement.size(), 1u);
  const std::string limit = "more than 64 functions with the attribute Composite are in each other";
  EXPECT_THAT(kit::user_error_of([&] { explain(make_model(nested(70)), {}); }), HasSubstr(limit));
  EXPECT_NO_THROW(partition::inline_compiler_functions(nested(60), {"f"}));
  EXPECT_THAT(kit::user_error_of([&] { partition::inline_compiler_functions(nested(70), {"f"}); }), HasSubstr(limit));
}

class GivesNothing : public partition::Backend {
 public:
  std::string_view name() const override { return "gives_nothing"; }
  partition::Verdict supports(const relay::CallNode&) const override { return {}; }
  std::vector<Expected<partition::RegionCode>> compile(const partition::RegionRequest& request) const override {
    return std::vector<Expected<partition::RegionCode>>(request.regions.size(), partition::RegionCode{});
  }
};

TEST(Backends, ARegionWithoutCodeIsAnErrorOfItsBackend) {
  register_all();
  partition::register_backend(std::make_shared<const GivesNothing>());
  EXPECT_THAT(
      kit::user_error_of(
          [&] { compile_to_memory(make_model(module_of(kThreeParts)), {.backends = {"gives_nothing"}}); }),
      HasSubstr("the backend 'gives_nothing' gives no code for the region 'tvmgen_default_gives_nothing_main_0'"));
}

// A name that explain shows is that of a place, although it has brackets. A pattern with brackets is one, too.
TEST(Backends, APlaceIsANameOrAPattern) {
  if (const std::string why = kit::why_without("ccompiler"); !why.empty()) GTEST_SKIP() << why;
  const Model model = make_model(
      relay::infer_type(relay::parse_module(std::string("#[version = \"0.0.5\"]\n") + kThreeParts, "m[0].relay")));
  CompileOptions options{.backends = {"ccompiler"}};
  const artifact::Placement first = explain(model, options).placement.front();
  ASSERT_THAT(first.op, HasSubstr("m[0].relay"));
  ASSERT_EQ(first.backend, "ccompiler");
  for (const std::string& pattern : {first.op, std::string("m[[]0]*")}) {
    options.overrides = {{.pattern = pattern, .backend = "native"}};
    EXPECT_EQ(explain(model, options).placement.front().backend, "native") << pattern;
  }
}

TEST(Backends, NamesAreChecked) {
  if (const std::string why = kit::why_without("ccompiler"); !why.empty()) GTEST_SKIP() << why;
  const auto error = [](const std::string& name) {
    return kit::user_error_of(
        [&] { compile_to_memory(make_model(module_of(kThreeParts)), {.backends = {"ccompiler", name}}); });
  };
  EXPECT_THAT(error("nobody"), HasSubstr("there is no backend 'nobody'; there are ccompiler"));
  EXPECT_THAT(error("nobody"), HasSubstr("; give the library of another one by --plugin (headrace.load_backend"));
  EXPECT_THAT(error("./libchip.so"),
              HasSubstr("'./libchip.so' is not the name of a backend; give a library by --plugin"));
  EXPECT_THAT(error(""), HasSubstr("the name of a backend is empty; give names with commas between them"));
  EXPECT_THAT(error("ccompilr"), HasSubstr("NAME; did you mean ccompiler?"));
  EXPECT_THAT(error("nobody"), Not(HasSubstr("did you mean")));
  EXPECT_THAT(error("nobody"), HasSubstr("; `python -m headrace` also has those of Python's packages"));
  EXPECT_THAT(error("onnxruntime"), HasSubstr("the backend 'onnxruntime' is one of the Python package; run `python "
                                              "-m headrace` in place of `headrace`, or give it in Python: "
                                              "hr.compile(..., backends=[\"onnxruntime\"])"));
  EXPECT_THAT(error("numpy"), HasSubstr("the backend 'numpy' is one of the Python package"));
  struct Named : Picky {
    explicit Named(std::string name) : its(std::move(name)) {}
    std::string_view name() const override { return its; }
    std::string its;
  };
  const auto registered = [](const std::string& name) {
    return kit::user_error_of([&] { partition::register_backend(std::make_shared<Named>(name)); });
  };
  EXPECT_THAT(registered("a b"), HasSubstr("'a b' is not a name of a backend"));
  EXPECT_THAT(registered(std::string(65, 'a')), HasSubstr("at most 64 of them"));
  for (const char* own : {partition::kNative, partition::kExternal, partition::kDefaultCompiler})
    EXPECT_EQ(registered(own), fmt::format("'{}' is a word of the compiler's own; give the backend another name", own));
  EXPECT_THAT(registered("ccompiler"), HasSubstr("there is a backend 'ccompiler' already"));
}

TEST(Backends, OptionsReachTheirBackend) {
  if (const std::string why = kit::why_without("ccompiler"); !why.empty()) GTEST_SKIP() << why;
  CompileOptions options{.backends = {"ccompiler"}};
  options.backend_options["ccompiler"].set("cc", Value(std::string("/nowhere/cc")));
  EXPECT_THAT(kit::user_error_of([&] { compile_to_memory(make_model(module_of(kThreeParts)), options); }),
              HasSubstr("the C compiler '/nowhere/cc' cannot be started"));
  if (const std::string why = kit::why_without("examplejson"); !why.empty()) GTEST_SKIP() << why;
  options.backends = {"examplejson"};
  EXPECT_THAT(kit::user_error_of([&] { compile_to_memory(make_model(module_of(kThreeParts)), options); }),
              HasSubstr("the options of the backend 'ccompiler' have no effect, because this compile does not use it"));
  const char* by_hand =
      "def @f(%a: Tensor[(2, 3), float32], Compiler=\"ccompiler\", global_symbol=\"f\") { add(%a, %a) }\n"
      "def @main(%x: Tensor[(2, 3), float32]) { @f(%x) }\n";
  options.backends = {};
  EXPECT_THAT(kit::user_error_of([&] { compile_to_memory(make_model(module_of(by_hand)), options); }),
              HasSubstr("the C compiler '/nowhere/cc' cannot be started"));
}

// Explain compiles nothing, and refuses the options that a compile refuses, also where the backend takes no op.
TEST(Backends, ExplainChecksOptionsAsCompileDoes) {
  struct Wrong {
    std::string backend, option;
    Value value;
    std::string message;
  };
  for (const Wrong& wrong : std::vector<Wrong>{
           {"ccompiler", "speed", Value(int64_t{3}), "the backend 'ccompiler' has no option 'speed'; it has cc"},
           {"ccompiler", "cc", Value(int64_t{3}),
            "the option cc of the backend 'ccompiler' is not a name of a program"},
           {"examplejson", "speed", Value(int64_t{3}), "the backend 'examplejson' has no option 'speed', and no other"},
           {"null", "speed", Value(int64_t{3}), "the backend 'null' has no option 'speed', and no other"}}) {
    if (!kit::why_without(wrong.backend).empty()) continue;
    CompileOptions options{.backends = {wrong.backend}};
    options.backend_options[wrong.backend].set(wrong.option, wrong.value);
    for (const char* program : {kThreeParts, "def @main(%x: Tensor[(2), float32]) { erf(%x) }\n"}) {
      const Model model = make_model(module_of(program));
      EXPECT_THAT(kit::user_error_of([&] { explain(model, options); }), HasSubstr(wrong.message));
      EXPECT_THAT(kit::user_error_of([&] { compile_to_memory(model, options); }), HasSubstr(wrong.message));
      EXPECT_THAT(kit::user_error_of([&] { partition_module(model, options); }), HasSubstr(wrong.message));
    }
  }
}

// Equal programs give equal bytes, with backends as without.
TEST(Backends, SameProgramSameBytes) {
  if (const std::string why = kit::why_without("ccompiler"); !why.empty()) GTEST_SKIP() << why;
  const auto bytes = [] {
    const CompiledModel made = compile_to_memory(make_model(module_of(kThreeParts)), {.backends = {"ccompiler"}});
    std::string text(static_cast<size_t>(made.report.artifact_bytes), '\0');
    EXPECT_EQ(pread(made.descriptor.number(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    return text;
  };
  EXPECT_EQ(bytes(), bytes());
}

}  // namespace
}  // namespace headrace::driver
