#include "driver/register_all.h"
#include "driver/target.h"

#include <gtest/gtest.h>

#include "driver/check_options.h"
#include "driver/compile.h"
#include "ir/target_tag.h"
#include "kit/errors.h"
#include "object/structural_equal.h"
#include "relay/text/parse.h"

namespace headrace::driver {
namespace {

constexpr const char* kX86 = " -mtriple=x86_64-linux-gnu";

std::string compile_error(const Target& target) {
  register_all();
  const Model model =
      make_model(relay::parse_module("#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(2), float32]) { nn.relu(%x) }"));
  return kit::user_error_of([&] { compile_to_memory(model, {.target = target}); });
}

TEST(Target, OnlyKindLlvmHasACodeGenerator) {
  const TargetKind kind = make_object<TargetKindNode>();
  kind->name = "test-fpga";
  kind->default_device_type = kDLExtDev;
  register_target_kind(kind);
  EXPECT_EQ(compile_error(parse_target("test-fpga")),
            "there is no code generator for targets of kind 'test-fpga' here; code is made for kind llvm");
  EXPECT_TRUE(target_features(codegen::NativeCompiler::load(), parse_target("test-fpga")).empty());
}

TEST(Target, TheHostIsTheTargetItself) {
  EXPECT_EQ(compile_error(parse_target("llvm -num-cores=2 -host='llvm -num-cores=2'")), "");
  EXPECT_EQ(
      compile_error(parse_target("llvm -host='llvm -mcpu=znver4'")),
      "the target's host is 'llvm -keys=cpu -mcpu=znver4': an artifact's host code is made for the target itself; "
      "leave it out");
}

TEST(Target, MalformedTargetsAreRefusedBeforeTheWork) {
  const Target target = parse_target("llvm");
  const auto with = [&](const char* option, Value value) {
    return copy_with(*target, [&](TargetNode& copy) { copy.attrs.set(option, std::move(value)); });
  };
  EXPECT_NE(compile_error(with("frob", Value(1))).find("no option 'frob'"), std::string::npos);
  EXPECT_EQ(compile_error(with("num-cores", Value(4000))),
            "the target's option num-cores is 4000; it goes from 1 to 512");
  EXPECT_EQ(compile_error(with("num-cores", Value(0))), "the target's option num-cores is 0; it goes from 1 to 512");
}

TEST(Target, FeaturesAreThoseOfTheProcessorAndTheAddedOnes) {
  const codegen::NativeCompiler compiler = codegen::NativeCompiler::load();
  const auto has = [&](const std::string& target, const char* feature) {
    const std::vector<std::string> features = target_features(compiler, parse_target(target + kX86));
    return std::count(features.begin(), features.end(), feature) == 1;
  };
  EXPECT_TRUE(has("llvm -mcpu=x86-64-v3", "avx2"));
  EXPECT_FALSE(has("llvm -mcpu=x86-64-v3", "avx512f"));
  EXPECT_TRUE(has("llvm -mcpu=x86-64-v4", "avx512f"));
  EXPECT_FALSE(has("llvm -mcpu=x86-64-v3 -mattr=-avx2", "avx2"));
  EXPECT_TRUE(has("llvm -mcpu=x86-64 -mattr=+avx2", "avx2"));
}

// A tag of an unknown processor would be an error only where it is used.
TEST(Target, LlvmKnowsTheProcessorOfEachTag) {
  const codegen::NativeCompiler compiler = codegen::NativeCompiler::load();
  int processors = 0;
  for (const std::string& tag : target_tags()) {
    if (!tag.starts_with("cpu/")) continue;
    ++processors;
    const std::string cpu = parse_target(tag)->text("mcpu");
    EXPECT_EQ(tag, "cpu/" + cpu);
    const codegen::NativeTarget target =
        compiler.resolve_target({.cpu = cpu, .features = {}, .triple = "x86_64-linux-gnu"});
    EXPECT_EQ(target.cpu, cpu);
    EXPECT_TRUE(target.has("sse4.2")) << cpu;
  }
  EXPECT_GE(processors, 8);
}

}  // namespace
}  // namespace headrace::driver
