// The networks follow the papers' tables as torchvision implements them (without auxiliary heads).
#include "kit/model_zoo.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "kit/zoo_densenet.h"
#include "kit/zoo_layers.h"
#include "kit/zoo_shufflenet.h"
#include "kit/zoo_ssd.h"
#include "kit/zoo_transformers.h"

namespace headrace::kit {

namespace {

using namespace zoo;

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
    x = net.pool(vgg_convs(net, x, channels, convs), "MaxPool", 2, 2, 0);
    side /= 2;
  }
  x = net.flatten(x, side, side);
  x = net.relu(net.dense(x, 4096));
  x = net.relu(net.dense(x, 4096));
  return net.dense(x, sizes.classes, 1);
}

// Krizhevsky 2014, figure 1, without normalization between layers. The average over 6x6 places in front of the dense
// layers is the identity at the published resolution and is left out.
Map alexnet(Net& net, const Sizes& sizes) {
  const auto pooled = [](int64_t side) { return (side - 3) / 2 + 1; };
  Map x = net.relu(net.conv(picture(net, sizes), square(64, 11, 4, 2), true));
  int64_t side = pooled((sizes.resolution + 4 - 11) / 4 + 1);
  x = net.relu(net.conv(net.pool(x, "MaxPool", 3, 2, 0), square(192, 5, 1, 2), true));
  x = net.pool(x, "MaxPool", 3, 2, 0);
  for (const int64_t channels : {384, 256, 256}) x = net.relu(net.conv(x, square(channels, 3, 1, 1), true));
  side = pooled(pooled(side));
  x = net.flatten(net.pool(x, "MaxPool", 3, 2, 0), side, side);
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

Map resnet(Net& net, const Sizes& sizes, const std::array<int, 4>& blocks, bool has_bottlenecks) {
  Map x = resnet_stem(net, picture(net, sizes));
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

Map mobilenet_v2(Net& net, const Sizes& sizes) {
  const Map x = mobilenet_v2_maps(net, picture(net, sizes)).last;
  return net.dense(net.flatten(net.global_pool(x)), sizes.classes, 1);
}

Map build(Net& net, std::string_view name, const Sizes& sizes) {
  if (name == "mlp") return mlp(net, sizes);
  if (name == "vgg16") return vgg16(net, sizes);
  if (name == "resnet18") return resnet(net, sizes, {2, 2, 2, 2}, false);
  if (name == "resnet50") return resnet(net, sizes, {3, 4, 6, 3}, true);
  if (name == "squeezenet1_1") return squeezenet1_1(net, sizes);
  if (name == "inception_v3") return inception_v3(net, sizes);
  if (name == "alexnet") return alexnet(net, sizes);
  if (name == "densenet121") return densenet121(net, sizes);
  if (name == "shufflenet_v2") return shufflenet_v2(net, sizes);
  HEADRACE_CHECK(name == "mobilenet_v2", "no builder for {}", name);
  return mobilenet_v2(net, sizes);
}

int64_t or_published(int64_t option, int64_t published) { return option > 0 ? option : published; }

Sizes make_sizes(const ZooModel& model, const ZooOptions& options) {
  const int64_t resolution = or_published(options.resolution, model.resolution);
  if (resolution < model.smallest_resolution) {
    throw_user_error("{} needs a resolution of at least {}, not {}", model.name, model.smallest_resolution, resolution);
  }
  return {.batch = options.batch > 0 ? DimSpec(options.batch) : DimSpec(std::string("N")),
          .resolution = resolution,
          .classes = or_published(options.classes, model.classes),
          .sequence = or_published(options.sequence, model.sequence),
          .vocabulary = or_published(options.vocabulary, model.vocabulary),
          .layers = or_published(options.layers, model.layers),
          .heads = or_published(options.heads, model.heads)};
}

}  // namespace

const std::vector<ZooModel>& zoo_models() {
  static const std::vector<ZooModel> models = {
      {"mlp", 0, 0, 10},
      {"vgg16", 224, 32, 1000},
      {"alexnet", 224, 63, 1000},
      {"resnet18", 224, 1, 1000},
      {"resnet50", 224, 1, 1000},
      {"densenet121", 224, 29, 1000},
      {"squeezenet1_1", 224, 17, 1000},
      {"inception_v3", 299, 75, 1000},
      {"mobilenet_v2", 224, 1, 1000},
      {"shufflenet_v2", 224, 1, 1000},
      {"ssd_resnet50", 300, 1, 81, true},
      {"ssd_vgg16", 300, 12, 91, true},
      {"ssd_mobilenet", 300, 1, 91, true},
      {.name = "bert_base", .sequence = 128, .vocabulary = 30522, .layers = 12, .heads = 12},
      {.name = "vit_base16", .resolution = 224, .smallest_resolution = 16, .classes = 1000, .layers = 12, .heads = 12},
      {.name = "gpt2", .sequence = 64, .vocabulary = 50257, .layers = 12, .heads = 12}};
  return models;
}

ZooOptions small_zoo_options(const ZooModel& model) {
  ZooOptions options;
  if (model.resolution > 0) options.resolution = (std::max<int64_t>(model.smallest_resolution, 32) + 31) / 32 * 32;
  if (model.layers > 0) options.layers = options.heads = 2;
  if (model.sequence > 0) {
    options.sequence = 16;
    options.vocabulary = 1000;
  }
  return options;
}

std::string make_zoo_model(std::string_view name, const ZooOptions& options) {
  for (const ZooModel& model : zoo_models()) {
    if (model.name != name) continue;
    const Sizes sizes = make_sizes(model, options);
    Net net(options, name);
    if (model.layers > 0) {
      build_transformer(net, name, sizes);
      return std::move(net).finish(kTransformerOpset, kTransformerIrVersion);
    }
    if (model.is_detector) {
      build_ssd(net, name, sizes);
    } else {
      const Map y = build(net, name, sizes);
      net.output("y", y.name, onnx::ElementType::kFloat, {sizes.batch, y.channels});
    }
    return std::move(net).finish();
  }
  std::vector<std::string_view> names;
  for (const ZooModel& model : zoo_models()) names.push_back(model.name);
  throw_user_error("there is no model '{}' in the zoo; there are {}", name, fmt::join(names, ", "));
}

}  // namespace headrace::kit
