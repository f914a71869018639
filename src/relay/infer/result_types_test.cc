#include "relay/infer/result_types.h"

#include <gtest/gtest.h>

#include "ops/all_ops.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"
#include "relay/text/print.h"

namespace headrace::relay {
namespace {

IRModule annotated(const std::string& text) {
  ops::register_all_ops();
  return with_result_types(infer_type(parse_module("#[version = \"0.0.5\"]\n" + text)));
}

std::string result_of(const IRModule& module, const std::string& name) {
  return to_string(module->lookup(name).as<FunctionNode>()->ret_type);
}

TEST(ResultTypes, FunctionsOfTheModuleGetThem) {
  const IRModule module = annotated(
      "def @known(%x: Tensor[(n, 3), float32]) { sum(%x, axis=[1]) }\n"
      "def @open(%x: Tensor[(?), float32]) -> _ { (%x, 1) }\n"
      "def @any[A](%x: A) { fn (%y: int32) { %x } }\n"
      "def @written(%x: Tensor[(3), float32]) -> Tensor[(?), float32] { %x }\n");
  EXPECT_EQ(result_of(module, "known"), "Tensor[(n), float32]");
  EXPECT_EQ(result_of(module, "open"), "(Tensor[(?), float32], int32)");
  EXPECT_EQ(result_of(module, "any"), "fn (int32) -> A");
  EXPECT_EQ(result_of(module, "written"), "Tensor[(?), float32]");
  const IRModule again = infer_type(module);
  EXPECT_EQ(with_result_types(again), again);
  EXPECT_NE(print_module(again).find("def @known(%x: Tensor[(n, 3), float32]) -> Tensor[(n), float32] {"),
            std::string::npos);
}

TEST(ResultTypes, FunctionsInsideOfFunctionsGetThem) {
  const IRModule module =
      infer_type(annotated("def @main(%x: float32) {\n"
                           "  let %f = fn (%y: float32) { fn (%z: int32) { (%y, %z) } };\n"
                           "  let %g = fn (%y: float32) -> float32 { %y };\n"
                           "  (%f(%x), %g(%x))\n"
                           "}\n"));
  const std::string text = print_module(module);
  EXPECT_NE(text.find("fn (%y: float32) -> fn (int32) -> (float32, int32) {"), std::string::npos) << text;
  EXPECT_NE(text.find("fn (%z: int32) -> (float32, int32) {"), std::string::npos) << text;
  EXPECT_EQ(with_result_types(module), module);
}

// A module whose functions have their annotations stays the same object.
TEST(ResultTypes, WrittenTypesStay) {
  const IRModule module = annotated("def @main(%x: float32) -> float32 { %x }");
  EXPECT_EQ(with_result_types(module), module);
}

}  // namespace
}  // namespace headrace::relay
