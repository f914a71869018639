// Each pass: a golden text in tests/, and the interpreter before and after.
#include <gtest/gtest.h>

#include "interp/interp.h"
#include "kit/golden.h"
#include "ops/all_ops.h"
#include "passes/pipeline.h"
#include "relay/infer_type.h"
#include "relay/parse.h"
#include "relay/print.h"

namespace headrace::passes {
namespace {

IRModule read(const std::string& body) {
  ops::register_all_ops();
  return relay::infer_type(relay::parse_module("#[version = \"0.0.5\"]\n" + body, "test.relay"));
}

pass::PassContext typed_context() {
  pass::PassContext context;
  context.opt_level = 3;
  context.infer_type = [](const IRModule& module) { return relay::infer_type(module); };
  return context;
}

// Runs the one pass of the canonical list named `name`.
IRModule run_pass(const std::string& name, const IRModule& module) {
  for (const pass::Pass& pass : canonical()) {
    if (pass.info.name == name) return pass::run_passes({pass}, module, typed_context());
  }
  throw std::runtime_error("no pass " + name);
}

NDArray ramp(const Shape& shape, float start) {
  NDArray array = NDArray::empty(shape, DataType::float_(32));
  for (int64_t i = 0; i < array.num_elements(); ++i) array.data<float>()[i] = start + 0.25f * static_cast<float>(i);
  return array;
}

void expect_same_results(const IRModule& a, const IRModule& b, const std::vector<NDArray>& args) {
  const auto want = interp::run_main(a, args), got = interp::run_main(b, args);
  ASSERT_EQ(want.size(), got.size());
  for (size_t r = 0; r < want.size(); ++r) {
    ASSERT_EQ(want[r].shape(), got[r].shape());
    for (int64_t i = 0; i < want[r].num_elements(); ++i) {
      const double x = element_as_double(want[r].tensor(), i), y = element_as_double(got[r].tensor(), i);
      ASSERT_NEAR(x, y, 1e-5 * std::max(1.0, std::abs(x))) << "result " << r << " element " << i;
    }
  }
}

struct PassCase {
  const char* pass;
  const char* golden;
  const char* text;
  std::vector<Shape> inputs;
};

class GoldenPass : public testing::TestWithParam<PassCase> {};

TEST_P(GoldenPass, TextAndResults) {
  const PassCase& c = GetParam();
  const IRModule before = read(c.text);
  const IRModule after = run_pass(c.pass, before);
  EXPECT_TRUE(kit::matches_golden(fmt::format("{}/src/passes/tests/{}.relay", HEADRACE_SOURCE_DIR, c.golden),
                                  relay::print_module(after)));
  std::vector<NDArray> args;
  for (const Shape& shape : c.inputs) args.push_back(ramp(shape, 0.5f));
  expect_same_results(before, after, args);
}

INSTANTIATE_TEST_SUITE_P(
    Passes, GoldenPass,
    testing::Values(
        PassCase{"SimplifyInference",
                 "simplify_inference",
                 "def @main(%x: Tensor[(1, 3, 2, 2), float32], %g: Tensor[(3), float32], %b: Tensor[(3), float32],"
                 " %m: Tensor[(3), float32], %v: Tensor[(3), float32]) {\n"
                 "  %0 = nn.batch_norm(%x, %g, %b, %m, %v, epsilon=0.01f);\n"
                 "  %1 = nn.dropout(%0.0);\n"
                 "  nn.relu(%1.0)\n}",
                 {{1, 3, 2, 2}, {3}, {3}, {3}, {3}}},
        PassCase{"FoldConstant",
                 "fold_constant",
                 "def @main(%x: Tensor[(2, 3), float32]) {\n"
                 "  %0 = add(1f, 2f);\n"
                 "  %1 = multiply(%x, %0);\n"
                 "  %2 = (%1, exp(0f));\n"
                 "  (%2.1, add(%2.0, %0), shape_of(%x))\n}",
                 {{2, 3}}},
        PassCase{"EliminateCommonSubexpr",
                 "eliminate_common_subexpr",
                 "def @main(%x: Tensor[(2, 3), float32]) {\n"
                 "  (add(exp(%x), sum(%x, axis=[1], keepdims=True)), multiply(exp(%x), sum(%x, axis=[0])))\n}",
                 {{2, 3}}}),
    [](const auto& info) { return std::string(info.param.pass); });

TEST(FoldConstant, LeavesWhatDependsOnAnInput) {
  const IRModule before = read("def @main(%x: Tensor[(2), float32]) { add(%x, negative(%x)) }");
  EXPECT_EQ(run_pass("FoldConstant", before)->lookup("main"), before->lookup("main"));
}

TEST(EliminateCommonSubexpr, DifferentAttributesStay) {
  const IRModule before = read("def @main(%x: Tensor[(2, 2), float32]) { (sum(%x, axis=[0]), sum(%x, axis=[1])) }");
  EXPECT_EQ(run_pass("EliminateCommonSubexpr", before)->lookup("main"), before->lookup("main"));
}

}  // namespace
}  // namespace headrace::passes
