// Operators for which Relay has one op become a call of it, so that a backend can claim it.
#include "frontend/onnx/tests/import_testing.h"
#include "relay/expr.h"

namespace headrace::onnx {
namespace {

using namespace testing;

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

}  // namespace
}  // namespace headrace::onnx
