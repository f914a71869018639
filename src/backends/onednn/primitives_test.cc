#include "backends/onednn/primitives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace headrace_onednn {
namespace {

using dnnl::primitive;

constexpr float kLowest = std::numeric_limits<float>::lowest();

// Elements that repeat only after 1,009 of them.
std::vector<float> numbers(const Dims& dims, int64_t seed) {
  std::vector<float> elements(static_cast<size_t>(num_elements(dims)));
  for (size_t i = 0; i < elements.size(); ++i)
    elements[i] = static_cast<float>((static_cast<int64_t>(i) * 37 + seed * 11) % 1009) / 100.0F - 5.0F;
  return elements;
}

// Runs a network, and returns its outputs. Each input must have the elements of its tensor.
std::vector<std::vector<float>> run(Primitives& made, const Network& network, std::vector<std::vector<float>> inputs) {
  std::vector<std::vector<float>> outputs;
  for (const int32_t output : network.outputs)
    outputs.emplace_back(static_cast<size_t>(num_elements(network.tensors[static_cast<size_t>(output)].dims)), -1e9F);
  std::vector<DLTensor> tensors;
  for (auto* list : {&inputs, &outputs}) {
    for (std::vector<float>& elements : *list) tensors.emplace_back().data = elements.data();
  }
  std::vector<DLTensor*> args;
  for (DLTensor& tensor : tensors) args.push_back(&tensor);
  made.run(args.data());
  return outputs;
}

// A pool with the same kernel, step and padding on all axes.
struct PoolCase {
  Dims dims;
  int64_t kernel = 2, stride = 2, padding = 0;
  Algorithm algorithm = Algorithm::pool_max;
};

Network pool_network(const PoolCase& one) {
  Network network{.name = "pool"};
  network.inputs = {network.add_tensor(one.dims)};
  Dims result{one.dims[0], one.dims[1]}, sizes;
  for (size_t i = 2; i < one.dims.size(); ++i)
    result.push_back((one.dims[i] + 2 * one.padding - one.kernel) / one.stride + 1);
  for (const int64_t size : {one.kernel, one.stride, int64_t{1}, one.padding, one.padding})
    sizes.insert(sizes.end(), one.dims.size() - 2, size);
  network.outputs = {network.add_tensor(result)};
  network.ops = {{.kind = OpKind::pool, .algorithm = one.algorithm, .inputs = {0}, .output = 1, .sizes = sizes}};
  return network;
}

// Pools one window, whose elements are those of `plane` at the offset in each axis.
float pool_window(const PoolCase& one, const float* plane, const Dims& begin) {
  const Dims spatial(one.dims.begin() + 2, one.dims.end());
  float most = kLowest;
  double sum = 0;
  int64_t size = 1, inside = 0;
  for (size_t i = 0; i < spatial.size(); ++i) size *= one.kernel;
  for (int64_t at = 0; at < size; ++at) {
    int64_t rest = at, offset = 0, scale = 1;
    bool is_inside = true;
    for (size_t axis = spatial.size(); axis-- > 0; rest /= one.kernel) {
      const int64_t position = begin[axis] + rest % one.kernel;
      is_inside = is_inside && position >= 0 && position < spatial[axis];
      offset += position * scale;
      scale *= spatial[axis];
    }
    if (!is_inside) continue;
    most = std::max(most, plane[offset]);
    sum += plane[offset];
    ++inside;
  }
  if (one.algorithm == Algorithm::pool_max) return most;
  return static_cast<float>(sum / static_cast<double>(one.algorithm == Algorithm::pool_average ? inside : size));
}

std::vector<float> pooled(const PoolCase& one, const Dims& result, const std::vector<float>& input) {
  std::vector<float> output;
  int64_t plane = 1, windows = 1;
  for (size_t i = 2; i < result.size(); ++i) {
    plane *= one.dims[i];
    windows *= result[i];
  }
  for (int64_t channel = 0; channel < result[0] * result[1]; ++channel) {
    for (int64_t window = 0; window < windows; ++window) {
      Dims begin(result.size() - 2);
      int64_t rest = window;
      for (size_t axis = begin.size(); axis-- > 0; rest /= result[axis + 2])
        begin[axis] = rest % result[axis + 2] * one.stride - one.padding;
      output.push_back(pool_window(one, input.data() + channel * plane, begin));
    }
  }
  return output;
}

void expect_pooled(const PoolCase& one, bool is_generated) {
  SCOPED_TRACE(testing::PrintToString(one.dims) + " " + std::to_string(static_cast<int>(one.algorithm)));
  const auto network = std::make_shared<const Network>(pool_network(one));
  Arenas arenas;
  Primitives made(network, 1, arenas);
  const std::vector<float> input = numbers(one.dims, 1);
  const std::vector<float> output = run(made, *network, {input})[0];
  EXPECT_THAT(output, testing::Pointwise(testing::FloatNear(1e-5F), pooled(one, network->tensors[1].dims, input)));
#ifdef __x86_64__  // where oneDNN generates pools in blocks of channels for every processor
  for (const Primitives::StepInfo& step : made.steps()) {
    if (step.kind != primitive::kind::pooling_v2) continue;
    EXPECT_EQ(step.implementation.substr(0, 3) == "jit", is_generated) << step.implementation;
  }
#endif
}

TEST(Primitives, PoolsOfRowMajorInputsTakeGeneratedCode) {
  for (const Algorithm algorithm : {Algorithm::pool_max, Algorithm::pool_average, Algorithm::pool_average_padded}) {
    expect_pooled({.dims = {1, 64, 15, 15}, .kernel = 3, .algorithm = algorithm}, true);
    expect_pooled({.dims = {2, 3, 17, 19}, .kernel = 3, .padding = 1, .algorithm = algorithm}, true);
    expect_pooled({.dims = {1, 20, 5, 5}, .kernel = 5, .stride = 1, .algorithm = algorithm}, true);
    expect_pooled({.dims = {3, 24, 33}, .kernel = 3, .stride = 1, .padding = 1, .algorithm = algorithm}, true);
    expect_pooled({.dims = {2, 5, 6, 8, 4}, .algorithm = algorithm}, true);
  }
}

TEST(Primitives, TheResultOfAConvertedPoolIsReadInEveryForm) {
  // A pool, and the greater of its result and its average over all positions; both are outputs.
  Network network = pool_network({.dims = {1, 12, 8, 8}});
  const int32_t average = network.add_tensor({1, 12, 1, 1}), greater = network.add_tensor({1, 12, 4, 4});
  network.ops.push_back({.kind = OpKind::pool,
                         .algorithm = Algorithm::pool_average,
                         .inputs = {1},
                         .output = average,
                         .sizes = {4, 4, 1, 1, 1, 1, 0, 0, 0, 0}});
  network.ops.push_back(
      {.kind = OpKind::binary, .algorithm = Algorithm::maximum, .inputs = {1, average}, .output = greater});
  network.outputs = {greater, 1};
  const auto shared = std::make_shared<const Network>(network);
  Arenas arenas;
  Primitives made(shared, 1, arenas);
  const std::vector<float> input = numbers({1, 12, 8, 8}, 3);
  const auto outputs = run(made, network, {input});
  const std::vector<float> small = pooled({.dims = {1, 12, 8, 8}}, {1, 12, 4, 4}, input);
  EXPECT_EQ(outputs[1], small);
  for (size_t i = 0; i < small.size(); ++i) {
    double sum = 0;
    for (size_t k = 0; k < 16; ++k) sum += small[i / 16 * 16 + k];
    EXPECT_NEAR(outputs[0][i], std::max(small[i], static_cast<float>(sum / 16)), 1e-5);
  }
}

}  // namespace
}  // namespace headrace_onednn
