// Functions marked Compiler: compiled by their backend, called from an artifact by name, with a native fallback.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "artifact/artifact_file.h"
#include "base/memory_file.h"
#include "driver/built_module.h"
#include "driver/compile.h"
#include "driver/compile_regions.h"
#include "driver/target.h"
#include "kit/errors.h"
#include "load/artifact_module.h"
#include "load/run.h"
#include "ops/all_ops.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"
#include "runtime/function_module.h"

namespace headrace::driver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A kind of module whose functions triple their input; its blob is the function's name.
class TripleBody : public runtime::ModuleBody {
 public:
  explicit TripleBody(std::string function) : function_(std::move(function)) {}
  std::string_view type_key() const override { return "regions_test"; }
  std::string save_to_binary(const runtime::Module&) const override { return function_; }
  PackedFunc get_function(const std::string& name, const runtime::Module&) override {
    if (name != function_) return {};
    return PackedFunc([](Args args) {
      const auto* x = static_cast<const DLTensor*>(args[0].v.v_ptr);
      const auto* y = static_cast<const DLTensor*>(args[args.size() - 1].v.v_ptr);
      for (int64_t i = 0; i < x->shape[0]; ++i)
        static_cast<float*>(y->data)[i] = 3 * static_cast<const float*>(x->data)[i];
      return Value();
    });
  }

 private:
  std::string function_;
};

runtime::Module triple(const std::string& function) { return runtime::Module(std::make_unique<TripleBody>(function)); }

Model read_with(const std::string& text, std::vector<runtime::Module> modules = {}) {
  ops::register_all_ops();
  runtime::register_module_loader("regions_test", &triple);
  Model model = make_model(relay::parse_module("#[version = \"0.0.5\"]\n" + text));
  model.modules = std::move(modules);
  return model;
}

// The region says exp; its module triples, so that results tell which of the two computed them.
constexpr const char* kRegion =
    "def @region(%a: Tensor[(4), float32], Compiler=\"test\", Primitive=1) { exp(%a) }\n"
    "def @main(%x: Tensor[(4), float32]) { negative(@region(add(%x, 1f))) }\n";

std::shared_ptr<const load::Artifact> compiled(const Model& model, const CompileOptions& options = {}) {
  return open_compiled(compile_to_memory(model, options), "the artifact");
}

std::vector<float> run_program(const std::shared_ptr<const load::Artifact>& artifact, const std::string& program,
                               const std::vector<float>& values) {
  const NDArray x = NDArray::from_vector({static_cast<int64_t>(values.size())}, DataType::float_(32), values);
  const NDArray y = load::run(*load::make_executor(artifact, program, {.threads = 1}), std::vector<NDArray>{x}).at(0);
  return {y.data<float>(), y.data<float>() + y.num_elements()};
}

TEST(Regions, AModuleIsCalledByName) {
  for (const int level : {0, 3}) {
    const auto artifact = compiled(read_with(kRegion, {triple("region")}), {.passes = {.opt_level = level}});
    EXPECT_THAT(run_program(artifact, "default", {0, 1, 2, -1}), ElementsAre(-3, -6, -9, 0));
  }
}

TEST(Regions, AFileHoldsTheNativeFormToo) {
  const auto artifact = compiled(read_with(kRegion, {triple("region")}));
  const artifact::Manifest& manifest = artifact->manifest();
  ASSERT_EQ(manifest.programs.size(), 2u);
  ASSERT_EQ(manifest.regions.size(), 1u);
  EXPECT_EQ(manifest.regions[0].fallback, "region");
  EXPECT_EQ(manifest.programs[1].inputs[0].name, "a");
  const std::vector<float> y = run_program(artifact, "region", {0, 1, 2, -1});
  for (size_t i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(y[i], std::exp(std::vector<float>{0, 1, 2, -1}[i]));
  EXPECT_THAT(run_program(artifact, "default", {0, 1, 2, -1}), ElementsAre(-3, -6, -9, 0));
}

TEST(Regions, AFileMayLeaveOutTheNativeForm) {
  const auto artifact = compiled(read_with(kRegion, {triple("region")}), {.native_forms = false});
  const artifact::Manifest& manifest = artifact->manifest();
  EXPECT_EQ(manifest.programs.size(), 1u);
  ASSERT_EQ(manifest.regions.size(), 1u);
  EXPECT_EQ(manifest.regions[0].fallback, "");
  EXPECT_THAT(manifest.programs[0].notes, IsEmpty());
  EXPECT_THAT(run_program(artifact, "default", {0, 1, 2, -1}), ElementsAre(-3, -6, -9, 0));
}

TEST(Regions, ThePlacementNamesBothBackends) {
  const artifact::Manifest manifest = compiled(read_with(kRegion, {triple("region")}))->manifest();
  std::vector<std::string> rows;
  for (const artifact::Placement& one : manifest.programs[0].placement)
    rows.push_back(fmt::format("{} {} {}", one.backend, static_cast<int>(one.reason), one.region));
  EXPECT_THAT(rows, ElementsAre("native 60 ", "test 61 region", "native 60 "));
  ASSERT_EQ(manifest.backends.size(), 1u);
  EXPECT_EQ(manifest.backends[0].name, "test");
}

// The body reads back as the region's function, with its large constant among the file's weights.
TEST(Regions, TheBodyIsKept) {
  std::string numbers;
  for (int i = 0; i < 20; ++i) numbers += fmt::format("{}{}", i == 0 ? "" : ", ", i);
  const auto artifact =
      compiled(read_with("def @region(%a: Tensor[(20), float32], Compiler=\"test\") {\n"
                         "  add(%a, const(Tensor[(20), float32], [" +
                             numbers + "]))\n}\ndef @main(%x: Tensor[(20), float32]) { @region(%x) }\n",
                         {triple("region")}));
  const artifact::Region& region = artifact->manifest().regions.at(0);
  ASSERT_EQ(region.body_weights.size(), 1u);
  std::vector<NDArray> weights;
  for (const int64_t weight : region.body_weights) {
    auto* data = const_cast<std::byte*>(artifact->library->weight(static_cast<size_t>(weight)));
    weights.push_back(NDArray::view(data, {20}, DataType::float_(32)));
  }
  const IRModule body = relay::infer_type(relay::parse_module(region.body, "body", {.weights = &weights}));
  const auto function = body->lookup("region").cast<relay::FunctionNode>();
  const auto* constant = function->body.as<relay::CallNode>()->args[1].as<relay::ConstantNode>();
  ASSERT_NE(constant, nullptr);
  EXPECT_EQ(constant->data.data<float>()[19], 19);
}

TEST(Regions, ACompilerIsAGlobalFunction) {
  std::vector<std::string> asked;
  register_global("relay.ext.regions_test_compiler", PackedFunc([&](Args args) -> Value {
                    const auto function = args.at<relay::Function>(0);
                    asked.push_back(function->attrs.at("global_symbol").as<std::string>());
                    return triple(asked.back());
                  }),
                  true);
  const auto artifact = compiled(read_with(
      "def @a(%a: Tensor[(4), float32], Compiler=\"regions_test_compiler\") { exp(%a) }\n"
      "def @b(%a: Tensor[(4), float32], Compiler=\"regions_test_compiler\", global_symbol=\"bee\") { exp(%a) }\n"
      "def @main(%x: Tensor[(4), float32]) { add(@a(@a(%x)), @b(%x)) }\n"));
  EXPECT_THAT(asked, ElementsAre("a", "bee"));
  EXPECT_THAT(run_program(artifact, "default", {0, 1, 2, -1}), ElementsAre(0, 12, 24, -12));
}

TEST(Regions, ALiteralWithANameIsARegion) {
  const auto artifact = compiled(
      read_with("def @main(%x: Tensor[(4), float32]) {\n"
                "  fn (%a: Tensor[(4), float32], Compiler=\"test\", global_symbol=\"lit\") { exp(%a) }(%x)\n}\n",
                {triple("lit")}));
  EXPECT_THAT(run_program(artifact, "default", {0, 1, 2, -1}), ElementsAre(0, 3, 6, -3));
}

std::string compile_error_of(const std::string& text, std::vector<runtime::Module> modules = {}) {
  return kit::user_error_of([&] { compile_to_memory(read_with(text, std::move(modules))); });
}

// A kind of module that fails: to load, in its n-th run, or in every run; or that does not return from its second.
std::atomic<bool> may_return = false;  // lets the hanging kernel return
struct FailingBody : runtime::ModuleBody {
  explicit FailingBody(std::string what) : what(std::move(what)) {}
  std::string_view type_key() const override { return what == "gone" ? "regions_test_gone" : "regions_test_failing"; }
  std::string save_to_binary(const runtime::Module&) const override { return what; }
  PackedFunc get_function(const std::string& name, const runtime::Module&) override {
    if (name != "region") return {};
    const int fails_at = what == "third" ? 3 : 1;
    return PackedFunc([fails_at, hangs = what == "hangs", is_silent = what == "silent", calls = 0](Args args) mutable {
      if (hangs && calls++ > 0) {
        while (!may_return) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        calls = 0;
      }
      if (!hangs && ++calls >= fails_at) throw UserError(is_silent ? "" : "the chip is on fire");
      const auto* x = static_cast<const DLTensor*>(args[0].v.v_ptr);
      for (int64_t i = 0; i < x->shape[0]; ++i)
        static_cast<float*>(static_cast<DLTensor*>(args[1].v.v_ptr)->data)[i] = 7;
      return Value();
    });
  }
  std::string what;
};

runtime::Module failing(const std::string& what) { return runtime::Module(std::make_unique<FailingBody>(what)); }

Model failing_model(const std::string& what) {
  runtime::register_module_loader("regions_test_failing", [](const std::string& bytes) {
    if (bytes == "unloadable") throw_user_error("the chip is not plugged in");
    return failing(bytes);
  });
  return read_with(kRegion, {failing(what)});
}

std::vector<float> numbers(executors::Executor& executor, const std::vector<float>& values) {
  const NDArray x = NDArray::from_vector({static_cast<int64_t>(values.size())}, DataType::float_(32), values);
  const NDArray y = load::run(executor, std::vector<NDArray>{x}).at(0);
  return {y.data<float>(), y.data<float>() + y.num_elements()};
}

TEST(Fallback, ABackendThatFailsInARunIsReplacedFromThenOn) {
  const auto artifact = compiled(failing_model("third"));
  const auto executor = load::make_executor(artifact, "default", {.threads = 1});
  for (int run = 1; run <= 5; ++run) {
    const float expected = run < 3 ? -7 : -std::exp(1.0F);
    EXPECT_FLOAT_EQ(numbers(*executor, {0, 0, 0, 0})[0], expected) << run;
    EXPECT_EQ(executor->metrics().fallbacks, run < 3 ? 0u : 1u);
  }
  const std::vector<executors::FallbackEvent> events = executor->fallbacks();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].region, "region");
  EXPECT_EQ(events[0].backend, "test");
  EXPECT_EQ(events[0].reason, HR_REASON_BACKEND_FAILED);
  EXPECT_EQ(events[0].message, "the chip is on fire");
  EXPECT_EQ(events[0].run, 3u);
  EXPECT_EQ(executor->metrics().failures, 0u);
}

TEST(Fallback, WithoutItTheRunFails) {
  const auto artifact = compiled(failing_model("always"));
  const auto executor = load::make_executor(artifact, "default", {.threads = 1, .fallback = executors::Fallback::none});
  const std::string error = kit::user_error_of([&] { numbers(*executor, {0, 0, 0, 0}); });
  EXPECT_THAT(error, HasSubstr("the backend 'test' failed in the region 'region': the chip is on fire; with the "
                               "fallback 'native', native code computes the region"));
  EXPECT_THAT(executor->fallbacks(), IsEmpty());
  EXPECT_EQ(executor->run().reason, HR_REASON_BACKEND_FAILED);
}

TEST(Fallback, AFailureWithoutAMessageSaysThatItHasNone) {
  const auto artifact = compiled(failing_model("silent"));
  const auto executor = load::make_executor(artifact, "default", {.threads = 1});
  EXPECT_FLOAT_EQ(numbers(*executor, {0, 0, 0, 0})[0], -std::exp(1.0F));
  ASSERT_EQ(executor->fallbacks().size(), 1u);
  EXPECT_EQ(executor->fallbacks()[0].message, "it does not say why");
  const auto strict = load::make_executor(artifact, "default", {.threads = 1, .fallback = executors::Fallback::none});
  EXPECT_THAT(kit::user_error_of([&] { numbers(*strict, {0, 0, 0, 0}); }),
              HasSubstr("the backend 'test' failed in the region 'region': it does not say why"));
}

TEST(Fallback, ACodeThatDoesNotReturnIsReplacedAfterItsTime) {
  const auto artifact = compiled(failing_model("hangs"));
  const auto make = [&](executors::Fallback fallback) {
    return load::make_executor(artifact, "default",
                               {.threads = 2, .fallback = fallback, .region_timeout_seconds = 0.2});
  };
  const std::string sentence = "the backend's code did not return within 0.2 s, and is not called again";
  const auto executor = make(executors::Fallback::native);
  for (int run = 1; run <= 3; ++run)
    EXPECT_FLOAT_EQ(numbers(*executor, {0, 0, 0, 0})[0], run == 1 ? -7 : -std::exp(1.0F)) << run;
  ASSERT_EQ(executor->fallbacks().size(), 1u);
  EXPECT_EQ(executor->fallbacks()[0].message, sentence);
  EXPECT_EQ(executor->fallbacks()[0].reason, HR_REASON_BACKEND_FAILED);
  EXPECT_EQ(executor->fallbacks()[0].run, 2u);
  const auto strict = make(executors::Fallback::none);
  EXPECT_FLOAT_EQ(numbers(*strict, {0, 0, 0, 0})[0], -7);
  for (int run = 2; run <= 3; ++run)
    EXPECT_THAT(kit::user_error_of([&] { numbers(*strict, {0, 0, 0, 0}); }), HasSubstr(sentence)) << run;
  may_return = true;  // the threads that were left to themselves end
  EXPECT_THAT(
      kit::user_error_of([&] { load::make_executor(artifact, "default", {.region_timeout_seconds = std::nan("")}); }),
      HasSubstr("a time limit of nan seconds for regions"));
}

// There is no loader, or it refuses its own bytes: the file opens, and executors decide.
TEST(Fallback, AModuleThatDoesNotLoadIsReplaced) {
  const std::vector<std::pair<std::string, hr_reason>> cases = {{"gone", HR_REASON_BACKEND_MISSING},
                                                                {"unloadable", HR_REASON_BACKEND_FAILED}};
  for (const auto& [what, reason] : cases) {
    const auto artifact = compiled(failing_model(what));
    const auto executor = load::make_executor(artifact, "default", {.threads = 1});
    EXPECT_FLOAT_EQ(numbers(*executor, {1, 1, 1, 1})[0], -std::exp(2.0F));
    ASSERT_EQ(executor->fallbacks().size(), 1u) << what;
    EXPECT_EQ(executor->fallbacks()[0].reason, reason);
    EXPECT_EQ(executor->fallbacks()[0].run, 0u);
    const auto strict = load::try_make_executor(artifact, "default", {.fallback = executors::Fallback::none});
    ASSERT_FALSE(strict.has_value());
    EXPECT_EQ(strict.refusal().code, reason);
    EXPECT_THAT(strict.refusal().message, HasSubstr(what == "gone" ? "needs the backend 'test', and this runtime"
                                                                   : "the chip is not plugged in"));
  }
}

// A module whose loaded code has the types that its bytes say.
struct DeclaringBody : FailingBody {
  using FailingBody::FailingBody;
  std::string_view type_key() const override { return "regions_test_declaring"; }
  std::optional<runtime::EntryTypes> entry_types(const std::string& name) override {
    const runtime::EntryTensor right{.dtype = DataType::float_(32), .shape = {4}};
    const runtime::EntryTensor any{.dtype = DataType::float_(32), .shape = {-1}};
    if (what == "right") return runtime::EntryTypes{.inputs = {right}, .outputs = {any}};
    if (what == "input") return runtime::EntryTypes{.inputs = {{DataType::int_(8), {4}}}, .outputs = {right}};
    if (what == "rank") return runtime::EntryTypes{.inputs = {right}, .outputs = {{DataType::float_(32), {}}}};
    if (what == "count") return runtime::EntryTypes{.inputs = {right}, .outputs = {right, right}};
    throw_user_error("the table of '{}' is empty", name);
  }
};

runtime::Module declaring(const std::string& what) { return runtime::Module(std::make_unique<DeclaringBody>(what)); }

TEST(Fallback, ACodeOfOtherTypesIsReplaced) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"input", "region 'region' has input 0 of the type int8 4, and the model was compiled for float32 4;"},
      {"rank", "region 'region' has result 0 of the type float32 scalar, and the model was compiled for float32 4;"},
      {"count", "takes 1 tensors and gives 2, and the model was compiled for a region that takes 1 and gives 1;"},
      {"fault", "the table of 'region' is empty"}};
  runtime::register_module_loader("regions_test_declaring", &declaring);
  const auto strict_of = [](const auto& artifact) {
    return load::try_make_executor(artifact, "default", {.fallback = executors::Fallback::none});
  };
  for (const auto& [what, message] : cases) {
    const auto artifact = compiled(read_with(kRegion, {declaring(what)}));
    const auto executor = load::make_executor(artifact, "default", {.threads = 1});
    EXPECT_FLOAT_EQ(numbers(*executor, {1, 1, 1, 1})[0], -std::exp(2.0F));
    ASSERT_EQ(executor->fallbacks().size(), 1u) << what;
    EXPECT_EQ(executor->fallbacks()[0].reason, HR_REASON_BACKEND_FAILED);
    EXPECT_EQ(executor->fallbacks()[0].run, 0u);
    EXPECT_THAT(executor->fallbacks()[0].message, HasSubstr(message));
    const auto strict = strict_of(artifact);
    ASSERT_FALSE(strict.has_value());
    EXPECT_THAT(strict.refusal().message, HasSubstr(message));
  }
  EXPECT_TRUE(strict_of(compiled(read_with(kRegion, {declaring("right")}))).has_value());
  // The word of an import counts, too: the module that a backend's constants are in has none of its own.
  const runtime::Module outer = triple("region");
  outer.Import(declaring("rank"));
  EXPECT_THAT(strict_of(compiled(read_with(kRegion, {outer}))).refusal().message, HasSubstr("float32 scalar"));
}

// The native form is not a program of the model: a function of its name is the backend's.
TEST(Fallback, TheNativeFormIsNoProgramOfTheModule) {
  const runtime::Module module = load::make_artifact_module(compiled(failing_model("third")));
  EXPECT_TRUE(module.GetFunction("default"));
  EXPECT_FALSE(module.GetFunction("region"));
  EXPECT_TRUE(module.GetFunction("region", true));
}

// A saved module contains the modules that backends compiled.
TEST(Regions, ABuiltModuleSavesWhatBackendsMade) {
  register_global("relay.ext.regions_test_saved", PackedFunc([](Args args) -> Value {
                    return triple(args.at<relay::Function>(0)->attrs.at("global_symbol").as<std::string>());
                  }),
                  true);
  const Model model = read_with(
      "def @a(%a: Tensor[(4), float32], Compiler=\"regions_test_saved\") { exp(%a) }\n"
      "def @main(%x: Tensor[(4), float32]) { @a(%x) }\n");
  for (const char* features : {"", "+amx-tile,+avx512fp16"}) {  // the second ones are another machine's, mostly
    const runtime::Module built = build_module(model, {.target = llvm_target("x86-64-v3", features)});
    const std::string bytes = built.SaveToBinary();
    Descriptor file = make_memory_file("saved", std::as_bytes(std::span(bytes))).value_or_throw();
    const artifact::Manifest manifest = artifact::read_artifact_file(file.number(), "saved").value_or_throw().manifest;
    ASSERT_EQ(manifest.modules.size(), 1u);
    EXPECT_EQ(manifest.regions.at(0).module, 0);
    if (*features != '\0') continue;
    EXPECT_THAT(run_program(load::open_artifact(std::move(file), "saved").value_or_throw(), "default", {0, 1, 2, -1}),
                ElementsAre(0, 3, 6, -3));
  }
}

TEST(Regions, AModuleWithoutTheFunctionIsRefused) {
  register_global("relay.ext.regions_test_empty", PackedFunc([](Args) -> Value { return triple("another"); }), true);
  EXPECT_THAT(compile_error_of("def @a(%a: Tensor[(4), float32], Compiler=\"regions_test_empty\") { exp(%a) }\n"
                               "def @main(%x: Tensor[(4), float32]) { @a(%x) }\n"),
              HasSubstr("returned a module for the region 'a' that has no function of that name"));
}

TEST(Regions, OurOwnWordsAreNoCompilers) {
  for (const char* word : {"native", "external"}) {
    EXPECT_THAT(compile_error_of(fmt::format("def @a(%a: Tensor[(4), float32], Compiler=\"{}\") {{ exp(%a) }}\n"
                                             "def @main(%x: Tensor[(4), float32]) {{ @a(%x) }}\n",
                                             word)),
                HasSubstr("cannot be a function's Compiler"));
  }
}

TEST(Regions, MalformedRegionsAreRefused) {
  EXPECT_THAT(compile_error_of("def @main(%x: Tensor[(4), float32], %z: Tensor[(4), float32]) {\n"
                               "  fn (%a: Tensor[(4), float32], Compiler=\"test\", global_symbol=\"q\") {\n"
                               "    add(%z, exp(%a)) }(%x)\n}\n",
                               {triple("q")}),
              HasSubstr("the function 'q' for another compiler uses %z, which is bound outside of it"));
  EXPECT_THAT(compile_error_of("def @r[A](%a: A, Compiler=\"test\") -> A { %a }\n"
                               "def @main(%x: Tensor[(4), float32]) { @r(%x) }\n",
                               {triple("r")}),
              HasSubstr("has type parameters"));
  EXPECT_THAT(compile_error_of("def @r(%a: Tensor[(n), float32], Compiler=\"test\") { exp(%a) }\n"
                               "def @main(%x: Tensor[(4), float32]) { @r(%x) }\n",
                               {triple("r")}),
              HasSubstr("has a parameter %a of a size without a number"));
  EXPECT_THAT(compile_error_of("def @r(%a: Tensor[(4), float32], Compiler=\"test\") { () }\n"
                               "def @main(%x: Tensor[(4), float32]) { (@r(%x), exp(%x)) }\n",
                               {triple("r")}),
              HasSubstr("has no tensor as its result"));
}

// A literal may be marked Primitive as well, and hold constants: the rules of fused groups are not for regions.
TEST(Regions, ALiteralMayHoldConstants) {
  const auto artifact =
      compiled(read_with("def @main(%x: Tensor[(2), float32]) {\n"
                         "  fn (%a: Tensor[(2), float32], Compiler=\"test\", Primitive=1, global_symbol=\"lit\") {\n"
                         "    add(%a, const(Tensor[(2), float32], [1f, 2f])) }(%x)\n}\n",
                         {triple("lit")}));
  EXPECT_THAT(run_program(artifact, "default", {1, 2}), ElementsAre(3, 6));
}

TEST(Regions, AFunctionOfTheProcessMayComputeIt) {
  register_global("regions_test_of_process", triple("regions_test_of_process").GetFunction("regions_test_of_process"),
                  true);
  const auto artifact =
      compiled(read_with("def @regions_test_of_process(%a: Tensor[(4), float32], Compiler=\"test\") { exp(%a) }\n"
                         "def @main(%x: Tensor[(4), float32]) { @regions_test_of_process(%x) }\n"));
  EXPECT_THAT(artifact->manifest().modules, IsEmpty());
  EXPECT_THAT(run_program(artifact, "default", {0, 1, 2, -1}), ElementsAre(0, 3, 6, -3));
}

// Builders may give two parameters one name; inputs of a program differ by theirs.
TEST(Regions, ParametersOfOneNameAreInputsOfTwo) {
  ops::register_all_ops();
  runtime::register_module_loader("regions_test", &triple);
  const TensorType type = make_tensor_type({make_int(4)}, DataType::float_(32));
  const relay::Var a = relay::make_var("a", type), other = relay::make_var("a", type), x = relay::make_var("x", type);
  const relay::Function region = relay::make_function({a, other}, relay::make_call("add", {a, other}), {}, {},
                                                      {{"Compiler", Value(std::string("test"))}});
  IRModule module = make_module();
  const GlobalVar name = make_global_var("region");
  module->add_function(name, region);
  module->add_function(make_global_var("main"), relay::make_function({x}, relay::make_call(Expr(name), {x, x})));
  Model model = make_model(module);
  model.modules = {triple("region")};
  const auto artifact = compiled(model);
  const artifact::Program& fallback = artifact->manifest().programs.at(1);
  EXPECT_EQ(fallback.inputs.at(0).name, "a");
  EXPECT_EQ(fallback.inputs.at(1).name, "a_1");
}

// A region with a data-dependent size has no native form; the file says so.
TEST(Regions, ARegionWithoutNativeFormIsNoted) {
  const CompiledModel model =
      compile_to_memory(read_with("def @region(%a: Tensor[(4), float32], Compiler=\"test\") {\n"
                                  "  if (equal(take(%a, 0, axis=0), 0f)) { %a } else { exp(%a) }\n}\n"
                                  "def @main(%x: Tensor[(4), float32]) { @region(%x) }\n",
                                  {triple("region")}));
  EXPECT_EQ(model.report.manifest.programs.size(), 1u);
  EXPECT_EQ(model.report.manifest.regions.at(0).fallback, "");
  ASSERT_EQ(model.report.notes.size(), 1u);
  EXPECT_EQ(model.report.notes[0].reason, HR_REASON_PLACE_NO_FALLBACK);
  EXPECT_THAT(model.report.notes[0].message, HasSubstr("the region 'region' runs on its backend only"));
  ASSERT_EQ(model.report.manifest.programs[0].notes.size(), 1u);
}

TEST(Regions, EachErrorSaysWhatToDo) {
  EXPECT_THAT(compile_error_of(kRegion),
              HasSubstr("the function 'region' is for the compiler 'test', which is not registered: "
                        "register the function relay.ext.test, which compiles such regions, or the function 'region'"));
  EXPECT_THAT(compile_error_of(kRegion, {triple("other")}), HasSubstr("which is not registered"));
  register_global("relay.ext.regions_test_none", PackedFunc([](Args) -> Value { return 7; }), true);
  EXPECT_THAT(compile_error_of("def @region(%a: Tensor[(4), float32], Compiler=\"regions_test_none\") { exp(%a) }\n"
                               "def @main(%x: Tensor[(4), float32]) { @region(%x) }\n"),
              HasSubstr("returned no module for the region 'region'"));
  EXPECT_THAT(compile_error_of("def @region(%a: Tensor[(4), float32], Compiler=1) { exp(%a) }\n"
                               "def @main(%x: Tensor[(4), float32]) { @region(%x) }\n"),
              HasSubstr("the attribute Compiler of a function is not a name"));
  EXPECT_THAT(compile_error_of("def @main(%x: Tensor[(4), float32]) {\n"
                               "  fn (%a: Tensor[(4), float32], Compiler=\"test\") { exp(%a) }(%x)\n}\n"),
              HasSubstr("has no name; give it the attribute global_symbol"));
  EXPECT_THAT(
      compile_error_of("def @a(%a: Tensor[(4), float32], Compiler=\"test\", global_symbol=\"f\") { exp(%a) }\n"
                       "def @b(%a: Tensor[(4), float32], Compiler=\"test\", global_symbol=\"f\") { negative(%a) }\n"
                       "def @main(%x: Tensor[(4), float32]) { add(@a(%x), @b(%x)) }\n",
                       {triple("f")}),
      HasSubstr("two functions for other compilers are both named 'f'; rename one"));
  EXPECT_THAT(compile_error_of("def @default(%a: Tensor[(4), float32], Compiler=\"test\") { exp(%a) }\n"
                               "def @main(%x: Tensor[(4), float32]) { @default(%x) }\n",
                               {triple("default")}),
              HasSubstr("'default' is the name of the program itself"));
}

}  // namespace
}  // namespace headrace::driver
