// Operators for which Relay has one op become a call of it, so that a backend can claim it.
#include "frontend/onnx/op_table.h"
#include "frontend/onnx/tests/import_testing.h"
#include "relay/expr.h"
#include "relay/visit.h"

namespace headrace::onnx {
namespace {

using namespace testing;
using ::testing::Contains;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

// Returns the op that the model's result is a call of; "none" unless all its operands are inputs and constants.
std::string only_op(const ImportedModel& imported) {
  const Expr body = imported.module->lookup("main").cast<relay::FunctionNode>()->body;
  const auto* call = body.as<relay::CallNode>();
  if (call == nullptr || call->as_op() == nullptr) return "none";
  for (const Expr& arg : call->args) {
    if (!arg.is<relay::VarNode>() && !arg.is<relay::ConstantNode>()) return "none";
  }
  return call->as_op()->name;
}

// Returns the names of the ops that the model calls.
std::set<std::string> called_ops(const ImportedModel& imported) {
  std::set<std::string> names;
  relay::post_order(imported.module->lookup("main").cast<relay::FunctionNode>()->body, [&](const Expr& expr) {
    if (const auto* op = expr.as<OpNode>()) names.insert(op->name);
  });
  return names;
}

std::string resize_op(const Shape& shape, const std::vector<double>& scales, const char* mode, int64_t opset = 13) {
  const Operand factors = fixed(f32({std::ssize(scales)}, scales));
  const Attributes attributes{AttributeSpec("mode", mode)};
  if (opset == 9) return only_op(import_node("Upsample", 9, {zeros(shape), factors}, attributes));
  return only_op(import_node("Resize", opset, {zeros(shape), Operand(), factors}, attributes));
}

TEST(OneOp, Resizes) {
  EXPECT_EQ(resize_op({1, 2, 8}, {1, 1, 2}, "nearest"), "image.resize1d");
  EXPECT_EQ(resize_op({1, 2, 8}, {1, 1, 2}, "linear"), "image.resize1d");
  EXPECT_EQ(resize_op({1, 2, 8}, {1, 1, 2}, "cubic"), "image.resize1d");
  EXPECT_EQ(resize_op({1, 2, 4, 8}, {1, 1, 2, 0.5}, "linear"), "image.resize2d");
  EXPECT_EQ(resize_op({1, 2, 4, 4, 4}, {1, 1, 2, 2, 3}, "nearest"), "image.resize3d");
  EXPECT_EQ(resize_op({1, 2, 4, 4, 4}, {1, 1, 2, 2, 3}, "nearest", 9), "image.resize3d");
  EXPECT_EQ(resize_op({1, 2, 8}, {1, 1, 2}, "linear", 9), "image.resize1d");
  // Axis by axis, which reads 6 elements in place of 8.
  EXPECT_EQ(resize_op({1, 2, 4, 4, 4}, {1, 1, 2, 2, 2}, "linear"), "none");
  EXPECT_EQ(resize_op({1, 2, 8}, {1, 2, 1}, "nearest"), "take") << "channels";
}

TEST(OneOp, GlobalPools) {
  const auto pool = [](const char* op, const Shape& shape) { return only_op(import_node(op, 13, {zeros(shape)})); };
  EXPECT_EQ(pool("GlobalAveragePool", {1, 2, 8}), "nn.adaptive_avg_pool1d");
  EXPECT_EQ(pool("GlobalAveragePool", {1, 2, 4, 8}), "nn.global_avg_pool2d");
  EXPECT_EQ(pool("GlobalAveragePool", {1, 2, 4, 4, 8}), "nn.adaptive_avg_pool3d");
  EXPECT_EQ(pool("GlobalMaxPool", {1, 2, 8}), "nn.adaptive_max_pool1d");
  EXPECT_EQ(pool("GlobalMaxPool", {1, 2, 4, 4, 8}), "nn.adaptive_max_pool3d");
  const NDArray x = f32({1, 2, 4}, {1, 2, 3, 6, -4, -3, -2, 5});
  expect_near(run_node("GlobalAveragePool", 13, {x}).at(0), {1, 2, 1}, {3, -1}, 1e-6);
  expect_near(run_node("GlobalMaxPool", 13, {x}).at(0), {1, 2, 1}, {6, 5}, 0);
}

TEST(OneOp, TrianglesAndLosses) {
  EXPECT_EQ(only_op(import_node("Trilu", 14, {zeros({3, 4})})), "trilu");
  EXPECT_EQ(only_op(import_node("Trilu", 14, {zeros({3, 4}), fixed(i64({}, {1}))}, {AttributeSpec("upper", 0)})),
            "trilu");
  // The diagonal may be computed by the model.
  EXPECT_EQ(only_op(import_node("Trilu", 14, {zeros({3, 4}), i64({}, {1})})), "trilu");
  expect_near(run_node("Trilu", 14, {f32({2, 2}, {1, 2, 3, 4}), i64({}, {1})}).at(0), {2, 2}, {0, 2, 0, 0}, 0);
  EXPECT_THAT(node_error("Trilu", 14, {zeros({3, 4}), i64({2}, {1, 1})}), HasSubstr("expected one number"));
  const NDArray target = i64({3}, {0, 1, 4});
  EXPECT_EQ(only_op(import_node("NegativeLogLikelihoodLoss", 13, {zeros({3, 5}), target})), "nn.nll_loss");
  EXPECT_EQ(only_op(import_node("NegativeLogLikelihoodLoss", 13, {zeros({3, 5}), target, zeros({5})},
                                {AttributeSpec("ignore_index", 1), AttributeSpec("reduction", "none")})),
            "nn.nll_loss");
}

TEST(OneOp, LayerNormalizations) {
  const Attributes exact{AttributeSpec("epsilon", 0.0F)};
  for (const DataType dtype : {DataType::float_(16), DataType::bfloat16(), DataType::float_(32)}) {
    const NDArray x = make_array({1, 2}, {1, 5}, dtype), vector = make_array({2}, {3, 4}, dtype);
    EXPECT_EQ(only_op(import_node("LayerNormalization", 17, {x, vector, vector}, exact)), "nn.layer_norm");
    const NDArray y = run_node("LayerNormalization", 17, {x, vector, vector}, exact).at(0);
    EXPECT_EQ(y.dtype(), dtype);
    expect_near(y, {1, 2}, {0, 8}, 0);
  }
  // The last two axes count as one: their mean is 4, their variance 5.
  const NDArray x = f32({1, 2, 2}, {1, 3, 5, 7}), scale = f32({2, 2}, {1, 2, 1, 1}), bias = f32({2}, {0, 1});
  const Attributes two_axes{AttributeSpec("axis", 1), exact[0]};
  EXPECT_THAT(called_ops(import_node("LayerNormalization", 17, {x, scale, scale}, two_axes)),
              UnorderedElementsAre("reshape", "nn.layer_norm", "reshape_like"));
  const double root = std::sqrt(5.0);
  expect_near(run_node("LayerNormalization", 17, {x, scale, bias}, two_axes).at(0), {1, 2, 2},
              {-3 / root, -2 / root + 1, 1 / root, 3 / root + 1}, 1e-6);
  // One factor for all elements, and one for each row, which nn.layer_norm does not have.
  const NDArray rows = f32({2, 2}, {1, 5, 1, 5});
  EXPECT_THAT(called_ops(import_node("LayerNormalization", 17, {rows, f32({1}, {3})}, exact)),
              UnorderedElementsAre("broadcast_to", "zeros_like", "nn.layer_norm"));
  expect_near(run_node("LayerNormalization", 17, {rows, f32({1}, {3})}, exact).at(0), {2, 2}, {-3, 3, -3, 3}, 1e-6);
  const std::vector<Operand> by_row{rows, f32({2, 1}, {1, 2})};
  EXPECT_THAT(called_ops(import_node("LayerNormalization", 17, by_row, exact)), Not(Contains("nn.layer_norm")));
  expect_near(run_node("LayerNormalization", 17, by_row, exact).at(0), {2, 2}, {-1, 1, -2, 2}, 1e-6);
}

TEST(OneOp, LayerNormalizationOfSymbolicSizes) {
  GraphWriter graph;
  const std::string x = graph.input("x", ElementType::kFloat, {"n", "m"});
  const std::string scale = graph.input("scale", ElementType::kFloat, {"m"});
  graph.output(graph.node("LayerNormalization", {x, scale, scale}, {}, "y"), ElementType::kUndefined);
  EXPECT_EQ(only_op(import_graph(std::move(graph), 17)), "nn.layer_norm");
  GraphWriter flat;
  const std::string data = flat.input("x", ElementType::kFloat, {"n", "m"});
  const std::string whole = flat.input("scale", ElementType::kFloat, {"n", "m"});
  flat.output(flat.node("LayerNormalization", {data, whole}, {AttributeSpec("axis", 0)}, "y"), ElementType::kUndefined);
  EXPECT_THAT(called_ops(import_graph(std::move(flat), 17)), Not(Contains("nn.layer_norm")));
}

TEST(OneOp, OtherNormalizations) {
  const NDArray half_image = make_array({1, 2, 1}, {1, 5}, DataType::float_(16));
  const NDArray half_vector = make_array({2}, {1, 1}, DataType::float_(16));
  EXPECT_EQ(only_op(import_node("GroupNormalization", 21, {half_image, half_vector, half_vector},
                                {AttributeSpec("num_groups", 1)})),
            "nn.group_norm");
  EXPECT_EQ(only_op(import_node("LpNormalization", 22, {zeros({2, 2})})), "nn.l2_normalize");
  EXPECT_THAT(called_ops(import_node("LpNormalization", 22, {zeros({2, 2})}, {AttributeSpec("p", 1)})),
              Not(Contains("nn.l2_normalize")));
  // Squares of 1e-20 are subnormal numbers of float32.
  expect_near(run_node("LpNormalization", 22, {f32({2, 2}, {1e-20, 0, 0, 0})}).at(0), {2, 2}, {1, 0, 0, 0}, 1e-3);
  const NDArray wide = make_array({2}, {0, 0}, DataType::float_(64));
  expect_near(run_node("LpNormalization", 22, {wide}).at(0), {2}, {0, 0}, 0);
}

TEST(OneOp, GridsAndIndices) {
  const Operand theta = f32({1, 2, 3}, {1, 0, 0, 0, 1, 0}), size = fixed(i64({4}, {1, 1, 2, 3}));
  const Attributes corners{AttributeSpec("align_corners", 1)};
  EXPECT_THAT(called_ops(import_node("AffineGrid", 20, {theta, size}, corners)),
              UnorderedElementsAre("image.affine_grid", "transpose"));
  expect_near(run_node("AffineGrid", 20, {theta, size}, corners).at(0), {1, 2, 3, 2},
              {-1, -1, 0, -1, 1, -1, -1, 1, 0, 1, 1, 1}, 0);
  EXPECT_THAT(called_ops(import_node("AffineGrid", 20, {theta, size})), Not(Contains("image.affine_grid")));
  const Operand depth = fixed(i64({}, {3})), values = f32({2}, {-1, 5});
  const auto one_hot = called_ops(import_node("OneHot", 11, {i64({2}, {1, -1}), depth, values}));
  EXPECT_THAT(one_hot, Contains("one_hot"));
  EXPECT_THAT(one_hot, Not(Contains("equal")));
}

TEST(OneOp, ProductsOfIntegers) {
  const Operand image = u8({1, 1, 1, 3}, {11, 12, 13}), kernel = fixed(i8({2, 1, 1, 2}, {1, 2, 5, 5}));
  EXPECT_EQ(only_op(import_node("ConvInteger", 10, {image, kernel})), "qnn.conv2d");
  EXPECT_THAT(called_ops(import_node("ConvInteger", 10, {image, kernel, u8({}, {10}), i8({2}, {1, 2})})),
              UnorderedElementsAre("cast", "qnn.conv2d"));
  const Operand a = u8({2, 2}, {1, 2, 3, 255}), b = i8({2, 2}, {1, -1, 2, 0});
  EXPECT_THAT(called_ops(import_node("MatMulInteger", 10, {a, b})), UnorderedElementsAre("transpose", "qnn.dense"));
  EXPECT_THAT(called_ops(import_node("MatMulInteger", 10, {a, b, u8({1}, {1}), i8({2}, {1, -1})})),
              UnorderedElementsAre("cast", "reshape", "transpose", "qnn.dense"));
  // These ops have no zero point for each row, and no batches.
  EXPECT_THAT(called_ops(import_node("MatMulInteger", 10, {a, b, u8({2}, {1, 3})})), Not(Contains("qnn.dense")));
  const Operand batch = u8({1, 2, 2}, {1, 2, 3, 255});
  EXPECT_THAT(called_ops(import_node("MatMulInteger", 10, {batch, b})), Not(Contains("qnn.dense")));
  const Operand line = u8({1, 1, 3}, {11, 12, 13});
  EXPECT_THAT(called_ops(import_node("ConvInteger", 10, {line, fixed(i8({2, 1, 2}, {1, 2, 5, 5}))})),
              Not(Contains("qnn.conv2d")));
}

TEST(OneOp, TheTableTellsTheForm) {
  EXPECT_EQ(find_form("", "Conv"), OpForm::single);
  EXPECT_EQ(find_form("ai.onnx", "HardSwish"), OpForm::composed);
  EXPECT_EQ(find_form(kMicrosoftDomain, "BiasGelu"), OpForm::composed);
  EXPECT_EQ(find_form("", "If"), std::nullopt);
  EXPECT_EQ(find_form("com.example", "Conv"), std::nullopt);
}

}  // namespace
}  // namespace headrace::onnx
