// The layers that the networks of the zoo are made of, and the parts of networks that detectors reuse.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "kit/model_zoo.h"
#include "kit/onnx_writer.h"
#include "kit/random.h"

namespace headrace::kit::zoo {

// A feature map on its way through the network.
struct Map {
  std::string name;
  int64_t channels = 0;
};

struct ConvSpec {
  int64_t channels;  // channels of the output
  std::array<int64_t, 2> kernel = {1, 1};
  int64_t stride = 1;
  std::array<int64_t, 2> padding = {0, 0};
  int64_t groups = 1;
  int64_t dilation = 1;
  // Variance of the output relative to the input's mean square: 2 when a ReLU follows, 1 when nothing does.
  float gain = 2;
};

inline ConvSpec square(int64_t channels, int64_t kernel, int64_t stride, int64_t padding) {
  return {.channels = channels, .kernel = {kernel, kernel}, .stride = stride, .padding = {padding, padding}};
}

// A depthwise 3x3 convolution.
inline ConvSpec depthwise(int64_t channels, int64_t stride) {
  ConvSpec spec = square(channels, 3, stride, 1);
  spec.groups = channels;
  return spec;
}

class Net {
 public:
  explicit Net(const ZooOptions& options, std::string_view name) : random_(options.seed), graph_(name) {}

  Map input(const std::vector<DimSpec>& dims) {
    return {graph_.input("x", onnx::ElementType::kFloat, dims), std::get<int64_t>(dims.at(1))};
  }

  // Adds an input of int64, as the ids of tokens.
  std::string input(std::string_view name, const std::vector<DimSpec>& dims) {
    return graph_.input(name, onnx::ElementType::kInt64, dims);
  }

  Map conv(const Map& x, const ConvSpec& spec, bool has_bias) {
    int64_t fan_in = x.channels / spec.groups * spec.kernel[0] * spec.kernel[1];
    std::vector<std::string> inputs = {
        x.name, weight({spec.channels, x.channels / spec.groups, spec.kernel[0], spec.kernel[1]}, 0,
                       deviation(spec.gain, fan_in))};
    if (has_bias) inputs.push_back(weight({spec.channels}, 0, 0.05F));
    auto [pad_h, pad_w] = spec.padding;
    return {graph_.node("Conv", inputs,
                        {{"kernel_shape", std::vector<int64_t>{spec.kernel[0], spec.kernel[1]}},
                         {"strides", std::vector<int64_t>{spec.stride, spec.stride}},
                         {"pads", std::vector<int64_t>{pad_h, pad_w, pad_h, pad_w}},
                         {"dilations", std::vector<int64_t>{spec.dilation, spec.dilation}},
                         {"group", spec.groups}}),
            spec.channels};
  }

  // Statistics near the identity; `scale` damps the branch that a residual block adds, or the sums would grow.
  Map batch_norm(const Map& x, float epsilon = 1e-5F, float scale = 1) {
    std::vector<int64_t> dims = {x.channels};
    std::vector<std::string> inputs = {x.name, weight(dims, scale, 0.1F * scale), weight(dims, 0, 0.1F),
                                       weight(dims, 0, 0.1F), variance(x.channels)};
    return {graph_.node("BatchNormalization", inputs, {{"epsilon", epsilon}}), x.channels};
  }

  Map relu(const Map& x) { return {graph_.node("Relu", {x.name}), x.channels}; }

  Map relu6(const Map& x) {
    if (zero_.empty()) {
      zero_ = graph_.initializer("zero", {}, std::array{0.0F});
      six_ = graph_.initializer("six", {}, std::array{6.0F});
    }
    return {graph_.node("Clip", {x.name, zero_, six_}), x.channels};
  }

  Map add(const Map& a, const Map& b) { return {graph_.node("Add", {a.name, b.name}), a.channels}; }

  Map pool(const Map& x, const char* op, int64_t kernel, int64_t stride, int64_t padding, int64_t ceil_mode = 0) {
    std::vector<AttributeSpec> attributes = {{"kernel_shape", std::vector<int64_t>{kernel, kernel}},
                                             {"strides", std::vector<int64_t>{stride, stride}},
                                             {"pads", std::vector<int64_t>(4, padding)},
                                             {"ceil_mode", ceil_mode}};
    if (std::string_view(op) == "AveragePool") attributes.emplace_back("count_include_pad", 1);
    return {graph_.node(op, {x.name}, attributes), x.channels};
  }

  Map concat(const std::vector<Map>& maps) {
    std::vector<std::string> inputs;
    int64_t channels = 0;
    for (const Map& map : maps) {
      inputs.push_back(map.name);
      channels += map.channels;
    }
    return {graph_.node("Concat", inputs, {{"axis", 1}}), channels};
  }

  Map global_pool(const Map& x) { return {graph_.node("GlobalAveragePool", {x.name}), x.channels}; }

  // f32[N,C,H,W] -> f32[N,C*H*W].
  Map flatten(const Map& x, int64_t height = 1, int64_t width = 1) {
    return {graph_.node("Flatten", {x.name}, {{"axis", 1}}), x.channels * height * width};
  }

  Map dense(const Map& x, int64_t features, float gain = 2) {
    std::vector<std::string> inputs = {x.name, weight({features, x.channels}, 0, deviation(gain, x.channels)),
                                       weight({features}, 0, 0.05F)};
    return {graph_.node("Gemm", inputs, {{"alpha", 1.0F}, {"beta", 1.0F}, {"transB", 1}}), features};
  }

  // Applies a dense layer to the last axis, which has x.channels elements, as torch's exporter writes it for tensors of
  // more than two axes.
  Map linear(const Map& x, int64_t features, float gain) {
    const std::string product =
        graph_.node("MatMul", {x.name, weight({x.channels, features}, 0, deviation(gain, x.channels))});
    return {graph_.node("Add", {weight({features}, 0, 0.05F), product}), features};
  }

  // Normalizes the last axis.
  Map layer_norm(const Map& x, float epsilon) {
    const std::vector<int64_t> dims = {x.channels};
    std::vector<std::string> inputs = {x.name, weight(dims, 1, 0.1F), weight(dims, 0, 0.1F)};
    return {graph_.node("LayerNormalization", inputs, {{"axis", -1}, {"epsilon", epsilon}}), x.channels};
  }

  Map softmax(const Map& x) { return {graph_.node("Softmax", {x.name}, {{"axis", 1}}), x.channels}; }

  std::string node(const char* op, const std::vector<std::string>& inputs,
                   const std::vector<AttributeSpec>& attributes = {}) {
    return graph_.node(op, inputs, attributes);
  }

  // Splits an axis into parts of `size` elements and returns their names.
  std::vector<std::string> split(const std::string& x, int64_t axis, int64_t parts, int64_t size) {
    std::vector<std::string> outputs;
    for (int64_t part = 0; part < parts; ++part) outputs.push_back(fmt::format("{}_part{}", x, part));
    const std::string sizes = constant<int64_t>({parts}, std::vector<int64_t>(static_cast<size_t>(parts), size));
    graph_.node_with_outputs("Split", {x, sizes}, outputs, {{"axis", axis}});
    return outputs;
  }

  // Adds a tensor of random weights around `mean`; tests count the tensors whose names begin with "w".
  std::string weight(const std::vector<int64_t>& dims, float mean, float deviation) {
    int64_t count = 1;
    for (int64_t dim : dims) count *= dim;
    std::vector<float> values(static_cast<size_t>(count));
    random_.fill(values, mean, deviation);
    return graph_.initializer(fmt::format("w{}", next_weight_++), dims, values);
  }

  // Returns the deviation of weights for sums of `fan_in` products (ConvSpec::gain).
  static float deviation(float gain, int64_t fan_in) { return std::sqrt(gain / static_cast<float>(fan_in)); }

  std::string bool_constant(const std::vector<int64_t>& dims, const std::vector<uint8_t>& values) {
    return graph_.initializer(fmt::format("c{}", next_constant_++), onnx::ElementType::kBool, dims,
                              std::as_bytes(std::span(values)));
  }

  template <typename T>
  std::string constant(const std::vector<int64_t>& dims, const std::vector<T>& values) {
    return graph_.initializer(fmt::format("c{}", next_constant_++), dims, std::span<const T>(values));
  }

  // Adds an output of the model that holds `value`.
  void output(std::string_view name, const std::string& value, onnx::ElementType type,
              const std::vector<DimSpec>& dims) {
    graph_.node("Identity", {value}, {}, std::string(name));
    graph_.output(name, type, dims);
  }

  // Encodes the model with a version of ONNX's operators; `ir_version` is the one that came with it.
  std::string finish(int64_t opset = 13, int64_t ir_version = 7) && {
    return encode_model(std::move(graph_).finish(), {{"", opset}}, ir_version);
  }

 private:
  std::string variance(int64_t channels) {
    std::vector<float> values(static_cast<size_t>(channels));
    for (float& value : values) value = random_.uniform(0.8F, 1.25F);
    return graph_.initializer(fmt::format("w{}", next_weight_++), {channels}, values);
  }

  Random random_;
  GraphWriter graph_;
  std::string zero_;
  std::string six_;
  int next_weight_ = 0;
  int next_constant_ = 0;
};

struct Sizes {
  DimSpec batch;
  int64_t resolution;
  int64_t classes;
  // Sizes of a transformer, whose heads are 64 wide.
  int64_t sequence = 0;
  int64_t vocabulary = 0;
  int64_t layers = 0;
  int64_t heads = 0;
};

// The input: f32[N,3,H,W].
inline Map picture(Net& net, const Sizes& sizes) {
  return net.input({sizes.batch, int64_t{3}, sizes.resolution, sizes.resolution});
}

// Applies 3x3 convolutions with bias, each with its ReLU.
Map vgg_convs(Net& net, Map x, int64_t channels, int count);

// Applies the 7x7 convolution and the pool in front of the blocks of a ResNet.
Map resnet_stem(Net& net, const Map& x);

// Applies the block of ResNet-50 with `stride` on its 3x3 convolution (the variant called v1.5); the result has four
// times `channels`.
Map bottleneck_block(Net& net, const Map& x, int64_t channels, int64_t stride);

struct MobilenetMaps {
  Map expanded;  // 576 channels at stride 16: inside the first block of stride 32
  Map last;      // 1280 channels at stride 32
};

// Applies MobileNetV2 up to its last convolution.
MobilenetMaps mobilenet_v2_maps(Net& net, const Map& picture);

}  // namespace headrace::kit::zoo
