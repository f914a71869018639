// The layout of workspaces: places, the attribute's text, what breaks its rule.
#include "tir/workspace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kit/errors.h"
#include "tir/parse.h"
#include "tir/print.h"
#include "tir/verify.h"

namespace headrace::tir {
namespace {

using testing::HasSubstr;

Buffer floats(const char* name, int64_t n) { return make_buffer(name, DataType::float_(32), to_dims({n})); }

TEST(Workspace, SiblingsShareNestedOnesDoNot) {
  const Buffer a = floats("a", 17), b = floats("b", 1), c = floats("c", 100), d = floats("d", 1);
  const Stmt nothing = make_evaluate(make_int(0));
  const auto ws = Scope::workspace;
  const Stmt body = make_seq({make_allocate(a, ws, make_allocate(b, ws, nothing)), make_allocate(c, ws, nothing),
                              make_allocate(d, Scope::registers, nothing)});
  const PrimFunc function = with_workspace(make_prim_func("f", {}, 0, body));
  const WorkspaceLayout layout = workspace_of(*function);
  EXPECT_EQ(layout.offset_bytes.at(a.get()), 0U);
  EXPECT_EQ(layout.offset_bytes.at(b.get()), 128U);
  EXPECT_EQ(layout.offset_bytes.at(c.get()), 0U);
  EXPECT_FALSE(layout.offset_bytes.contains(d.get()));
  EXPECT_EQ(layout.size_bytes, 448U);
  EXPECT_EQ(with_workspace(function), function) << "laid out once";
}

TEST(Workspace, FunctionsWithoutAllocationsCarryNone) {
  const PrimFunc function = make_prim_func("f", {}, 0, make_evaluate(make_int(0)));
  EXPECT_EQ(with_workspace(function), function);
  EXPECT_EQ(workspace_of(*function).size_bytes, 0U);
}

TEST(Workspace, AFunctionThatIsNotLaidOutIsRefused) {
  const PrimFunc function =
      make_prim_func("f", {}, 0, make_allocate(floats("a", 4), Scope::workspace, make_evaluate(make_int(0))));
  EXPECT_THAT(kit::user_error_of([&] { workspace_of(*function); }),
              HasSubstr("the kernel 'f' allocates workspace and has no attribute tir.workspace"));
}

// A function of two nested buffers of 16 bytes with this attribute.
std::string text_with(const std::string& attribute) {
  return "#[tir_version = \"1\"]\nprim_func @f() -> () attrs {\"tir.workspace\" = " + attribute +
         "} {\n  allocate a: Buffer[(4), float32] in workspace;\n  allocate b: Buffer[(4), float32] in workspace;\n"
         "  evaluate 0;\n}\n";
}

TEST(Workspace, TheAttributeIsPrintedAndRead) {
  const std::string text = text_with("{\"bytes\": 192, \"offsets\": [0, 128]}");
  const IRModule module = parse_module(text);
  verify(module);
  const auto function = module->lookup("f").cast<PrimFuncNode>();
  EXPECT_EQ(workspace_of(*function).size_bytes, 192U);
  EXPECT_THAT(print_function(function), HasSubstr("\"tir.workspace\" = {\"bytes\": 192, \"offsets\": [0, 128]}"));
}

TEST(Workspace, BreachesOfTheAttribute) {
  const std::pair<const char*, const char*> kCases[] = {
      {"7", "tir.workspace is not"},
      {"{\"bytes\": 128}", "tir.workspace is not"},
      {"{\"bytes\": 128, \"offsets\": [0, 1.5]}", "tir.workspace is not"},
      {"{\"bytes\": 128, \"offsets\": [0]}", "tir.workspace has 1 offsets for 2 buffers"},
      {"{\"bytes\": 100, \"offsets\": [0, 64]}", "tir.workspace has 100 bytes"},
      {"{\"bytes\": 128, \"offsets\": [0, 8]}", "the buffer 'b' at 8 does not fit"},
      {"{\"bytes\": 128, \"offsets\": [0, 128]}", "the buffer 'b' at 128 does not fit"},
      {"{\"bytes\": 128, \"offsets\": [-64, 64]}", "the buffer 'a' at -64 does not fit"},
      {"{\"bytes\": 128, \"offsets\": [64, 64]}", "the buffers 'a' and 'b' overlap"},
  };
  for (const auto& [attribute, expected] : kCases)
    EXPECT_THAT(kit::user_error_of([&, &given = attribute] { verify(parse_module(text_with(given))); }),
                HasSubstr(expected))
        << attribute;
}

}  // namespace
}  // namespace headrace::tir
