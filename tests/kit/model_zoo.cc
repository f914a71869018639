// The networks follow the papers' tables as torchvision implements them (without auxiliary heads).
#include "kit/model_zoo.h"

#include <array>
#include <cmath>

#include "base/error.h"
#include "kit/onnx_writer.h"
#include "kit/random.h"

namespace headrace::kit {

using onnx::ElementType;

namespace {

// A feature map on its way through the network.
struct Map {
  std::string name;
  int64_t channels;
};

struct ConvSpec {
  int64_t channels;  // of the output
  std::array<int64_t, 2> kernel = {1, 1};
  int64_t stride = 1;
  std::array<int64_t, 2> padding = {0, 0};
  int64_t groups = 1;
  // Variance of the output relative to the input's mean square: 2 when a ReLU follows, 1 when nothing does.
  float gain = 2;
};

ConvSpec square(int64_t channels, int64_t kernel, int64_t stride, int64_t padding) {
  return {.channels = channels, .kernel = {kernel, kernel}, .stride = stride, .padding = {padding, padding}};
}

class Net {
 public:
  explicit Net(const ZooOptions& options, std::string_view name) : random_(options.seed), graph_(name) {}

  Map input(const std::vector<DimSpec>& dims) {
    return {graph_.input("x", ElementType::kFloat, dims), std::get<int64_t>(dims.at(1))};
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
                         {"dilations", std::vector<int64_t>{1, 1}},
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

  Map softmax(const Map& x) { return {graph_.node("Softmax", {x.name}, {{"axis", 1}}), x.channels}; }

  std::string finish(const Map& y, const DimSpec& batch) && {
    graph_.node("Identity", {y.name}, {}, "y");
    graph_.output("y", ElementType::kFloat, {batch, y.channels});
    return encode_model(std::move(graph_).finish());
  }

 private:
  static float deviation(float gain, int64_t fan_in) { return std::sqrt(gain / static_cast<float>(fan_in)); }

  std::string weight(const std::vector<int64_t>& dims, float mean, float deviation) {
    int64_t count = 1;
    for (int64_t dim : dims) count *= dim;
    std::vector<float> values(static_cast<size_t>(count));
    random_.fill(values, mean, deviation);
    return graph_.initializer(fmt::format("w{}", next_weight_++), dims, values);
  }

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
};

struct Sizes {
  DimSpec batch;
  int64_t resolution;
  int64_t classes;
};

Map picture(Net& net, const Sizes& sizes) {
  return net.input({sizes.batch, int64_t{3}, sizes.resolution, sizes.resolution});
}

Map mlp(Net& net, const Sizes& sizes) {
  Map x = net.input({sizes.batch, int64_t{784}});
  x = net.relu(net.dense(x, 256));
  x = net.relu(net.dense(x, 128));
  return net.softmax(net.dense(x, sizes.classes, 1));
}

// Simonyan, Zisserman 2014, table 1, column D.
Map vgg16(Net& net, const Sizes& sizes) {
  Map x = picture(net, sizes);
  int64_t side = sizes.resolution;
  for (auto [channels, convs] : {std::pair{64, 2}, {128, 2}, {256, 3}, {512, 3}, {512, 3}}) {
    for (int i = 0; i < convs; ++i) x = net.relu(net.conv(x, square(channels, 3, 1, 1), true));
    x = net.pool(x, "MaxPool", 2, 2, 0);
    side /= 2;
  }
  x = net.flatten(x, side, side);
  x = net.relu(net.dense(x, 4096));
  x = net.relu(net.dense(x, 4096));
  return net.dense(x, sizes.classes, 1);
}

// He et al. 2015, figure 5 left; `stride` on the first convolution.
Map basic_block(Net& net, const Map& x, int64_t channels, int64_t stride) {
  Map y = net.relu(net.batch_norm(net.conv(x, square(channels, 3, stride, 1), false)));
  y = net.batch_norm(net.conv(y, square(channels, 3, 1, 1), false), 1e-5F, 0.3F);
  if (stride == 1 && x.channels == channels) return net.relu(net.add(y, x));
  ConvSpec shortcut = square(channels, 1, stride, 0);
  return net.relu(net.add(y, net.batch_norm(net.conv(x, shortcut, false))));
}

// Figure 5 right; `stride` on the 3x3 convolution (the variant called v1.5).
Map bottleneck_block(Net& net, const Map& x, int64_t channels, int64_t stride) {
  Map y = net.relu(net.batch_norm(net.conv(x, square(channels, 1, 1, 0), false)));
  y = net.relu(net.batch_norm(net.conv(y, square(channels, 3, stride, 1), false)));
  y = net.batch_norm(net.conv(y, square(4 * channels, 1, 1, 0), false), 1e-5F, 0.3F);
  if (stride == 1 && x.channels == 4 * channels) return net.relu(net.add(y, x));
  ConvSpec shortcut = square(4 * channels, 1, stride, 0);
  return net.relu(net.add(y, net.batch_norm(net.conv(x, shortcut, false))));
}

Map resnet(Net& net, const Sizes& sizes, const std::array<int, 4>& blocks, bool has_bottlenecks) {
  Map x = net.relu(net.batch_norm(net.conv(picture(net, sizes), square(64, 7, 2, 3), false)));
  x = net.pool(x, "MaxPool", 3, 2, 1);
  int64_t channels = 64;
  for (size_t stage = 0; stage < blocks.size(); ++stage, channels *= 2) {
    for (int block = 0; block < blocks[stage]; ++block) {
      int64_t stride = stage > 0 && block == 0 ? 2 : 1;
      x = has_bottlenecks ? bottleneck_block(net, x, channels, stride) : basic_block(net, x, channels, stride);
    }
  }
  return net.dense(net.flatten(net.global_pool(x)), sizes.classes, 1);
}

// Iandola et al. 2016, figure 2.
Map fire(Net& net, const Map& x, int64_t squeeze, int64_t expand) {
  Map s = net.relu(net.conv(x, square(squeeze, 1, 1, 0), true));
  Map left = net.relu(net.conv(s, square(expand, 1, 1, 0), true));
  Map right = net.relu(net.conv(s, square(expand, 3, 1, 1), true));
  return net.concat({left, right});
}

Map squeezenet1_1(Net& net, const Sizes& sizes) {
  Map x = net.relu(net.conv(picture(net, sizes), square(64, 3, 2, 0), true));
  x = net.pool(x, "MaxPool", 3, 2, 0, 1);
  x = fire(net, fire(net, x, 16, 64), 16, 64);
  x = net.pool(x, "MaxPool", 3, 2, 0, 1);
  x = fire(net, fire(net, x, 32, 128), 32, 128);
  x = net.pool(x, "MaxPool", 3, 2, 0, 1);
  x = fire(net, fire(net, x, 48, 192), 48, 192);
  x = fire(net, fire(net, x, 64, 256), 64, 256);
  x = net.relu(net.conv(x, square(sizes.classes, 1, 1, 0), true));
  return net.flatten(net.global_pool(x));
}

// Szegedy et al. 2015, the blocks named as torchvision names them.
Map basic_conv(Net& net, const Map& x, const ConvSpec& spec) {
  return net.relu(net.batch_norm(net.conv(x, spec, false), 1e-3F));
}

Map conv_1x7(Net& net, const Map& x, int64_t channels) {
  return basic_conv(net, x, {.channels = channels, .kernel = {1, 7}, .padding = {0, 3}});
}

Map conv_7x1(Net& net, const Map& x, int64_t channels) {
  return basic_conv(net, x, {.channels = channels, .kernel = {7, 1}, .padding = {3, 0}});
}

// 1x3 and 3x1 side by side.
Map split_3x3(Net& net, const Map& x, int64_t channels) {
  Map left = basic_conv(net, x, {.channels = channels, .kernel = {1, 3}, .padding = {0, 1}});
  Map right = basic_conv(net, x, {.channels = channels, .kernel = {3, 1}, .padding = {1, 0}});
  return net.concat({left, right});
}

Map inception_a(Net& net, const Map& x, int64_t pool_channels) {
  Map b1 = basic_conv(net, x, square(64, 1, 1, 0));
  Map b5 = basic_conv(net, basic_conv(net, x, square(48, 1, 1, 0)), square(64, 5, 1, 2));
  Map b3 = basic_conv(net, x, square(64, 1, 1, 0));
  b3 = basic_conv(net, basic_conv(net, b3, square(96, 3, 1, 1)), square(96, 3, 1, 1));
  Map pool = basic_conv(net, net.pool(x, "AveragePool", 3, 1, 1), square(pool_channels, 1, 1, 0));
  return net.concat({b1, b5, b3, pool});
}

Map inception_b(Net& net, const Map& x) {
  Map b3 = basic_conv(net, x, square(384, 3, 2, 0));
  Map dbl = basic_conv(net, basic_conv(net, x, square(64, 1, 1, 0)), square(96, 3, 1, 1));
  dbl = basic_conv(net, dbl, square(96, 3, 2, 0));
  return net.concat({b3, dbl, net.pool(x, "MaxPool", 3, 2, 0)});
}

Map inception_c(Net& net, const Map& x, int64_t c7) {
  Map b1 = basic_conv(net, x, square(192, 1, 1, 0));
  Map b7 = conv_7x1(net, conv_1x7(net, basic_conv(net, x, square(c7, 1, 1, 0)), c7), 192);
  Map dbl = conv_1x7(net, conv_7x1(net, basic_conv(net, x, square(c7, 1, 1, 0)), c7), c7);
  dbl = conv_1x7(net, conv_7x1(net, dbl, c7), 192);
  Map pool = basic_conv(net, net.pool(x, "AveragePool", 3, 1, 1), square(192, 1, 1, 0));
  return net.concat({b1, b7, dbl, pool});
}

Map inception_d(Net& net, const Map& x) {
  Map b3 = basic_conv(net, basic_conv(net, x, square(192, 1, 1, 0)), square(320, 3, 2, 0));
  Map b7 = conv_7x1(net, conv_1x7(net, basic_conv(net, x, square(192, 1, 1, 0)), 192), 192);
  b7 = basic_conv(net, b7, square(192, 3, 2, 0));
  return net.concat({b3, b7, net.pool(x, "MaxPool", 3, 2, 0)});
}

Map inception_e(Net& net, const Map& x) {
  Map b1 = basic_conv(net, x, square(320, 1, 1, 0));
  Map b3 = split_3x3(net, basic_conv(net, x, square(384, 1, 1, 0)), 384);
  Map dbl = basic_conv(net, basic_conv(net, x, square(448, 1, 1, 0)), square(384, 3, 1, 1));
  dbl = split_3x3(net, dbl, 384);
  Map pool = basic_conv(net, net.pool(x, "AveragePool", 3, 1, 1), square(192, 1, 1, 0));
  return net.concat({b1, b3, dbl, pool});
}

Map inception_v3(Net& net, const Sizes& sizes) {
  Map x = basic_conv(net, picture(net, sizes), square(32, 3, 2, 0));
  x = basic_conv(net, basic_conv(net, x, square(32, 3, 1, 0)), square(64, 3, 1, 1));
  x = net.pool(x, "MaxPool", 3, 2, 0);
  x = basic_conv(net, basic_conv(net, x, square(80, 1, 1, 0)), square(192, 3, 1, 0));
  x = net.pool(x, "MaxPool", 3, 2, 0);
  x = inception_a(net, inception_a(net, inception_a(net, x, 32), 64), 64);
  x = inception_b(net, x);
  for (int64_t c7 : {128, 160, 160, 192}) x = inception_c(net, x, c7);
  x = inception_d(net, x);
  x = inception_e(net, inception_e(net, x));
  return net.dense(net.flatten(net.global_pool(x)), sizes.classes, 1);
}

// Sandler et al. 2018, table 2.
Map inverted_residual(Net& net, const Map& x, int64_t expand, int64_t channels, int64_t stride) {
  Map y = x;
  if (expand != 1) y = net.relu6(net.batch_norm(net.conv(y, square(expand * x.channels, 1, 1, 0), false)));
  ConvSpec depthwise = square(y.channels, 3, stride, 1);
  depthwise.groups = y.channels;
  y = net.relu6(net.batch_norm(net.conv(y, depthwise, false)));
  bool has_shortcut = stride == 1 && x.channels == channels;
  y = net.batch_norm(net.conv(y, square(channels, 1, 1, 0), false), 1e-5F, has_shortcut ? 0.3F : 1.0F);
  return has_shortcut ? net.add(x, y) : y;
}

Map mobilenet_v2(Net& net, const Sizes& sizes) {
  struct Row {
    int64_t expand, channels;
    int repeats;
    int64_t stride;
  };
  constexpr Row kRows[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                           {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  Map x = net.relu6(net.batch_norm(net.conv(picture(net, sizes), square(32, 3, 2, 1), false)));
  for (const Row& row : kRows) {
    for (int i = 0; i < row.repeats; ++i) {
      x = inverted_residual(net, x, row.expand, row.channels, i == 0 ? row.stride : 1);
    }
  }
  x = net.relu6(net.batch_norm(net.conv(x, square(1280, 1, 1, 0), false)));
  return net.dense(net.flatten(net.global_pool(x)), sizes.classes, 1);
}

Map build(Net& net, std::string_view name, const Sizes& sizes) {
  if (name == "mlp") return mlp(net, sizes);
  if (name == "vgg16") return vgg16(net, sizes);
  if (name == "resnet18") return resnet(net, sizes, {2, 2, 2, 2}, false);
  if (name == "resnet50") return resnet(net, sizes, {3, 4, 6, 3}, true);
  if (name == "squeezenet1_1") return squeezenet1_1(net, sizes);
  if (name == "inception_v3") return inception_v3(net, sizes);
  HEADRACE_CHECK(name == "mobilenet_v2", "no builder for {}", name);
  return mobilenet_v2(net, sizes);
}

}  // namespace

const std::vector<ZooModel>& zoo_models() {
  static const std::vector<ZooModel> models = {
      {"mlp", 0, 0},           {"vgg16", 224, 32},         {"resnet18", 224, 1},
      {"resnet50", 224, 1},    {"squeezenet1_1", 224, 17}, {"inception_v3", 299, 75},
      {"mobilenet_v2", 224, 1}};
  return models;
}

std::string make_zoo_model(std::string_view name, const ZooOptions& options) {
  for (const ZooModel& model : zoo_models()) {
    if (model.name != name) continue;
    int64_t resolution = options.resolution > 0 ? options.resolution : model.resolution;
    if (resolution < model.smallest_resolution) {
      throw_user_error("{} needs a resolution of at least {}, not {}", name, model.smallest_resolution, resolution);
    }
    int64_t classes = options.classes > 0 ? options.classes : (name == "mlp" ? 10 : 1000);
    DimSpec batch = options.batch > 0 ? DimSpec(options.batch) : DimSpec(std::string("N"));
    Net net(options, name);
    Map y = build(net, name, {batch, resolution, classes});
    return std::move(net).finish(y, batch);
  }
  std::vector<std::string_view> names;
  for (const ZooModel& model : zoo_models()) names.push_back(model.name);
  throw_user_error("there is no model '{}' in the zoo; there are {}", name, fmt::join(names, ", "));
}

}  // namespace headrace::kit
