// Each pass: a golden text in tests/, and the interpreter before and after.
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "passes/tests/pass_testing.h"
#include "relay/visit.h"

namespace headrace::passes {
namespace {

// Shared nodes in and across branches, a function in a let, a loop, effects, a let that is an operand.
constexpr const char* kForms =
    "def @main(%x: Tensor[(2), float32]) {\n"
    "  %0 = exp(%x);\n"
    "  %1 = negative(%x);\n"
    "  let %r = ref(%0);\n"
    "  let %old = ref_read(%r);\n"
    "  let %_ = ref_write(%r, add(%0, %0));\n"
    "  %2 = less(sum(%x), 9f);\n"
    "  let %a = if (%2) { multiply(%1, ref_read(%r)) } else { subtract(%1, exp(%1)) };\n"
    "  let %loop = fn (%i: int32, %v: Tensor[(2), float32]) -> Tensor[(2), float32] {\n"
    "    if (less(%i, 3)) { %loop(add(%i, 1), add(%v, %1)) } else { %v }\n"
    "  };\n"
    "  let %twice = fn (%v: Tensor[(2), float32]) { add(%v, %v) };\n"
    "  %3 = add({ let %b = tanh(%a); let %_ = ref_write(%r, %b); multiply(%b, %b) }, multiply(%old, ref_read(%r)));\n"
    "  (%loop(0, %twice(%3)), %a, (%3, %old).0)\n"
    "}";

class GoldenPass : public testing::TestWithParam<PassCase> {};

TEST_P(GoldenPass, TextAndResults) { check_pass(GetParam()); }

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
                 "  (add(exp(%x), sum(%x, axis=[1], keepdims=True)), multiply(exp(%x), sum(%x, axis=[0])),"
                 " add(%x, 2f), abs(add(%x, 2f)))\n}",
                 {{2, 3}}},
        PassCase{"DynamicToStatic",
                 "dynamic_to_static",
                 "def @main(%x: Tensor[(2, 3, 4), float32], %w: Tensor[(3, 1), float32]) {\n"
                 "  %0 = shape_of(%x);\n"
                 "  %1 = take(%0, 0i64);\n"
                 "  %2 = reshape(%x, stack((%1, -1i64)));\n"
                 "  %3 = broadcast_to(%w, strided_slice(%0, begin=[1], end=[3]));\n"
                 "  %4 = strided_slice(%2, const(Tensor[(1), int64], [0]), take(%0, const(Tensor[(1), int64], [1])),"
                 " const(Tensor[(1), int64], [1]));\n"
                 "  %5 = full(2f, take(%0, const(Tensor[(2), int64], [0, 2])), dtype=\"float32\");\n"
                 "  (%2, %3, %4, tile(%w, const(Tensor[(2), int64], [1, 2])), multiply(%5, zeros_like(%5)), "
                 "reshape_like(%x, %2),"
                 " nn.pad(%w, const(Tensor[(2, 2), int64], [0, 1, 2, 0]), 1f))\n}",
                 {{2, 3, 4}, {3, 1}},
                 0},
        PassCase{"ToANormalForm", "to_a_normal_form", kForms, {{2}}, 0},
        PassCase{"ToBasicBlockNormalForm", "to_basic_block_normal_form", kForms, {{2}}, 0},
        PassCase{"ToGraphNormalForm", "to_graph_normal_form", kForms, {{2}}, 0},
        PassCase{"RemoveUnusedFunctions",
                 "remove_unused_functions",
                 "def @loop(%x: float32) -> float32 { @loop(%x) }\n"
                 "def @used(%x: Tensor[(2), float32]) { @inner(exp(%x)) }\n"
                 "def @inner(%x: Tensor[(2), float32]) { negative(%x) }\n"
                 "def @main(%x: Tensor[(2), float32]) { @used(%x) }",
                 {{2}},
                 0},
        PassCase{"CanonicalizeOps",
                 "canonicalize_ops",
                 "def @main(%x: Tensor[(1, 2, 3, 3), float32], %b: Tensor[(2), float32], %c: Tensor[(3), float32]) {\n"
                 "  nn.bias_add(nn.bias_add(nn.bias_add(%x, %b), %c, axis=-1), %c, axis=2)\n}",
                 {{1, 2, 3, 3}, {2}, {3}},
                 0},
        PassCase{"DivToMul",
                 "div_to_mul",
                 "def @main(%x: Tensor[(2), float32]) {\n"
                 "  %0 = divide(divide(%x, 3f), const(Tensor[(2), float32], [2, -0.5]));\n"
                 "  (%0, divide(%x, 0f), divide(%x, 1e38f), divide(2f, %x), divide(%x, %0))\n}",
                 {{2}}},
        PassCase{"DefuseOps",
                 "defuse_ops",
                 "def @main(%x: Tensor[(2), float32]) {\n"
                 "  %0 = fn (%p: Tensor[(2), float32], %q: Tensor[(2), float32], Primitive=1) {\n"
                 "    multiply(add(%p, 1f), %q)\n  };\n"
                 "  %0(%0(%x, %x), exp(%x))\n}",
                 {{2}},
                 0},
        PassCase{"FastMath",
                 "fast_math",
                 "def @main(%x: Tensor[(2, 3), float32]) {\n"
                 "  %0 = exp(tanh(erf(%x)));\n"
                 "  (nn.softmax(%0, axis=0), nn.log_softmax(%0), sigmoid(%0))\n}",
                 {{2, 3}},
                 0},
        PassCase{"AnnotateSpans",
                 "annotate_spans",
                 "def @main(%x: Tensor[(2), float32]) {\n"
                 "  let %a = exp(%x); let %f = fn (%a: Tensor[(2), float32]) { negative(%a) };\n"
                 "  %f(%a)\n}",
                 {{2}},
                 0},
        PassCase{"DeadCodeElimination",
                 "dead_code_elimination",
                 "def @unused(%x: float32) -> float32 { @also_unused(%x) }\n"
                 "def @also_unused(%x: float32) -> float32 { %x }\n"
                 "def @write(%r: ref(float32)) -> () { ref_write(%r, 2f) }\n"
                 "def @used(%x: Tensor[(2), float32]) -> Tensor[(2), float32] { exp(%x) }\n"
                 "def @main(%x: Tensor[(2), float32]) {\n"
                 "  let %a = @used(%x);\n"
                 "  let %b = negative(%a);\n"
                 "  let %loop = fn (%i: float32) -> float32 { %loop(%i) };\n"
                 "  let %r = ref(1f);\n"
                 "  let %s = ref(%b);\n"
                 "  let %_ = @write(%r);\n"
                 "  let %c = @used(%x);\n"
                 "  add(%c, ref_read(%r))\n}",
                 {{2}},
                 0},
        PassCase{"SimplifyExpr",
                 "simplify_expr",
                 "def @main(%x: Tensor[(2, 1, 3), float32]) {\n"
                 "  %0 = add(0f, subtract(multiply(%x, 1f), 0f));\n"
                 "  %1 = multiply(2f, multiply(%0, const(Tensor[(3), float32], [0.5, 2, 4])));\n"
                 "  %2 = transpose(transpose(%1, axes=[1, 2, 0]), axes=[2, 0, 1]);\n"
                 "  %3 = reshape(squeeze(expand_dims(%2, axis=0), axis=[2]), newshape=[3, 2]);\n"
                 "  %4 = transpose(transpose(%3), axes=[0, 1]);\n"
                 "  %5 = cast(cast(cast(%4, dtype=\"float64\"), dtype=\"float32\"), dtype=\"float32\");\n"
                 "  %6 = concatenate((nn.pad(%5, 0f, pad_width=[[0, 0], [0, 0]]),), axis=1);\n"
                 "  %7 = strided_slice(%6, begin=[0, 0], end=[2, 3], strides=[1, 1]);\n"
                 "  %8 = add(add(nn.bias_add(%7, const(Tensor[(3), float32], [1, 2, 3])), 2f),"
                 " const(Tensor[(2, 1), float32], [1, 2]));\n"
                 "  %9 = tile(broadcast_to(%8, shape=[2, 3]), reps=[1, 1]);\n"
                 "  %10 = nn.relu(nn.relu(negative(negative(%9))));\n"
                 "  %11 = squeeze(squeeze(%x, axis=[1]), axis=[]);\n"
                 "  (%10, expand_dims(expand_dims(%11, axis=-1), axis=-1),"
                 " if (True) { copy(%11) } else { exp(%11) }, reshape(%x, newshape=[2, 1, 3]))\n}",
                 {{2, 1, 3}}},
        PassCase{"FoldScaleAxis",
                 "fold_scale_axis",
                 "def @main(%x: Tensor[(1, 2, 3, 3), float32], %y: Tensor[(1, 3), float32]) {\n"
                 "  %0 = nn.conv2d(%x, const(Tensor[(2, 2, 1, 1), float32], [1, 2, 3, 4]));\n"
                 "  %1 = nn.relu(add(%0, const(Tensor[(2, 1, 1), float32], [5, 6])));\n"
                 "  %2 = multiply(%1, const(Tensor[(2, 1, 1), float32], [0.5, 2]));\n"
                 "  %3 = nn.conv2d(%2, const(Tensor[(2, 1, 1, 1), float32], [1, -1]), groups=2,"
                 " data_layout=\"NCHW\");\n"
                 "  %4 = multiply(multiply(-2f, nn.bias_add(%3, const(Tensor[(2), float32], [1, 2]))),"
                 " const(Tensor[(1, 2, 1, 1), float32], [3, 4]));\n"
                 "  %5 = nn.dense(%y, const(Tensor[(2, 3), float32], [1, 2, 3, 4, 5, 6]));\n"
                 "  %6 = multiply(subtract(%5, const(Tensor[(2), float32], [1, 2])),"
                 " const(Tensor[(2), float32], [10, 100]));\n"
                 "  %7 = multiply(nn.relu(%5), 3f);\n"
                 "  %8 = nn.matmul(%y, const(Tensor[(3, 2), float32], [1, 2, 3, 4, 5, 6]));\n"
                 "  (%4, %6, %7, multiply(nn.relu(%8), -2f), multiply(nn.leaky_relu(nn.matmul(%y,"
                 " const(Tensor[(3, 1), float32], [1, 3, 5]))), 2f))\n}",
                 {{1, 2, 3, 3}, {1, 3}}}),
    [](const auto& info) { return std::string(info.param.pass); });

// What nobody wrote is written where the text has a place for it.
TEST(InferType, TextAndResults) {
  const char* text =
      "def @helper(%a, %b) { multiply(%a, %b) }\n"
      "def @main(%x: Tensor[(2, 3), float32]) {\n"
      "  let %f = fn (%y) { @helper(%y, %x) };\n  %f(exp(%x))\n}";
  ops::register_all_ops();
  const IRModule before = relay::parse_module(std::string("#[version = \"0.0.5\"]\n") + text, "test.relay");
  const IRModule after = relay::infer_type(before);
  EXPECT_TRUE(
      kit::matches_golden(HEADRACE_SOURCE_DIR "/src/passes/tests/infer_type.relay", relay::print_module(after)));
  expect_same_results(before, after, {ramp({2, 3}, 0.5f)}, 0);
  EXPECT_EQ(relay::infer_type(after), after) << "it is typed";
}

TEST(SimplifyExpr, KnowsLargeZerosAndOnes) {
  const IRModule after = run_pass("SimplifyExpr", read("def @main(%x: Tensor[(5000, 4), float32]) {"
                                                       " multiply(add(%x, zeros(shape=[5000, 4])),"
                                                       " full(1f, shape=[5000, 4], dtype=\"float32\")) }"));
  EXPECT_TRUE(after->lookup("main").cast<relay::FunctionNode>()->body.is<relay::VarNode>());
  const IRModule other = run_pass("SimplifyExpr", read("def @main(%x: Tensor[(5000, 4), float32]) {"
                                                       " add(%x, ones(shape=[5000, 4])) }"));
  EXPECT_TRUE(other->lookup("main").cast<relay::FunctionNode>()->body.is<relay::CallNode>());
}

TEST(FoldScaleAxis, ADeadChannelMayVanish) {
  const IRModule folded = run_pass("FoldScaleAxis", read("def @main(%x: Tensor[(1, 2), float32]) {"
                                                         " multiply(nn.dense(%x, const(Tensor[(2, 2), float32],"
                                                         " [1, 2, 1e-38, 0])), 0.01f) }"));
  const Expr body = folded->lookup("main").cast<relay::FunctionNode>()->body;
  EXPECT_EQ(body.cast<relay::CallNode>()->as_op()->name, "nn.dense");
}

TEST(EliminateCommonSubexpr, DifferentAttributesStay) {
  const IRModule before = read("def @main(%x: Tensor[(2, 2), float32]) { (sum(%x, axis=[0]), sum(%x, axis=[1])) }");
  EXPECT_EQ(run_pass("EliminateCommonSubexpr", before)->lookup("main"), before->lookup("main"));
}

int64_t count_calls(const IRModule& module, std::string_view op) {
  int64_t count = 0;
  relay::post_order(module->lookup("main"), [&](const Expr& node) {
    const auto* call = node.as<relay::CallNode>();
    count += call != nullptr && call->as_op() != nullptr && call->as_op()->name == op;
  });
  return count;
}

// Of equal calls one is left for those of a block and of the branches in it, those that come before it, too. Those of
// two branches stay two. One run is enough.
TEST(EliminateCommonSubexpr, CallsInAndAroundBranches) {
  const auto left = [](const std::string& body) {
    const IRModule before = read("def @main(%c: bool, %d: bool, %x: Tensor[(3), float32]) {\n" + body + "\n}");
    const IRModule after = run_pass("EliminateCommonSubexpr", before);
    for (const bool c : {false, true}) {
      for (const bool d : {false, true}) {
        const std::vector<NDArray> args{NDArray::from_vector<uint8_t>({}, DataType::bool_(), {uint8_t{c}}),
                                        NDArray::from_vector<uint8_t>({}, DataType::bool_(), {uint8_t{d}}),
                                        ramp({3}, 1)};
        expect_same_results(before, after, args, 0);
      }
    }
    EXPECT_EQ(run_pass("EliminateCommonSubexpr", after), after) << body;
    return count_calls(after, "exp");
  };
  const std::string four =
      "if (%c) { if (%d) { exp(%x) } else { abs(exp(%x)) } }"
      " else { if (%d) { tanh(exp(%x)) } else { negative(exp(%x)) } }";
  EXPECT_EQ(left(four), 4);
  EXPECT_EQ(left("(" + four + ", exp(%x))"), 1);
  EXPECT_EQ(left("(exp(%x), " + four + ")"), 1);
  EXPECT_EQ(left("if (%c) { (" + four + ", exp(%x)).0 } else { exp(%x) }"), 2);
  EXPECT_EQ(left("(" + four + ", if (%d) { exp(%x) } else { exp(%x) })"), 6);
  EXPECT_EQ(left("if (%c) { add(if (%d) { exp(%x) } else { abs(exp(%x)) }, exp(%x)) }"
                 " else { if (%d) { exp(%x) } else { abs(%x) } }"),
            2);
  // What is computed of them, and items of what has several results, are found equal in the same run.
  EXPECT_EQ(left("(if (%c) { exp(abs(exp(%x))) } else { negative(exp(abs(exp(%x)))) }, exp(abs(exp(%x))))"), 2);
  EXPECT_EQ(left("(if (%c) { exp(split(%x, indices_or_sections=3).0) } else { exp(split(%x, "
                 "indices_or_sections=3).0) }, exp(split(%x, indices_or_sections=3).0))"),
            1);
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

// What reads and writes, and what calls what may, happens as often as before and in the same order.
TEST(AllPasses, KeepEffects) {
  const IRModule program = read(kForms);
  std::vector<std::string> names{"SimplifyExpr", "FoldScaleAxis", "DeadCodeElimination", "EliminateCommonSubexpr"};
  for (const pass::Pass& pass : by_name()) {
    if (pass.info.name != "FirstOrderGradient") names.push_back(pass.info.name);  // refuses references
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
  IRModule module = long_chains(5'000);
  for (const auto& list : {canonical(), native()}) module = pass::run_passes(list, module, typed_context());
  relay::verify(module);
}

TEST(AllPasses, LongChainsNeedNoStackByName) {
  const IRModule module = long_chains(1'500);
  for (const pass::Pass& pass : by_name()) relay::verify(run_pass(pass.info.name, module));
}

}  // namespace
}  // namespace headrace::passes
