// Functions marked Compiler: compiled by their backend, called from an artifact by name, with a native fallback.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver/compile.h"
#include "driver/compile_regions.h"
#include "kit/errors.h"
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

Model read(const std::string& text, std::vector<runtime::Module> modules = {}) {
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
    const auto artifact = compiled(read(kRegion, {triple("region")}), {.passes = {.opt_level = level}});
    EXPECT_THAT(run_program(artifact, "default", {0, 1, 2, -1}), ElementsAre(-3, -6, -9, 0));
  }
}

TEST(Regions, AFileHoldsTheNativeFormToo) {
  const auto artifact = compiled(read(kRegion, {triple("region")}));
  const artifact::Manifest& manifest = artifact->manifest();
  ASSERT_EQ(manifest.programs.size(), 2u);
  ASSERT_EQ(manifest.regions.size(), 1u);
  EXPECT_EQ(manifest.regions[0].fallback, "region");
  EXPECT_EQ(manifest.programs[1].inputs[0].name, "a");
  const std::vector<float> y = run_program(artifact, "region", {0, 1, 2, -1});
  for (size_t i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(y[i], std::exp(std::vector<float>{0, 1, 2, -1}[i]));
  EXPECT_THAT(run_program(artifact, "default", {0, 1, 2, -1}), ElementsAre(-3, -6, -9, 0));
}

TEST(Regions, ThePlacementNamesBothBackends) {
  const artifact::Manifest manifest = compiled(read(kRegion, {triple("region")}))->manifest();
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
      compiled(read("def @region(%a: Tensor[(20), float32], Compiler=\"test\") {\n"
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
  const auto artifact = compiled(
      read("def @a(%a: Tensor[(4), float32], Compiler=\"regions_test_compiler\") { exp(%a) }\n"
           "def @b(%a: Tensor[(4), float32], Compiler=\"regions_test_compiler\", global_symbol=\"bee\") { exp(%a) }\n"
           "def @main(%x: Tensor[(4), float32]) { add(@a(@a(%x)), @b(%x)) }\n"));
  EXPECT_THAT(asked, ElementsAre("a", "bee"));
  EXPECT_THAT(run_program(artifact, "default", {0, 1, 2, -1}), ElementsAre(0, 12, 24, -12));
}

TEST(Regions, ALiteralWithANameIsARegion) {
  const auto artifact =
      compiled(read("def @main(%x: Tensor[(4), float32]) {\n"
                    "  fn (%a: Tensor[(4), float32], Compiler=\"test\", global_symbol=\"lit\") { exp(%a) }(%x)\n}\n",
                    {triple("lit")}));
  EXPECT_THAT(run_program(artifact, "default", {0, 1, 2, -1}), ElementsAre(0, 3, 6, -3));
}

TEST(Regions, AFunctionOfTheProcessMayComputeIt) {
  register_global("regions_test_of_process", triple("regions_test_of_process").GetFunction("regions_test_of_process"),
                  true);
  const auto artifact =
      compiled(read("def @regions_test_of_process(%a: Tensor[(4), float32], Compiler=\"test\") { exp(%a) }\n"
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

// A region with a size that only the data tells has no native form; the file says so.
TEST(Regions, ARegionWithoutNativeFormIsNoted) {
  const CompiledModel model =
      compile_to_memory(read("def @region(%a: Tensor[(4), float32], Compiler=\"test\") {\n"
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
  const auto error = [](const std::string& text, std::vector<runtime::Module> modules = {}) {
    return kit::user_error_of([&] { compile_to_memory(read(text, std::move(modules))); });
  };
  EXPECT_THAT(error(kRegion),
              HasSubstr("the function 'region' is for the compiler 'test', and nothing here compiles it: "
                        "register the function relay.ext.test, or give"));
  EXPECT_THAT(error(kRegion, {triple("other")}), HasSubstr("nothing here compiles it"));
  register_global("relay.ext.regions_test_none", PackedFunc([](Args) -> Value { return 7; }), true);
  EXPECT_THAT(error("def @region(%a: Tensor[(4), float32], Compiler=\"regions_test_none\") { exp(%a) }\n"
                    "def @main(%x: Tensor[(4), float32]) { @region(%x) }\n"),
              HasSubstr("returned no module for the region 'region'"));
  EXPECT_THAT(error("def @region(%a: Tensor[(4), float32], Compiler=1) { exp(%a) }\n"
                    "def @main(%x: Tensor[(4), float32]) { @region(%x) }\n"),
              HasSubstr("the attribute Compiler of a function is no name"));
  EXPECT_THAT(error("def @main(%x: Tensor[(4), float32]) {\n"
                    "  fn (%a: Tensor[(4), float32], Compiler=\"test\") { exp(%a) }(%x)\n}\n"),
              HasSubstr("has no name; give it the attribute global_symbol"));
  EXPECT_THAT(error("def @a(%a: Tensor[(4), float32], Compiler=\"test\", global_symbol=\"f\") { exp(%a) }\n"
                    "def @b(%a: Tensor[(4), float32], Compiler=\"test\", global_symbol=\"f\") { negative(%a) }\n"
                    "def @main(%x: Tensor[(4), float32]) { add(@a(%x), @b(%x)) }\n",
                    {triple("f")}),
              HasSubstr("two functions for other compilers are both named 'f'; rename one"));
  EXPECT_THAT(error("def @default(%a: Tensor[(4), float32], Compiler=\"test\") { exp(%a) }\n"
                    "def @main(%x: Tensor[(4), float32]) { @default(%x) }\n",
                    {triple("default")}),
              HasSubstr("'default' is the name of the program itself"));
}

}  // namespace
}  // namespace headrace::driver
