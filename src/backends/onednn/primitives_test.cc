#include "backends/onednn/primitives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <limits>
#include <random>

#include "backends/onednn/fuse.h"

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

void expect_pooled(const PoolCase& one, [[maybe_unused]] bool is_generated) {
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

// Steps of a kind.
size_t count(const Primitives& made, primitive::kind kind) {
  size_t found = 0;
  for (const Primitives::StepInfo& step : made.steps()) found += step.kind == kind ? 1 : 0;
  return found;
}

// Networks in which every op has one input, or is a sum or a concat along the channels, and what they compute.
struct Maker {
  Network network{.name = "made"};
  std::vector<std::vector<float>> constants;
  std::vector<std::vector<float>> values;  // per tensor

  const Dims& dims_of(int32_t tensor) const { return network.tensors[static_cast<size_t>(tensor)].dims; }
  const std::vector<float>& value_of(int32_t tensor) const { return values[static_cast<size_t>(tensor)]; }

  int32_t add(const Dims& dims, std::vector<float> elements) {
    values.push_back(std::move(elements));
    return network.add_tensor(dims);
  }

  int32_t input(const Dims& dims) {
    const int32_t tensor = add(dims, numbers(dims, static_cast<int64_t>(network.tensors.size())));
    network.inputs.push_back(tensor);
    return tensor;
  }

  int32_t constant(const Dims& dims, std::vector<float> elements) {
    const int32_t tensor = add(dims, elements);
    network.tensors.back().constant = static_cast<int32_t>(constants.size());
    constants.push_back(std::move(elements));
    return tensor;
  }

  int32_t abs(int32_t input) {
    std::vector<float> elements = value_of(input);
    for (float& element : elements) element = std::abs(element);
    const int32_t result = add(dims_of(input), std::move(elements));
    network.ops.push_back(
        {.kind = OpKind::eltwise, .algorithm = Algorithm::abs, .inputs = {input}, .output = result, .numbers = {0, 0}});
    return result;
  }

  // Half of each channel plus half of channel 0, and a summand if there is one; -1: none.
  int32_t convolution(int32_t input, int32_t summand = -1) {
    const Dims dims = dims_of(input);
    const int64_t channels = dims[1], plane = dims[2] * dims[3];
    std::vector<float> weights(static_cast<size_t>(channels * channels), 0);
    for (int64_t i = 0; i < channels; ++i) {
      weights[static_cast<size_t>(i * channels + i)] += 0.5F;
      weights[static_cast<size_t>(i * channels)] += 0.5F;
    }
    const int32_t kernel = constant({channels, channels, 1, 1}, std::move(weights));
    const std::vector<float>& from = value_of(input);
    std::vector<float> elements(from.size());
    for (size_t i = 0; i < elements.size(); ++i) {
      const auto at = static_cast<int64_t>(i), image = channels * plane;
      elements[i] = from[i] / 2 + from[static_cast<size_t>(at / image * image + at % plane)] / 2;
      if (summand >= 0) elements[i] += value_of(summand)[i];
    }
    const int32_t result = add(dims, std::move(elements));
    Op op{
        .kind = OpKind::convolution, .inputs = {input, kernel}, .output = result, .sizes = {1, 1, 1, 1, 1, 0, 0, 0, 0}};
    if (summand >= 0) op.post.push_back({.kind = PostKind::sum, .tensor = summand});
    network.ops.push_back(std::move(op));
    return result;
  }

  int32_t concat(const std::vector<int32_t>& inputs, size_t axis = 1) {
    Dims dims = dims_of(inputs[0]);
    dims[axis] = 0;
    for (const int32_t input : inputs) dims[axis] += dims_of(input)[axis];
    int64_t outer = 1;
    for (size_t i = 0; i < axis; ++i) outer *= dims[i];
    std::vector<float> elements;
    for (int64_t i = 0; i < outer; ++i) {
      for (const int32_t input : inputs) {
        const std::vector<float>& from = value_of(input);
        const int64_t piece = static_cast<int64_t>(from.size()) / outer;
        elements.insert(elements.end(), from.begin() + i * piece, from.begin() + (i + 1) * piece);
      }
    }
    const int32_t result = add(dims, std::move(elements));
    network.ops.push_back(
        {.kind = OpKind::concat, .inputs = inputs, .output = result, .sizes = {static_cast<int64_t>(axis)}});
    return result;
  }

  // Runs the network twice, and returns its steps.
  std::unique_ptr<Primitives> expect_right(std::vector<int32_t> outputs) {
    network.outputs = std::move(outputs);
    network.constants.clear();
    for (const std::vector<float>& elements : constants)
      network.constants.push_back({.data = elements.data(), .size = static_cast<int64_t>(elements.size())});
    auto made = std::make_unique<Primitives>(std::make_shared<const Network>(network), 1, arenas_);
    std::vector<std::vector<float>> inputs;
    for (const int32_t input : network.inputs) inputs.push_back(value_of(input));
    for (int i = 0; i < 2; ++i) {
      const auto results = run(*made, network, inputs);
      for (size_t k = 0; k < results.size(); ++k)
        EXPECT_THAT(results[k], testing::Pointwise(testing::FloatNear(1e-3F), value_of(network.outputs[k]))) << k;
    }
    return made;
  }

 private:
  Arenas arenas_;
};

TEST(Primitives, OperandsOfAConcatAreMadeInItsMemory) {
  Maker maker;
  const int32_t x = maker.input({1, 8, 4, 4});
  const int32_t both = maker.concat({maker.abs(x), maker.abs(maker.abs(x))});
  const auto made = maker.expect_right({maker.abs(both)});
  EXPECT_EQ(made->steps().size(), 4u);
  EXPECT_EQ(count(*made, primitive::kind::eltwise), 4u);
}

TEST(Primitives, AConcatThatIsAnOutputIsMadeThere) {
  Maker maker;
  const int32_t x = maker.input({1, 8, 4, 4});
  const int32_t one = maker.abs(x), two = maker.abs(one);
  EXPECT_EQ(maker.expect_right({maker.concat({two, one})})->steps().size(), 2u);
  EXPECT_EQ(maker.expect_right({two + 1, one})->steps().size(), 3u) << "an operand that is an output is copied there";
}

TEST(Primitives, ConcatsOfConcatsCopyNothing) {
  Maker maker;
  int32_t all = maker.abs(maker.input({1, 8, 4, 4}));
  for (int i = 0; i < 5; ++i) all = maker.concat({all, maker.abs(all)});
  EXPECT_EQ(maker.expect_right({all})->steps().size(), 6u);
}

TEST(Primitives, WhatHasNoPlaceInAConcatIsCopied) {
  const auto num_copies = [](Maker& maker, const std::vector<int32_t>& outputs) {
    return count(*maker.expect_right(outputs), primitive::kind::reorder);
  };
  {
    Maker maker;  // an input, a constant and an operand that is there twice
    const int32_t x = maker.input({1, 8, 4, 4}), c = maker.constant({1, 8, 4, 4}, numbers({1, 8, 4, 4}, 5));
    const int32_t y = maker.abs(x);
    EXPECT_EQ(num_copies(maker, {maker.concat({x, y, c, y})}), 3u);
  }
  {
    Maker maker;  // an operand of two concats
    const int32_t x = maker.abs(maker.input({1, 8, 4, 4})), y = maker.abs(x);
    EXPECT_EQ(num_copies(maker, {maker.concat({x, y}), maker.concat({y, x})}), 2u);
  }
  {
    Maker maker;  // two images
    const int32_t x = maker.abs(maker.input({2, 8, 4, 4}));
    EXPECT_EQ(num_copies(maker, {maker.concat({x, maker.abs(x)})}), 2u);
  }
  {
    Maker maker;  // rows beside each other
    const int32_t x = maker.abs(maker.input({1, 2, 3, 8}));
    EXPECT_EQ(num_copies(maker, {maker.concat({x, maker.abs(x)}, 3)}), 2u);
  }
  {
    Maker maker;  // the second would begin where no vector may
    const int32_t x = maker.abs(maker.input({1, 3, 1, 3}));
    EXPECT_EQ(num_copies(maker, {maker.concat({x, maker.abs(x)})}), 1u);
  }
}

TEST(Primitives, ConcatsAlongEveryAxisAndOfEveryRankAreRight) {
  for (size_t rank = 1; rank <= 6; ++rank) {
    for (size_t axis = 0; axis < rank; ++axis) {
      const Dims dims(rank, 2);
      Maker maker;
      const int32_t x = maker.abs(maker.input(dims)), y = maker.input(dims);
      maker.expect_right({maker.concat({x, y, maker.abs(y)}, axis)});
    }
  }
}

TEST(Primitives, ASumInPlaceLeavesAConcatAsItIs) {
  Maker maker;
  const int32_t x = maker.convolution(maker.input({1, 8, 3, 3})), y = maker.convolution(x);
  const int32_t both = maker.concat({x, y});
  const int32_t sum = maker.convolution(y, x);  // the last use of x alone, but `both` is read later
  maker.expect_right({sum, maker.convolution(both)});
}

TEST(Primitives, RandomConcatsAndSumsAreRight) {
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto choose = [&](size_t count) { return static_cast<size_t>(random() % count); };
    Maker maker;
    const int64_t unit = seed % 3 == 0 ? 3 : 8;  // blocks of 8 channels, or of 3 that fill none
    std::vector<int32_t> tensors{maker.input({seed % 4 == 0 ? 2 : 1, unit, 2, 3})};
    const auto any = [&] { return tensors[choose(tensors.size())]; };
    while (tensors.size() < 14) {
      const int32_t x = any();
      std::vector<int32_t> operands{x};
      switch (choose(4)) {
        case 0:
          tensors.push_back(maker.abs(x));
          continue;
        case 1: {
          const int32_t other = any();
          const bool is_summand = maker.dims_of(other) == maker.dims_of(x);
          tensors.push_back(maker.convolution(x, is_summand ? other : -1));
          continue;
        }
        default:
          while (operands.size() < 2 + choose(2)) operands.push_back(any());
          if (maker.dims_of(x)[1] < 10 * unit) tensors.push_back(maker.concat(operands));
      }
    }
    maker.expect_right({tensors.back(), any()});
  }
}

// A product with a tensor that is broadcast to a convolution's result.
void expect_broadcast(const Dims& dims, const Dims& factors, [[maybe_unused]] bool is_generated = true) {
  SCOPED_TRACE(testing::PrintToString(factors));
  Maker maker;
  const int32_t x = maker.convolution(maker.input(dims)), factor = maker.constant(factors, numbers(factors, 7));
  std::vector<float> elements = maker.value_of(x);
  for (size_t i = 0; i < elements.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i), offset = 0, scale = 1;
    for (size_t axis = dims.size(); axis-- > 0; rest /= dims[axis]) {
      if (factors[axis] == 1) continue;
      offset += rest % dims[axis] * scale;
      scale *= factors[axis];
    }
    elements[i] *= maker.value_of(factor)[static_cast<size_t>(offset)];
  }
  const int32_t result = maker.add(dims, std::move(elements));
  maker.network.ops.push_back(
      {.kind = OpKind::binary, .algorithm = Algorithm::multiply, .inputs = {x, factor}, .output = result});
  const auto made = maker.expect_right({result, x});
#ifdef __x86_64__
  for (const Primitives::StepInfo& step : made->steps())
    EXPECT_TRUE(step.kind != primitive::kind::binary || step.implementation.substr(0, 3) == "jit" || !is_generated)
        << step.implementation;
#endif
}

TEST(Primitives, BroadcastsTakeGeneratedCode) {
  for (const int64_t channels : {16, 20}) {
    expect_broadcast({2, channels, 5, 6}, {1, channels, 1, 1});
    expect_broadcast({2, channels, 5, 6}, {1, 1, 1, 1});
    expect_broadcast({2, channels, 5, 6}, {2, channels, 1, 1});
    expect_broadcast({2, channels, 5, 6}, {1, 1, 5, 6});
    expect_broadcast({2, channels, 5, 6}, {2, 1, 1, 1}, false);
    expect_broadcast({2, channels, 5, 6}, {1, channels, 5, 6});
  }
}

TEST(Fuse, AConcatReadsAnEarlierOneThatItBeginsWith) {
  Maker maker;
  std::vector<int32_t> all{maker.input({1, 8, 4, 4})};
  all.push_back(maker.abs(all[0]));
  std::vector<int32_t> results;
  for (int i = 0; i < 3; ++i) {
    results.push_back(maker.concat(all));
    all.push_back(maker.abs(all.back()));
  }
  const int32_t other = maker.concat({all[1], all[0], all[2]});
  fuse(maker.network);
  EXPECT_EQ(maker.network.ops[1].inputs, (std::vector<int32_t>{all[0], all[1]}));
  EXPECT_EQ(maker.network.ops[3].inputs, (std::vector<int32_t>{results[0], all[2]}));
  EXPECT_EQ(maker.network.ops[5].inputs, (std::vector<int32_t>{results[1], all[3]}));
  EXPECT_EQ(maker.network.ops[7].inputs, (std::vector<int32_t>{all[1], all[0], all[2]}));
  const auto made = maker.expect_right({results[2], other});
  EXPECT_EQ(count(*made, primitive::kind::reorder), 1u + 3u) << "the input, and the operands of the other concat";
}

TEST(Network, ConcatsWhosePartsAreNotTheWholeAreRefused) {
  const std::vector<Dims> wrong = {{1, 15, 4, 4}, {1, 17, 4, 4}, {2, 16, 4, 4}, {1, 16, 16}};
  for (const Dims& dims : wrong) {
    Maker maker;
    const int32_t x = maker.input({1, 8, 4, 4});
    maker.network.outputs = {maker.concat({x, maker.abs(x)})};
    const std::string right = save({maker.network}).bytes;
    EXPECT_EQ(load(right.data(), right.size(), {}).size(), 1u);
    maker.network.tensors.back().dims = dims;
    const std::string bytes = save({maker.network}).bytes;
    EXPECT_THAT([&] { load(bytes.data(), bytes.size(), {}); },
                testing::ThrowsMessage<std::runtime_error>(testing::HasSubstr("its bytes are damaged")));
  }
}

// OpenMP's threads do not survive a fork, and a child that asks for them waits for ever.
TEST(UsableThreads, AForkedChildHasOne) {
  EXPECT_EQ(usable_threads(1), 1);
  EXPECT_EQ(usable_threads(2), 2);
  EXPECT_EQ(usable_threads(3), 3);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(usable_threads(2) == 1 && usable_threads(1) == 1 ? 0 : 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace headrace_onednn
