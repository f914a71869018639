// Networks whose sizes do not fit each other are refused when their bytes are read.
#include "backends/onednn/network.h"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>

namespace headrace_onednn {
namespace {

Network network_of(OpKind kind, const std::vector<Dims>& inputs, const Dims& result, Dims sizes,
                   std::vector<float> numbers = {}) {
  Network network{.name = "f"};
  Op op{.kind = kind, .sizes = std::move(sizes), .numbers = std::move(numbers)};
  for (const Dims& dims : inputs) op.inputs.push_back(network.add_tensor(dims));
  network.inputs = op.inputs;
  op.output = network.add_tensor(result);
  network.outputs = {op.output};
  network.ops.push_back(std::move(op));
  return network;
}

bool is_read(const Network& network) {
  const Blob blob = save({network});
  try {
    return load(blob.bytes.data(), blob.bytes.size(), {}).size() == 1;
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("damaged"), std::string::npos) << error.what();
    return false;
  }
}

TEST(Network, ConvolutionsHaveWeightsOfTheirRank) {
  const Dims sizes{2, 1, 1, 1, 1, 0, 0, 0, 0}, x{1, 4, 3, 3};
  EXPECT_TRUE(is_read(network_of(OpKind::convolution, {x, {2, 2, 1, 1}}, {1, 2, 3, 3}, sizes)));
  EXPECT_FALSE(is_read(network_of(OpKind::convolution, {x, {}}, {1, 2, 3, 3}, sizes)));
  EXPECT_FALSE(is_read(network_of(OpKind::convolution, {x, {2, 2, 1}}, {1, 2, 3, 3}, sizes)));
  EXPECT_FALSE(is_read(network_of(OpKind::convolution, {x, {3, 2, 1, 1}}, {1, 3, 3, 3}, sizes))) << "3 in 2 groups";
}

TEST(Network, LayerNormsHaveAScaleAndAShiftForEachElementOfTheAxis) {
  const auto with = [](const Dims& scale, const Dims& shift, const Dims& result = {2, 8}) {
    return is_read(network_of(OpKind::layer_norm, {{2, 8}, scale, shift}, result, {}, {1e-5F}));
  };
  EXPECT_TRUE(with({8}, {8}));
  EXPECT_FALSE(with({1}, {8}));
  EXPECT_FALSE(with({8}, {1}));
  EXPECT_FALSE(with({8}, {8}, {2, 9}));
}

TEST(Network, OpsThatKeepTheSizesHaveAResultOfThem) {
  const auto eltwise = [](const Dims& result) {
    return is_read(network_of(OpKind::eltwise, {{2, 8}}, result, {}, {0, 0}));
  };
  EXPECT_TRUE(eltwise({2, 8}));
  EXPECT_FALSE(eltwise({2, 9}));
  EXPECT_FALSE(is_read(network_of(OpKind::softmax, {{2, 8}}, {9, 8}, {1})));
  EXPECT_FALSE(is_read(network_of(OpKind::binary, {{2, 8}, {2, 8}}, {2, 9}, {})));
  EXPECT_TRUE(is_read(network_of(OpKind::transpose, {{2, 8}}, {8, 2}, {1, 0})));
  EXPECT_FALSE(is_read(network_of(OpKind::transpose, {{2, 8}}, {8, 3}, {1, 0})));
  EXPECT_FALSE(is_read(network_of(OpKind::matmul, {{8}, {8}}, {8}, {0, 0})));
}

}  // namespace
}  // namespace headrace_onednn
