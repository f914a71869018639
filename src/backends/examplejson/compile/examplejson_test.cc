// The backend examplejson from a program to an artifact and back.
#include "backends/examplejson/compile/examplejson.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver/compile.h"
#include "driver/register_all.h"
#include "kit/errors.h"
#include "load/run.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"

namespace headrace::backends::examplejson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

IRModule read(const std::string& text) {
  driver::register_all();
  return relay::infer_type(relay::parse_module("#[version = \"0.0.5\"]\n" + text));
}

// Two regions, which are two subgraphs of one module in the file.
TEST(ExampleJson, AProgramOfTwoRegions) {
  const IRModule module = read(
      "def @main(%x: Tensor[(2), float32], %y: Tensor[(2), float32]) {\n"
      "  let %a = subtract(add(%x, %y), multiply(%x, %x));\n"
      "  add(nn.relu(%a), %y)\n}\n");
  driver::CompiledModel compiled = driver::compile_to_memory(driver::make_model(module), {.backends = {"examplejson"}});
  const artifact::Manifest manifest = compiled.report.manifest;
  ASSERT_THAT(manifest.regions, SizeIs(2));
  ASSERT_THAT(manifest.modules, SizeIs(1));
  EXPECT_EQ(manifest.modules[0].loader, "examplejson");
  EXPECT_EQ(manifest.regions[0].module, 0);
  EXPECT_EQ(manifest.regions[1].module, 0);
  const auto artifact = driver::open_compiled(std::move(compiled), "the artifact");
  EXPECT_THAT(artifact->root.imports().at(0).GetSource(),
              HasSubstr("tvmgen_default_examplejson_main_0\ninput 0 2\ninput 1 2\n"));
  const auto executor = load::make_executor(artifact, "default", {.fallback = executors::Fallback::none});
  const NDArray x = NDArray::from_vector({2}, DataType::float_(32), std::vector<float>{1, 3}),
                y = NDArray::from_vector({2}, DataType::float_(32), std::vector<float>{10, -4});
  const NDArray z = load::run(*executor, std::vector<NDArray>{x, y}).at(0);
  EXPECT_THAT((std::vector<float>{z.data<float>(), z.data<float>() + 2}), ElementsAre(20, -4));
}

// Ops that the format cannot express stay native, with the reason.
TEST(ExampleJson, UnsupportedOpsAreNative) {
  const std::vector<std::pair<std::string, hr_reason>> cases = {
      {"add(%x, 1f)", HR_REASON_OP_UNSUPPORTED},
      {"add(%x, sum(%x, axis=[0], keepdims=True))", HR_REASON_SHAPE_UNSUPPORTED},
      {"cast(add(cast(%x, dtype=\"float64\"), cast(%x, dtype=\"float64\")), dtype=\"float32\")",
       HR_REASON_DTYPE_UNSUPPORTED}};
  for (const auto& [body, reason] : cases) {
    const IRModule module = read("def @main(%x: Tensor[(2), float32]) { " + body + " }\n");
    const artifact::Manifest manifest =
        driver::compile_to_memory(driver::make_model(module), {.backends = {"examplejson"}}).report.manifest;
    EXPECT_THAT(manifest.regions, SizeIs(0)) << body;
    bool is_said = false;
    for (const artifact::Placement& one : manifest.programs[0].placement) is_said |= one.reason == reason;
    EXPECT_TRUE(is_said) << body;
  }
}

// A region with two results has no text; its backend refuses it, and it is native.
TEST(ExampleJson, TwoResultsAreRefused) {
  const IRModule module = read(
      "def @main(%x: Tensor[(2), float32]) {\n"
      "  let %a = add(%x, %x);\n  (%a, multiply(%a, %x))\n}\n");
  const artifact::Manifest manifest =
      driver::compile_to_memory(driver::make_model(module), {.backends = {"examplejson"}}).report.manifest;
  EXPECT_THAT(manifest.regions, SizeIs(0));
  EXPECT_THAT(manifest.programs[0].placement.at(0).message, HasSubstr("examplejson refused its region"));
}

// The text has the region's name as a line of one word.
TEST(ExampleJson, NamesThatTheTextCannotHaveAreRefused) {
  for (const std::string name : {"input", "other.name", "1st"}) {
    const IRModule module = read("def @f(%a: Tensor[(2), float32], Compiler=\"examplejson\", global_symbol=\"" + name +
                                 "\") { add(%a, %a) }\ndef @main(%x: Tensor[(2), float32]) { @f(%x) }\n");
    EXPECT_THAT(kit::user_error_of([&] { driver::compile_to_memory(driver::make_model(module)); }),
                HasSubstr("its name '" + name + "' is not one of a subgraph"));
  }
}

TEST(ExampleJson, TheGuidesNameIsAnAlias) {
  const IRModule module = read(
      "def @f(%a: Tensor[(2), float32], Compiler=\"examplejsoncompiler\") { add(%a, %a) }\n"
      "def @main(%x: Tensor[(2), float32]) { @f(%x) }\n");
  EXPECT_THAT(driver::compile_to_memory(driver::make_model(module)).report.manifest.modules, SizeIs(1));
}

}  // namespace
}  // namespace headrace::backends::examplejson
