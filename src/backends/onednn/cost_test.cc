// The modelled time of concats, whose operands are mostly made in the memory of the result.
#include "backends/onednn/cost.h"

#include <gtest/gtest.h>

namespace headrace_onednn {
namespace {

hr_machine machine() {
  hr_machine machine{};
  HR_FILL_ABI(hr_machine, &machine);
  machine.operations_per_second = 1e11;
  machine.l2_bytes = 1 << 20;
  machine.l3_bytes = 32 << 20;
  machine.l2_rate = 9e10;
  machine.l3_rate = 4.5e10;
  machine.memory_rate = machine.all_memory_rate = 1.5e10;
  machine.fork_seconds = 5e-6;
  return machine;
}

Network concat(const std::vector<Dims>& operands, const Dims& result, int64_t axis) {
  Network network{.name = "f"};
  Op op{.kind = OpKind::concat, .sizes = {axis}};
  for (const Dims& dims : operands) op.inputs.push_back(network.add_tensor(dims));
  network.inputs = op.inputs;
  op.output = network.add_tensor(result);
  network.outputs = {op.output};
  network.ops.push_back(std::move(op));
  return network;
}

TEST(Cost, OperandsThatLieOneAfterAnotherCostNothing) {
  EXPECT_EQ(network_seconds(concat({{1, 64, 8, 8}, {1, 32, 8, 8}}, {1, 96, 8, 8}, 1), machine(), 1), 0);
  EXPECT_EQ(network_seconds(concat({{1, 64, 8, 8}, {1, 32, 8, 8}}, {1, 96, 8, 8}, 1), machine(), 2), 0);
  EXPECT_EQ(network_seconds(concat({{2, 3}, {4, 3}}, {6, 3}, 0), machine(), 1), 0);
}

// Half a microsecond for the call, and 0.45 of 90 GB/s for two passes: 49,152 bytes take 1.2136 us.
TEST(Cost, OperandsOfSeveralImagesAreCopied) {
  const double seconds = network_seconds(concat({{2, 32, 8, 8}, {2, 16, 8, 8}}, {2, 48, 8, 8}, 1), machine(), 1);
  EXPECT_NEAR(seconds, 0.5e-6 + 1.2136e-6, 1e-10);
  const double by_two = network_seconds(concat({{2, 32, 8, 8}, {2, 16, 8, 8}}, {2, 48, 8, 8}, 1), machine(), 2);
  EXPECT_NEAR(by_two, 0.5e-6 + 5e-6 + 1.2136e-6 / 2, 1e-10);
}

// 4,096 bytes of the constant, and 8,192 of the operand that is there a second time.
TEST(Cost, ConstantsAndSecondUsesAreCopied) {
  Network constant = concat({{1, 32, 8, 8}, {1, 16, 8, 8}}, {1, 48, 8, 8}, 1);
  constant.tensors[1].constant = 0;
  EXPECT_NEAR(network_seconds(constant, machine(), 1), 0.5e-6 + 2 * 4096 / (0.45 * 9e10), 1e-10);
  Network twice = concat({{1, 32, 8, 8}, {1, 32, 8, 8}}, {1, 64, 8, 8}, 1);
  twice.ops[0].inputs[1] = twice.ops[0].inputs[0];
  EXPECT_NEAR(network_seconds(twice, machine(), 1), 0.5e-6 + 2 * 8192 / (0.45 * 9e10), 1e-10);
}

}  // namespace
}  // namespace headrace_onednn
