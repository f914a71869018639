// The hooks of a target kind, written in C++: what they make of regions, and what compiles them then.
#include "driver/target_hooks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver/compile.h"
#include "driver/register_all.h"
#include "kit/errors.h"
#include "load/run.h"
#include "relay/text/parse.h"
#include "runtime/const_module.h"
#include "runtime/function_module.h"
#include "tir/parse.h"

namespace headrace::driver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kHookedProgram =
    "#[version = \"0.0.5\"]\n"
    "def @f(%a: Tensor[(3), float32], Compiler=\"hooked_test\") { add(%a, %a) }\n"
    "def @main(%x: Tensor[(3), float32]) { negative(@f(%x)) }\n";

// Loops that square, in place of the region's addition.
IRModule squaring_loops(const IRModule& regions) {
  const IRModule made = make_module();
  for (const auto& [name, function] : regions->functions())
    made->add_function(name, tir::parse_function("#[tir_version = \"1\"]\n"
                                                 "prim_func @any(a: Buffer[(3), float32]) -> (b: Buffer[(3), float32]) "
                                                 "{ for i in serial(3) { b[i] = a[i] * a[i]; } }"));
  return made;
}

void register_hook() {
  register_all();
  register_backend_kind("hooked_test");
  set_kind_hook("hooked_test", kRelayToTir, make_packed(&squaring_loops));
}

std::vector<float> hooked_results() {
  const auto artifact =
      open_compiled(compile_to_memory(make_model(relay::parse_module(kHookedProgram))), "the artifact");
  const auto executor = load::make_executor(artifact, "default", {.threads = 1, .fallback = executors::Fallback::none});
  const NDArray x = NDArray::from_vector({3}, DataType::float_(32), std::vector<float>{1, 2, 3});
  const NDArray y = load::run(*executor, std::vector<NDArray>{x}).at(0);
  return {y.data<float>(), y.data<float>() + 3};
}

TEST(TargetHooks, LoopsAreCompiledNatively) {
  register_hook();
  EXPECT_TRUE(has_hooks("hooked_test"));
  EXPECT_FALSE(has_hooks("nobody"));
  EXPECT_THAT(hooked_results(), ElementsAre(-1, -4, -9));
}

TEST(TargetHooks, LoopsBecomeAModule) {
  register_hook();
  const auto make = [](const std::string& bytes) {
    const auto compute = [](Args args) {
      const auto *x = static_cast<const DLTensor*>(args[0].v.v_ptr), *y = static_cast<const DLTensor*>(args[1].v.v_ptr);
      for (int i = 0; i < 3; ++i) static_cast<float*>(y->data)[i] = 10 * static_cast<const float*>(x->data)[i];
      return Value();
    };
    return runtime::make_function_module("hooked_test", {{bytes, PackedFunc(compute)}}, bytes);
  };
  runtime::register_module_loader("hooked_test", +make);
  set_kind_hook("hooked_test", kTirToRuntime, make_packed([make](const IRModule& kernels, const Target& target) {
                  EXPECT_EQ(target->kind->name, "hooked_test");
                  EXPECT_TRUE(kernels->lookup("f").is<tir::PrimFuncNode>());
                  return make("f");
                }));
  EXPECT_THAT(hooked_results(), ElementsAre(-10, -20, -30));
  set_kind_hook("hooked_test", kTirToRuntime, make_packed([](const IRModule&, const Target&) { return 3; }));
  EXPECT_THAT(kit::user_error_of([] { hooked_results(); }), HasSubstr("returned 3; it must return a runtime::Module"));
  set_kind_hook("hooked_test", kTirToRuntime, {});
  EXPECT_THAT(hooked_results(), ElementsAre(-1, -4, -9));
}

TEST(TargetHooks, OtherHooksAreRefused) {
  register_hook();
  EXPECT_THAT(kit::user_error_of([] { set_kind_hook("hooked_test", "RelayToTE", {}); }),
              HasSubstr("no attribute 'RelayToTE' to set; it has RelayToTIR and TIRToRuntime"));
  EXPECT_THAT(kit::user_error_of([] { set_kind_hook("nobody_test", kRelayToTir, {}); }),
              HasSubstr("no kind of target 'nobody_test'"));
}

}  // namespace
}  // namespace headrace::driver
