#include "cost/op_work.h"

#include <gtest/gtest.h>

#include "ops/all_ops.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"

namespace headrace::cost {
namespace {

TEST(OpWork, CountsMultiplyAdds) {
  const auto work = [](const std::string& text) {
    ops::register_all_ops();
    const IRModule module = relay::infer_type(relay::parse_module("#[version = \"0.0.5\"]\n" + text, "test"));
    return work_of(*module->lookup("main").as<relay::FunctionNode>()->body.as<relay::CallNode>());
  };
  const StepWork conv = work(
      "def @main(%x: Tensor[(1, 16, 8, 8), float32], %w: Tensor[(32, 4, 3, 3), float32]) {\n"
      "  nn.conv2d(%x, %w, padding=[1, 1], groups=4, channels=32, kernel_size=[3, 3]) }");
  EXPECT_EQ(conv.operations, 2.0 * 32 * 8 * 8 * 4 * 3 * 3);
  EXPECT_EQ(conv.bytes_read, 4.0 * (16 * 8 * 8 + 32 * 4 * 3 * 3));
  EXPECT_EQ(conv.bytes_written, 4.0 * 32 * 8 * 8);
  EXPECT_EQ(work("def @main(%x: Tensor[(1, 3, 8, 8, 16), float32], %w: Tensor[(2, 3, 3, 3, 16, 16), float32]) {\n"
                 "  nn.conv2d(%x, %w, padding=[1, 1], data_layout=\"NCHW16c\", kernel_layout=\"OIHW16i16o\") }")
                .operations,
            2.0 * 32 * 8 * 8 * 48 * 3 * 3);
  EXPECT_EQ(work("def @main(%x: Tensor[(1, 2, 4, 4), float32], %w: Tensor[(0, 2, 1, 1), float32]) {\n"
                 "  nn.conv2d(%x, %w, kernel_size=[1, 1], channels=0) }")
                .operations,
            0);
  EXPECT_EQ(work("def @main(%g: Tensor[(1, 32, 8, 8), float32], %x: Tensor[(1, 16, 8, 8), float32]) {\n"
                 "  nn.conv2d_backward_weight(%g, %x, kernel_size=[3, 3], padding=[1, 1], groups=4) }")
                .operations,
            2.0 * 32 * 8 * 8 * 4 * 3 * 3);
  const StepWork dense =
      work("def @main(%x: Tensor[(5, 7), float32], %w: Tensor[(11, 7), float32]) { nn.dense(%x, %w) }");
  EXPECT_EQ(dense.operations, 2.0 * 5 * 7 * 11);
  EXPECT_EQ(work("def @main(%x: Tensor[(2, 3, 4), float32], %y: Tensor[(2, 5, 4), float32]) {\n"
                 "  nn.batch_matmul(%x, %y) }")
                .operations,
            2.0 * 2 * 3 * 4 * 5);
  EXPECT_EQ(work("def @main(%x: Tensor[(5, 7), float32]) { sum(%x) }").operations, 35);
  EXPECT_EQ(work("def @main(%x: Tensor[(5, 7), float32]) { reshape(%x, newshape=[35]) }").bytes_read, 0);
  EXPECT_EQ(seconds_of({}, {}, 4), 0);
  const StepWork layer = work(
      "def @main(%x: Tensor[(7, 2, 3), float32], %w: Tensor[(1, 15, 3), float32], %r: Tensor[(1, 15, 5), float32],\n"
      "    %b: Tensor[(1, 30), float32], %l: Tensor[(2), int32], %h: Tensor[(1, 2, 5), float32]) {\n"
      "  nn.gru(%x, %w, %r, %b, %l, %h) }");
  EXPECT_EQ(layer.operations, 2.0 * 7 * 2 * (15 * 3 + 15 * 5)) << "each step of each sequence multiplies all weights";
}

// Seconds saved by joining the outer call of @main's body and its first operand.
double saved(const std::string& text, const Machine& machine) {
  ops::register_all_ops();
  const IRModule module = relay::infer_type(relay::parse_module("#[version = \"0.0.5\"]\n" + text, "test"));
  const auto& call = *module->lookup("main").as<relay::FunctionNode>()->body.as<relay::CallNode>();
  return seconds_saved(*call.args[0].as<relay::CallNode>(), call, machine, 1);
}

// Memory of 1 GB/s decides, but for the convolution.
TEST(OpWork, SavingsOfAKernelOfTwoOps) {
  const Machine slow{.l2_gigabytes = 1, .l3_gigabytes = 1};
  const std::string main = "def @main(%x: Tensor[(10, 100), float32], %y: Tensor[(10, 100), float32]) ";
  EXPECT_DOUBLE_EQ(saved(main + "{ exp(exp(%x)) }", slow), 8e-6) << "4,000 bytes written and read";
  EXPECT_DOUBLE_EQ(saved(main + "{ add(exp(%x), %y) }", slow), 8e-6);
  EXPECT_DOUBLE_EQ(saved(main + "{ transpose(transpose(%x)) }", slow), 8e-6);
  EXPECT_DOUBLE_EQ(saved(main + "{ sum(exp(%x), axis=[1]) }", slow), 4.04e-6) << "all that the sum costs alone";
  for (const char* apart : {"{ exp(sum(%x, axis=[1])) }", "{ nn.dense(exp(%x), %y) }", "{ sum(transpose(%x)) }",
                            "{ exp(reshape(%x, newshape=[1000])) }", "{ reshape(exp(%x), newshape=[1000]) }",
                            "{ transpose(nn.dense(%x, %y)) }", "{ exp(cumsum(%x)) }"})
    EXPECT_EQ(saved(main + apart, slow), 0) << apart;
  const std::string conv =
      "def @main(%x: Tensor[(1, 64, 28, 28), float32], %w: Tensor[(64, 64, 3, 3), float32]) {\n"
      "  nn.relu(nn.conv2d(%x, %w, padding=[1, 1], channels=64, kernel_size=[3, 3])) }";
  // Outside of the L2 cache a byte written counts twice.
  const double relu_alone = 3.0 * 64 * 28 * 28 * 4 / (Machine().l3_gigabytes * 1e9);
  EXPECT_NEAR(saved(conv, Machine()), relu_alone, 1e-6) << "all but its arithmetic";
}

// Memory takes no time, but where weights come from it.
TEST(OpWork, KernelsReachSharesOfTheMachine) {
  constexpr Machine kFast{.l2_gigabytes = 1e9, .l3_gigabytes = 1e9, .dram_gigabytes = 10};
  const double peak = peak_gigaops(kFast, DataType::float_(32)) * 1e9;
  ops::register_all_ops();
  const auto native = [&](const Expr& call) {
    const Expr typed = relay::infer_type(call);
    return native_seconds(*typed.as<relay::CallNode>(), kFast, 1);
  };
  const auto conv = [&](int64_t groups, int64_t stride) {
    const IRModule module = relay::infer_type(relay::parse_module(
        fmt::format("#[version = \"0.0.5\"]\n"
                    "def @main(%x: Tensor[(1, 64, 28, 28), float32], %w: Tensor[(64, {}, 3, 3), float32]) {{\n"
                    "  nn.conv2d(%x, %w, padding=[1, 1], groups={}, strides=[{}, {}], channels=64,"
                    " kernel_size=[3, 3]) }}",
                    64 / groups, groups, stride, stride),
        "test"));
    return native(module->lookup("main").as<relay::FunctionNode>()->body);
  };
  EXPECT_DOUBLE_EQ(conv(1, 1), 2.0 * 64 * 28 * 28 * 64 * 9 / peak / kFast.network_conv_share);
  EXPECT_DOUBLE_EQ(conv(64, 1), 2.0 * 64 * 28 * 28 * 9 / peak / kFast.depthwise_share);
  EXPECT_DOUBLE_EQ(conv(64, 2), 2.0 * 64 * 14 * 14 * 9 / peak / kFast.strided_depthwise_share);
  const auto dense = [&](int64_t rows, int64_t outputs) {
    const IRModule module = relay::infer_type(relay::parse_module(
        fmt::format("#[version = \"0.0.5\"]\n"
                    "def @main(%x: Tensor[({}, 256), float32], %w: Tensor[({}, 256), float32]) {{ nn.dense(%x, %w) }}",
                    rows, outputs),
        "test"));
    const auto& call = *module->lookup("main").as<relay::FunctionNode>()->body.as<relay::CallNode>();
    const Expr weights = relay::make_constant(NDArray::zeros({outputs, 256}, DataType::float_(32)));
    return native(relay::make_call(call.op, {call.args[0], weights}, call.attrs));
  };
  EXPECT_DOUBLE_EQ(dense(1, 1000), 4.0 * 1000 * 256 / (10e9 * kFast.weights_share)) << "the L2 cache has 256 KB";
  EXPECT_DOUBLE_EQ(dense(1, 200), 2.0 * 200 * 256 / peak) << "weights that it keeps";
  EXPECT_DOUBLE_EQ(dense(1000, 1000), 2.0 * 1000 * 1000 * 256 / peak) << "arithmetic takes longer";
}

TEST(OpWork, TheOpsOfACompositeFunctionAreJoined) {
  const Machine slow{.l2_gigabytes = 1, .l3_gigabytes = 1};
  ops::register_all_ops();
  const auto native = [&](const std::string& body) {
    const std::string text =
        "def @main(%x: Tensor[(10, 100), float32]) {\n"
        "  %0 = fn (%p: Tensor[(10, 100), float32], Composite=\"a.b\") {" +
        body + "};\n  %0(%x) }";
    const IRModule module = relay::infer_type(relay::parse_module("#[version = \"0.0.5\"]\n" + text, "test"));
    return native_seconds(*module->lookup("main").as<relay::FunctionNode>()->body.as<relay::CallNode>(), slow, 1);
  };
  EXPECT_DOUBLE_EQ(native("exp(tanh(exp(%p)))"), 8e-6);
  EXPECT_DOUBLE_EQ(native("add(cumsum(%p, axis=0), exp(%p))"), 8e-6 + 8e-6 + 12e-6 - 8e-6)
      << "the second operand's kernel";
  EXPECT_DOUBLE_EQ(native("%1 = exp(%p); add(tanh(%1), %1)"), 8e-6 + 8e-6 + 12e-6 - 8e-6) << "one value has two uses";
}

}  // namespace
}  // namespace headrace::cost
