// Each pass: a golden text in tests/, and the interpreter before and after.
#include <gmock/gmock.h>

#include <map>
#include <set>

#include "kit/errors.h"
#include "kit/options.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "passes/tests/golden_pass.h"

namespace headrace::passes {
namespace {

class GoldenPasses : public testing::TestWithParam<std::string> {};

TEST_P(GoldenPasses, TextAndResults) {
  const GoldenPass golden = read_golden(GetParam());
  if (golden.checked_by.empty()) {
    check_golden(golden);
  } else {
    EXPECT_TRUE(has_test(golden.checked_by)) << golden.checked_by;
  }
}

INSTANTIATE_TEST_SUITE_P(Passes, GoldenPasses, testing::ValuesIn(golden_names()),
                         [](const auto& info) { return info.param; });

// Inferred types are written where the text has a place for them.
TEST(InferType, TextAndResults) {
  const GoldenPass golden = read_golden("infer_type");
  const IRModule before = program_before(golden), after = relay::infer_type(before);
  expect_becomes(golden, after);
  expect_same_results(before, after, {ramp({2, 3}, 0.5f)}, 0);
  EXPECT_EQ(relay::infer_type(after), after) << "it is typed";
}

struct Unchanged {
  const char* pass;
  const char* why;
  const char* text;
};
class LeavesAlone : public testing::TestWithParam<Unchanged> {};

TEST_P(LeavesAlone, TheVeryNode) {
  const IRModule before = read(GetParam().text);
  EXPECT_EQ(run_pass(GetParam().pass, before)->lookup("main"), before->lookup("main"));
}

INSTANTIATE_TEST_SUITE_P(
    Passes, LeavesAlone,
    testing::Values(
        Unchanged{"SimplifyExpr", "ZeroThatBroadcasts",
                  "def @main(%x: Tensor[(1), float32]) { add(%x, const(Tensor[(3), float32], [0, 0, 0])) }"},
        Unchanged{"SimplifyExpr", "ReverseSlice",
                  "def @main(%x: Tensor[(3), float32]) { strided_slice(%x, begin=[2], end=[-4], strides=[-1]) }"},
        Unchanged{"SimplifyExpr", "ProductThatOverflows",
                  "def @main(%x: Tensor[(3), float32]) { multiply(multiply(%x, 1e30f), 1e30f) }"},
        Unchanged{"SimplifyExpr", "ProductThatVanishes",
                  "def @main(%x: Tensor[(3), float32]) { multiply(multiply(%x, 1e-30f), 1e-30f) }"},
        Unchanged{"SimplifyExpr", "ConstantsThatGrow",
                  "def @main(%x: Tensor[(2, 2), float32]) {"
                  " add(add(%x, const(Tensor[(2), float32], [1, 2])), const(Tensor[(2, 1), float32], [1, 2])) }"},
        Unchanged{"SimplifyExpr", "CastThatCuts",
                  "def @main(%x: Tensor[(3), float32]) { cast(cast(%x, dtype=\"int32\"), dtype=\"float32\") }"},
        Unchanged{"SimplifyExpr", "Transpose", "def @main(%x: Tensor[(3, 3), float32]) { transpose(%x) }"},
        Unchanged{"SimplifyExpr", "ExpandedApart",
                  "def @main(%x: Tensor[(3), float32]) { expand_dims(expand_dims(%x, axis=1), axis=0) }"},
        Unchanged{"FoldScaleAxis", "SharedConvolution",
                  "def @main(%x: Tensor[(1, 3), float32]) {\n"
                  "  %0 = nn.dense(%x, const(Tensor[(1, 3), float32], [1, 2, 3]));\n"
                  "  (%0, multiply(%0, 2f))\n}"},
        Unchanged{"FoldScaleAxis", "ScaleAlongTheHeight",
                  "def @main(%x: Tensor[(1, 1, 2, 2), float32]) {\n"
                  "  %0 = nn.conv2d(%x, const(Tensor[(2, 1, 1, 1), float32], [1, 2]));\n"
                  "  multiply(%0, const(Tensor[(2, 1), float32], [3, 4]))\n}"},
        Unchanged{"FoldScaleAxis", "WeightsThatOverflow",
                  "def @main(%x: Tensor[(1, 1), float32]) {"
                  " multiply(nn.dense(%x, const(Tensor[(1, 1), float32], [1e20])), 1e20f) }"},
        Unchanged{"FoldScaleAxis", "WeightsThatVanish",
                  "def @main(%x: Tensor[(1, 1), float32]) {"
                  " multiply(nn.dense(%x, const(Tensor[(1, 1), float32], [1e-30])), 1e-30f) }"},
        Unchanged{"FoldScaleAxis", "BiasThatOverflows",
                  "def @main(%x: Tensor[(1, 1), float32]) {\n"
                  "  %0 = nn.dense(%x, const(Tensor[(1, 1), float32], [1]));\n"
                  "  multiply(nn.bias_add(%0, const(Tensor[(1), float32], [-1e30])), 1e20f)\n}"},
        Unchanged{"FoldScaleAxis", "ScaleThatBroadcasts",
                  "def @main(%x: Tensor[(1, 3), float32]) {\n"
                  "  %0 = nn.dense(%x, const(Tensor[(1, 3), float32], [1, 2, 3]));\n"
                  "  multiply(%0, const(Tensor[(2), float32], [3, 4]))\n}"},
        Unchanged{"ForwardFoldScaleAxis", "PoolAlongTheScale",
                  "def @main(%x: Tensor[(1, 2, 3, 1), float32]) {\n"
                  "  %0 = multiply(%x, const(Tensor[(2, 1, 1), float32], [2, 3]));\n"
                  "  %1 = nn.avg_pool2d(%0, pool_size=[3, 1], padding=[1, 0], layout=\"NHWC\");\n"
                  "  nn.conv2d(%1, const(Tensor[(1, 2, 1, 1), float32], [1, 2]))\n}"},
        Unchanged{"ForwardFoldScaleAxis", "NegativeScaleUnderRelu",
                  "def @main(%x: Tensor[(1, 2), float32]) {"
                  " nn.dense(nn.relu(multiply(%x, -2f)), const(Tensor[(1, 2), float32], [1, 2])) }"},
        Unchanged{"EliminateCommonSubexpr", "CallsOfTwoBranches",
                  "def @main(%c: bool, %x: Tensor[(3), float32]) {"
                  " if (%c) { exp(%x) } else { negative(exp(%x)) } }"},
        Unchanged{"DynamicToStatic", "SymbolicShape",
                  "def @main(%x: Tensor[(n, m, 2), float32]) {\n"
                  "  %0 = shape_of(%x);\n"
                  "  reshape(%x, concatenate((strided_slice(%0, begin=[1], end=[3]),"
                  " strided_slice(%0, begin=[0], end=[1]))))\n}"},
        Unchanged{"PlanDevices", "NoAnnotation",
                  "def @main(%x: Tensor[(3), float32]) { if (less(sum(%x), 1f)) { exp(%x) } else { %x } }"},
        Unchanged{"FastMath", "FastAlready", "def @main(%x: Tensor[(3), float32]) { nn.fast_softmax(fast_exp(%x)) }"},
        Unchanged{"Legalize", "NoLegalisation", "def @main(%x: Tensor[(3), float32]) { nn.relu(%x) }"},
        Unchanged{"PartialEvaluate", "NothingKnown",
                  "def @main(%x: Tensor[(3), float32]) { let %a = exp(%x); let %b = add(%a, %x); %b }"},
        Unchanged{"Defunctionalization", "FirstOrder",
                  "def @step(%x: float32) -> float32 { add(%x, 1f) }\n"
                  "def @main(%x: float32) { @step(@step(%x)) }"},
        Unchanged{"DeadCodeElimination", "UsedLet", "def @main(%x: float32) { let %a = exp(%x); add(%a, %a) }"}),
    [](const auto& info) { return fmt::format("{}_{}", info.param.pass, info.param.why); });

TEST(AllPasses, DeclaredOrdersNamePasses) {
  std::set<std::string> names;
  std::vector<pass::Pass> passes;
  for (const auto& list : {canonical(), native({}), by_name()}) passes.insert(passes.end(), list.begin(), list.end());
  for (const pass::Pass& pass : passes) names.insert(pass.info.name);
  for (const pass::Pass& pass : passes) {
    for (const std::string& other : pass.info.runs_after)
      EXPECT_TRUE(names.contains(other)) << pass.info.name << " is after " << other;
  }
}

// Inside of the groups that FuseOps makes these passes find nothing.
TEST(AllPasses, PassesThatLookForOpsAreRefusedAfterFuseOps) {
  std::map<std::string, pass::Pass> passes;
  for (const auto& list : {by_name(), canonical(), native({})}) {
    for (const pass::Pass& pass : list) passes[pass.info.name] = pass;
  }
  const IRModule program = read("def @main(%x: Tensor[(3), float32]) { nn.relu(%x) }");
  for (const char* name : {"LazyGradientInit", "SimplifyExpr", "AlterOpLayout"}) {
    const auto run = [&] { pass::run_passes({passes.at("FuseOps"), passes.at(name)}, program, typed_context()); };
    EXPECT_THAT(kit::user_error_of(run), testing::HasSubstr(name));
  }
}

// Reads, writes and calls that may do either happen as often as before and in the same order.
TEST(AllPasses, KeepEffects) {
  const IRModule program = relay::infer_type(program_before(read_golden("to_a_normal_form")));
  std::vector<std::string> names;
  for (const auto& list : {canonical(), native({}), by_name()}) {
    for (const pass::Pass& pass : list) {
      if (pass.info.name != "FirstOrderGradient") names.push_back(pass.info.name);  // refuses references
    }
  }
  for (const IRModule& before : {program, run_pass("ToANormalForm", program), run_pass("LambdaLift", program)}) {
    for (const std::string& name : names) {
      SCOPED_TRACE(name);
      expect_same_results(before, run_pass(name, before), {ramp({2}, 0.5f)}, name == "ToMixedPrecision" ? 1e-2 : 0);
    }
  }
}

// A chain of ops, then a chain of lets.
IRModule long_chains(int length) {
  ops::register_all_ops();
  const auto x = relay::make_var("x", make_tensor_type({2}, DataType::float_(32)));
  Expr value = x;
  for (int i = 0; i < length; ++i) value = ops::unary(i % 2 == 0 ? "tanh" : "sin", ops::add(value, value));
  std::vector<relay::Var> vars;
  std::vector<Expr> values;
  for (int i = 0; i < length; ++i) {
    vars.push_back(relay::make_var("v", make_tensor_type({2}, DataType::float_(32))));
    values.push_back(ops::unary("tanh", i == 0 ? value : Expr(vars[static_cast<size_t>(i) - 1])));
  }
  Expr body = vars.back();
  for (size_t i = vars.size(); i > 0; --i) body = relay::make_let(vars[i - 1], values[i - 1], body);
  return relay::infer_type(make_module(relay::make_function({x}, body)));
}

// Neither the stack nor the square of the length is there to spend.
TEST(AllPasses, LongChainsNeedNoStack) {
  IRModule module = long_chains(kit::by_depth(5'000));
  for (const auto& list : {canonical(), native({})}) module = pass::run_passes(list, module, typed_context());
  relay::verify(module);
}

TEST(AllPasses, LongChainsNeedNoStackByName) {
  const IRModule module = long_chains(kit::by_depth(1'500));
  for (const pass::Pass& pass : by_name()) relay::verify(run_pass(pass.info.name, module));
}

}  // namespace
}  // namespace headrace::passes
