// BackwardFoldScaleAxis, ForwardFoldScaleAxis: into weights and of scales that are not constants, along several ways.
#include <gmock/gmock.h>

#include "kit/relay_programs.h"
#include "passes/scale/fold_scale_axis.h"
#include "passes/tests/pass_testing.h"
#include "relay/visit.h"

namespace headrace::passes {
namespace {

// A program before and after the pass, as texts over %x: (2, 4, 5, 5), %y: (3, 4), weights, scales and biases.
struct FoldCase {
  const char* name;
  const char* pass;
  const char* before;
  const char* after;  // empty: the program itself
};
void PrintTo(const FoldCase& c, std::ostream* out) { *out << c.name; }

std::string scale_program(const char* body) {
  return fmt::format(
      "def @main(%x: Tensor[(2, 4, 5, 5), float32], %y: Tensor[(3, 4), float32], %w: Tensor[(4, 4, 3, 3), float32],"
      " %v: Tensor[(4, 4, 3, 3), float32], %d: Tensor[(4, 1, 3, 3), float32], %m: Tensor[(4, 4), float32],"
      " %s: Tensor[(4, 1, 1), float32], %t: Tensor[(4), float32], %b: Tensor[(4, 1, 1), float32],"
      " %u: float32) {{\n{}\n}}",
      body);
}

#define POSITIVE "const(Tensor[(4, 1, 1), float32], [2, 3, 0.5, 4])"
#define POSITIVE_WEIGHTS "const(Tensor[(4, 1, 1, 1), float32], [2, 3, 0.5, 4])"
#define NEGATIVE "const(Tensor[(4, 1, 1), float32], [2, -3, 0.5, 4])"
#define WITH_ZERO "const(Tensor[(4, 1, 1), float32], [2, 0, 0.5, 4])"
#define SAME "padding=[1, 1]"

constexpr const char* kForward = "ForwardFoldScaleAxis";
constexpr const char* kBackward = "BackwardFoldScaleAxis";

const std::vector<FoldCase> kFoldCases = {
    {"ForwardSimple", kForward, "  nn.conv2d(add(nn.relu(multiply(%x, " POSITIVE ")), %b), %w, " SAME ")",
     "  %0 = nn.relu(%x);\n  %1 = divide(%b, " POSITIVE ");\n  %2 = add(%0, %1);\n  %3 = multiply(%w, " POSITIVE
     ");\n  nn.conv2d(%2, %3, " SAME ")"},
    {"ForwardDualPath", kForward,
     "  %0 = subtract(nn.relu(multiply(%x, " POSITIVE ")), %b);\n"
     "  (nn.conv2d(%0, %w, " SAME "), nn.conv2d(%0, %d, groups=4))",
     "  %0 = nn.relu(%x);\n  %1 = subtract(%0, divide(%b, " POSITIVE "));\n"
     "  (nn.conv2d(%1, multiply(%w, " POSITIVE "), " SAME "), nn.conv2d(%1, multiply(%d, " POSITIVE_WEIGHTS
     "), groups=4))"},
    {"ForwardVariable", kForward, "  nn.conv2d(multiply(%x, %s), %w)", "  nn.conv2d(%x, multiply(%w, %s))"},
    {"ForwardVariableDepthwise", kForward, "  nn.conv2d(multiply(%x, %s), %d, groups=4)",
     "  nn.conv2d(%x, multiply(%d, expand_dims(%s, axis=3)), groups=4)"},
    {"ForwardOfAll", kForward, "  nn.conv2d(nn.avg_pool2d(multiply(%u, %x), pool_size=[2, 2]), %w)",
     "  nn.conv2d(nn.avg_pool2d(%x, pool_size=[2, 2]), multiply(%w, %u))"},
    {"ForwardDense", kForward, "  nn.dense(multiply(%y, %t), %m)", "  nn.dense(%y, multiply(%m, %t))"},
    {"ForwardMatmul", kForward, "  nn.matmul(multiply(%y, %t), %m)",
     "  nn.matmul(%y, multiply(%m, expand_dims(%t, axis=1)))"},
    {"ForwardTranspose", kForward, "  nn.conv2d_transpose(multiply(%x, %s), %w)",
     "  nn.conv2d_transpose(%x, multiply(%w, expand_dims(%s, axis=3)))"},
    {"ForwardTwoScales", kForward, "  nn.conv2d(multiply(nn.relu(multiply(%x, " POSITIVE ")), %s), %w)",
     "  nn.conv2d(nn.relu(%x), multiply(multiply(%w, " POSITIVE "), %s))"},
    {"ForwardNegative", kForward, "  nn.conv2d(multiply(%x, " NEGATIVE "), %w)",
     "  nn.conv2d(%x, multiply(%w, " NEGATIVE "))"},
    {"ForwardReluOfNegative", kForward, "  nn.conv2d(nn.relu(multiply(%x, " NEGATIVE ")), %w)", ""},
    {"ForwardReluOfVariable", kForward, "  nn.conv2d(nn.relu(multiply(%x, %s)), %w)", ""},
    {"ForwardMaxOfVariable", kForward, "  nn.conv2d(nn.max_pool2d(multiply(%x, %s), pool_size=[2, 2]), %w)", ""},
    {"ForwardSumOverZero", kForward, "  nn.conv2d(add(multiply(%x, " WITH_ZERO "), %b), %w)", ""},
    {"ForwardSumOverVariable", kForward, "  nn.conv2d(add(multiply(%x, %s), %b), %w)", ""},
    {"ForwardSumOfTheSame", kForward, "  %0 = multiply(%x, " POSITIVE ");\n  nn.conv2d(add(%0, nn.relu(%0)), %w)", ""},
    {"ForwardAlsoAResult", kForward, "  %0 = multiply(%x, %s);\n  (nn.conv2d(%0, %w), %0)", ""},
    {"ForwardAlsoAnotherOp", kForward, "  %0 = multiply(%x, %s);\n  (nn.conv2d(%0, %w), tanh(%0))", ""},
    {"ForwardAlongTheHeight", kForward,
     "  nn.conv2d(multiply(%x, const(Tensor[(5, 1), float32], [1, 2, 3, 4, 5])), %w)", ""},
    {"ForwardIntoItself", kForward, "  %0 = multiply(%m, %t);\n  nn.dense(%0, %0)", ""},
    {"ForwardGrouped", kForward,
     "  nn.conv2d(multiply(%x, %s), strided_slice(%w, begin=[0, 0, 0, 0],"
     " end=[4, 2, 3, 3]), groups=2)",
     ""},
    {"BackwardSimple", kBackward, "  multiply(nn.relu(add(nn.conv2d(%x, %w), %b)), " POSITIVE ")",
     "  nn.relu(add(nn.conv2d(%x, multiply(%w, " POSITIVE_WEIGHTS ")), multiply(%b, " POSITIVE ")))"},
    {"BackwardVariable", kBackward, "  multiply(nn.bias_add(nn.conv2d(%x, %w), %t), %s)",
     "  nn.bias_add(nn.conv2d(%x, multiply(%w, expand_dims(%s, axis=3))), multiply(%t, reshape(%s, newshape=[4])))"},
    {"BackwardDualPath", kBackward, "  multiply(add(nn.conv2d(%x, %w), nn.conv2d(%x, %v)), %s)",
     "  add(nn.conv2d(%x, multiply(%w, expand_dims(%s, axis=3))),"
     " nn.conv2d(%x, multiply(%v, expand_dims(%s, axis=3))))"},
    {"BackwardDualConsumer", kBackward,
     "  %0 = nn.relu(multiply(nn.conv2d(%x, %w), " POSITIVE "));\n"
     "  (multiply(nn.conv2d(%0, %w), %s), multiply(nn.conv2d(%0, %v), %s))",
     "  %0 = nn.relu(nn.conv2d(%x, multiply(%w, " POSITIVE_WEIGHTS ")));\n"
     "  (nn.conv2d(%0, multiply(%w, expand_dims(%s, axis=3))), nn.conv2d(%0, multiply(%v, expand_dims(%s, axis=3))))"},
    {"BackwardDense", kBackward, "  multiply(add(nn.dense(%y, %m), %t), %t)",
     "  add(nn.dense(%y, multiply(%m, expand_dims(%t, axis=1))), multiply(%t, %t))"},
    {"BackwardTranspose", kBackward, "  multiply(nn.conv2d_transpose(%x, %w), %s)",
     "  nn.conv2d_transpose(%x, multiply(%w, %s))"},
    {"BackwardDepthwise", kBackward, "  multiply(%u, nn.conv2d(%x, %d, groups=4))",
     "  nn.conv2d(%x, multiply(%d, %u), groups=4)"},
    {"BackwardTwice", kBackward, "  multiply(multiply(nn.conv2d(%x, %d, groups=4), %u), " NEGATIVE ")",
     "  nn.conv2d(%x, multiply(multiply(%d, %u), const(Tensor[(4, 1, 1, 1), float32], [2, -3, 0.5, 4])), groups=4)"},
    {"BackwardReluOfVariable", kBackward, "  multiply(nn.relu(nn.conv2d(%x, %w)), %s)", ""},
    {"BackwardAlsoAResult", kBackward, "  %0 = nn.conv2d(%x, %w);\n  (%0, multiply(%0, %s))", ""},
    {"BackwardOneSideAlone", kBackward, "  multiply(add(nn.conv2d(%x, %w, " SAME "), tanh(%x)), %s)", ""},
    {"BackwardOfItself", kBackward, "  %0 = nn.conv2d(%x, %w);\n  multiply(%0, %0)", ""},
};

class ScaleFolds : public testing::TestWithParam<FoldCase> {};

TEST_P(ScaleFolds, AsWorkedOutByHand) {
  const FoldCase& c = GetParam();
  const IRModule before = read(scale_program(c.before)), after = run_pass(c.pass, before);
  const bool is_same = *c.after == 0;
  EXPECT_EQ(relay::print_module(after), relay::print_module(is_same ? before : read(scale_program(c.after))));
  if (is_same) return;
  kit::Random random(3);
  const auto inputs = kit::random_inputs(before, random);
  expect_same_results(before, after, inputs, 1e-4);
  // The product with the weights is a node of its own, so a second run has nothing to do.
  EXPECT_EQ(relay::print_module(run_pass(c.pass, after)), relay::print_module(after));
}

INSTANTIATE_TEST_SUITE_P(Programs, ScaleFolds, testing::ValuesIn(kFoldCases),
                         [](const auto& info) { return std::string(info.param.name); });

// Constants all over: in any rank, nothing is left to compute.
TEST(FoldScaleAxis, ConvolutionsOfOtherRanks) {
  const IRModule before = read(
      "def @main(%x: Tensor[(1, 2, 5), float32], %y: Tensor[(1, 3, 3, 3, 2), float32]) {\n"
      "  %0 = nn.conv1d(multiply(%x, const(Tensor[(2, 1), float32], [2, -3])), const(Tensor[(1, 2, 2), float32],"
      " [1, 2, 3, 4]));\n"
      "  %1 = nn.conv3d(%y, const(Tensor[(1, 1, 1, 2, 2), float32], [1, 2, 3, 4]), data_layout=\"NDHWC\","
      " kernel_layout=\"DHWIO\");\n"
      "  (%0, multiply(%1, const(Tensor[(2), float32], [10, 0.5])))\n}");
  const IRModule after = run_pass("FoldScaleAxis", before);
  EXPECT_EQ(relay::print_module(after).find("multiply"), std::string::npos) << relay::print_module(after);
  expect_same_results(before, after, {ramp({1, 2, 5}, -1), ramp({1, 3, 3, 3, 2}, -2)});
}

// A sum whose divided operand would overflow its dtype stays.
TEST(FoldScaleAxis, SumsThatOverflowStay) {
  const IRModule before = read(
      "def @main(%y: Tensor[(3, 2), float32]) {\n"
      "  nn.dense(add(multiply(%y, 1e-30f), 1e20f), const(Tensor[(1, 2), float32], [1, 2]))\n}");
  EXPECT_EQ(run_pass("ForwardFoldScaleAxis", before)->lookup("main"), before->lookup("main"));
}

// A read of a reference is not moved past a write.
TEST(FoldScaleAxis, ReadsStayWhereTheyAre) {
  const IRModule before = read(
      "def @main(%x: Tensor[(1, 4, 3, 3), float32], %w: Tensor[(4, 4, 1, 1), float32], %s: Tensor[(4, 1, 1), float32])"
      " {\n  let %r = ref(%s);\n"
      "  (multiply(nn.conv2d(%x, %w), ref_read(%r)), ref_write(%r, exp(%s)), multiply(nn.conv2d(%x, %w), %s)).0\n}");
  const IRModule after = run_pass("BackwardFoldScaleAxis", before);
  EXPECT_NE(relay::print_module(after).find("ref_read"), std::string::npos);
  int products = 0;
  relay::post_order(after->lookup("main"), [&](const Expr& e) {
    const auto* call = e.as<relay::CallNode>();
    const bool is_product = call != nullptr && call->as_op() != nullptr && call->as_op()->name == "multiply";
    products += is_product && call->args[0].as<relay::CallNode>() != nullptr ? 1 : 0;
  });
  EXPECT_EQ(products, 1) << relay::print_module(after);
}

// Groups made by FuseOps stay as they are.
TEST(FoldScaleAxis, UnitsKeepWhatIsInThem) {
  for (const char* body : {"  multiply(nn.conv2d(%x, %w), %s)", "  nn.conv2d(multiply(%x, %s), %w)"}) {
    const IRModule before = read(fmt::format(
        "def @main(%a: Tensor[(2, 4, 5, 5), float32], %b: Tensor[(4, 4, 3, 3), float32], %c: Tensor[(4, 1, 1), "
        "float32]) {{\n  %0 = fn (%x: Tensor[(2, 4, 5, 5), float32], %w: Tensor[(4, 4, 3, 3), float32],"
        " %s: Tensor[(4, 1, 1), float32], Primitive=1) {{\n{}\n  }};\n  %0(%a, %b, %c)\n}}",
        body));
    EXPECT_EQ(run_pass("FoldScaleAxis", before)->lookup("main"), before->lookup("main")) << body;
  }
}

// Called by name the pass folds variables; in the list of builds it does so only with the option.
TEST(FoldScaleAxis, BuildsLeaveVariablesAlone) {
  const IRModule before = read(scale_program("  multiply(nn.conv2d(%x, %w), %s)"));
  const auto after_list = [&](std::optional<bool> fold) {
    pass::PassContext context = typed_context();
    if (fold) context.config.set("relay.FoldScaleAxis.fold_variables", Value(*fold));
    return relay::print_module(pass::run_passes(canonical(), before, context));
  };
  const auto folds = testing::HasSubstr("multiply(%w");
  EXPECT_THAT(after_list({}), testing::Not(folds));
  EXPECT_THAT(after_list(false), testing::Not(folds));
  EXPECT_THAT(after_list(true), folds);
  EXPECT_THAT(relay::print_module(run_pass("FoldScaleAxis", before)), folds);
  pass::PassContext context = typed_context();
  context.config.set("relay.FoldScaleAxis.fold_variables", Value(false));
  EXPECT_THAT(relay::print_module(run_pass("FoldScaleAxis", before, context)), testing::Not(folds));
}

// Ways that are longer than the passes go keep their scale, and the time stays in proportion.
// As in Relay, a context sees the passes that it consists of.
TEST(FoldScaleAxis, IsASequence) {
  const IRModule before = read(scale_program("  multiply(nn.conv2d(%x, %w), %s)"));
  using Names = std::vector<std::string>;
  const auto traced = [&](pass::PassContext context, bool by_itself) {
    Names names;
    context.trace = [&](const IRModule&, const pass::PassInfo& info, bool is_before) {
      if (is_before) names.push_back(info.name);
    };
    if (by_itself) context.required_pass.push_back("FoldScaleAxis");
    run_pass("FoldScaleAxis", before, context);
    return names;
  };
  const Names all = {"BackwardFoldScaleAxis", "ForwardFoldScaleAxis", "FoldConstant"};
  const auto at = [](int32_t level) {
    pass::PassContext context = typed_context();
    context.opt_level = level;
    return context;
  };
  EXPECT_EQ(traced(at(3), false), all);
  EXPECT_EQ(traced(at(2), false), (Names{"FoldConstant"}));
  EXPECT_EQ(traced(at(0), false), Names{});
  EXPECT_EQ(traced(at(0), true), all);
  pass::PassContext less = at(3), more = at(2), none = at(3);
  less.disabled_pass = {"BackwardFoldScaleAxis"};
  EXPECT_EQ(traced(less, false), (Names{"ForwardFoldScaleAxis", "FoldConstant"}));
  EXPECT_EQ(traced(less, true), (Names{"ForwardFoldScaleAxis", "FoldConstant"}));
  more.required_pass = {"forward_fold_scale_axis"};
  EXPECT_EQ(traced(more, false), (Names{"ForwardFoldScaleAxis", "FoldConstant"}));
  none.disabled_pass = {"FoldScaleAxis"};
  EXPECT_EQ(traced(none, false), Names{});
}

TEST(FoldScaleAxis, LongWays) {
  const auto ways = [](int count) {
    std::string text = "  %0 = nn.dense(%y, %m);\n";
    for (int i = 0; i < count; ++i) text += fmt::format("  %{} = multiply(nn.relu(%{}), 2f);\n", i + 1, i);
    return read(scale_program((text + fmt::format("  nn.dense(%{}, %m)", count)).c_str()));
  };
  for (const int count : {30, 4000}) {
    const IRModule before = ways(count), after = run_pass("FoldScaleAxis", before);
    int products = 0;
    relay::post_order(after->lookup("main"), [&](const Expr& e) {
      const auto* call = e.as<relay::CallNode>();
      products += call != nullptr && call->as_op()->name == "multiply" && call->args[0].is<relay::CallNode>() &&
                          call->args[0].as<relay::CallNode>()->as_op()->name == "nn.relu"
                      ? 1
                      : 0;
    });
    EXPECT_EQ(products == 0, count == 30) << products;
  }
}

TEST(FoldScaleAxis, ADeadChannelMayVanish) {
  const IRModule folded = run_pass("FoldScaleAxis", read("def @main(%x: Tensor[(1, 2), float32]) {"
                                                         " multiply(nn.dense(%x, const(Tensor[(2, 2), float32],"
                                                         " [1, 2, 1e-38, 0])), 0.01f) }"));
  const Expr body = folded->lookup("main").cast<relay::FunctionNode>()->body;
  EXPECT_EQ(body.cast<relay::CallNode>()->as_op()->name, "nn.dense");
}

}  // namespace
}  // namespace headrace::passes
