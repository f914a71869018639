// SSD (Liu et al. 2016): six feature maps of falling size, on each of them boxes of fixed shapes (priors), for each
// prior four numbers that move it and a score for each class. Non-maximum suppression selects boxes at the end.
#include "kit/zoo_ssd.h"

#include <cmath>
#include <limits>

#include "base/error.h"

namespace headrace::kit::zoo {

namespace {

// A feature map with heads: how many priors each of its places has.
struct Tap {
  Map map;
  int64_t side;
  int64_t priors;
};

// A prior, in fractions of the picture.
struct Prior {
  float center_y, center_x, height, width;
};

int64_t half(int64_t side) { return (side + 1) / 2; }

// The priors of the published models in the order of their maps.
constexpr std::array<int64_t, 6> kPriors = {4, 6, 6, 6, 4, 4};
constexpr std::array<int64_t, 6> kMobilenetPriors = {3, 6, 6, 6, 6, 6};

// A 3x3 convolution in an extra layer; as in the paper, the last ones have no padding, except on maps below 3x3, which
// the published resolutions do not have.
struct Extra {
  int64_t middle, channels, stride;
  bool has_padding;
};

std::pair<ConvSpec, int64_t> extra_conv(const Extra& extra, int64_t side) {
  const int64_t padding = extra.has_padding || side < 3 ? 1 : 0;
  return {square(extra.channels, 3, extra.stride, padding), (side + 2 * padding - 3) / extra.stride + 1};
}

// Torchvision's ssd300_vgg16: the fully connected layers are convolutions, the first of them dilated.
std::vector<Tap> vgg16_taps(Net& net, const Map& picture, int64_t resolution) {
  Map x = net.pool(vgg_convs(net, picture, 64, 2), "MaxPool", 2, 2, 0);
  x = net.pool(vgg_convs(net, x, 128, 2), "MaxPool", 2, 2, 0);
  x = vgg_convs(net, net.pool(vgg_convs(net, x, 256, 3), "MaxPool", 2, 2, 0, 1), 512, 3);
  int64_t side = half(resolution / 4);
  const std::string norm = net.node("LpNormalization", {x.name}, {{"axis", 1}, {"p", 2}});
  const std::string scale = net.constant<float>({512, 1, 1}, std::vector<float>(512, 20));
  std::vector<Tap> taps = {{{net.node("Mul", {norm, scale}), 512}, side, kPriors[0]}};
  x = net.pool(vgg_convs(net, net.pool(x, "MaxPool", 2, 2, 0), 512, 3), "MaxPool", 3, 1, 1);
  ConvSpec dilated = square(1024, 3, 1, 6);
  dilated.dilation = 6;
  x = net.relu(net.conv(x, dilated, true));
  x = net.relu(net.conv(x, square(1024, 1, 1, 0), true));
  taps.push_back({x, side /= 2, kPriors[1]});
  constexpr Extra kExtras[] = {{256, 512, 2, true}, {128, 256, 2, true}, {128, 256, 1, false}, {128, 256, 1, false}};
  for (const Extra& extra : kExtras) {
    const auto [spec, next_side] = extra_conv(extra, side);
    x = net.relu(net.conv(net.relu(net.conv(x, square(extra.middle, 1, 1, 0), true)), spec, true));
    taps.push_back({x, side = next_side, kPriors[taps.size()]});
  }
  return taps;
}

// ResNet-50 up to its third stage, whose stride is 1 here, and extra layers with batch norm.
std::vector<Tap> resnet50_taps(Net& net, const Map& picture, int64_t resolution) {
  Map x = resnet_stem(net, picture);
  int64_t channels = 64;
  for (const int blocks : {3, 4, 6}) {
    for (int block = 0; block < blocks; ++block) {
      x = bottleneck_block(net, x, channels, channels == 128 && block == 0 ? 2 : 1);
    }
    channels *= 2;
  }
  int64_t side = half(half(half(resolution)));
  std::vector<Tap> taps = {{x, side, kPriors[0]}};
  constexpr Extra kExtras[] = {
      {256, 512, 2, true}, {256, 512, 2, true}, {128, 256, 2, true}, {128, 256, 1, false}, {128, 256, 1, false}};
  for (const Extra& extra : kExtras) {
    const auto [spec, next_side] = extra_conv(extra, side);
    x = net.relu(net.batch_norm(net.conv(x, square(extra.middle, 1, 1, 0), false)));
    x = net.relu(net.batch_norm(net.conv(x, spec, false)));
    taps.push_back({x, side = next_side, kPriors[taps.size()]});
  }
  return taps;
}

// A depthwise and a 1x1 convolution, each with batch norm: SSDLite (Sandler et al. 2018, section 6.2).
Map separable(Net& net, const Map& x, int64_t channels, int64_t stride) {
  const Map y = net.relu6(net.batch_norm(net.conv(x, depthwise(x.channels, stride), false)));
  return net.relu6(net.batch_norm(net.conv(y, square(channels, 1, 1, 0), false)));
}

std::vector<Tap> mobilenet_taps(Net& net, const Map& picture, int64_t resolution) {
  const MobilenetMaps maps = mobilenet_v2_maps(net, picture);
  int64_t side = half(half(half(half(resolution))));
  std::vector<Tap> taps = {{maps.expanded, side, kMobilenetPriors[0]}};
  Map x = maps.last;
  taps.push_back({x, side = half(side), kMobilenetPriors[1]});
  for (const int64_t channels : {512, 256, 256, 128}) {
    x = net.relu6(net.batch_norm(net.conv(x, square(channels / 2, 1, 1, 0), false)));
    x = separable(net, x, channels, 2);
    taps.push_back({x, side = half(side), kMobilenetPriors[taps.size()]});
  }
  return taps;
}

// Returns the gain of the scores: features differ in size, and larger scores would be saturated, one like the next.
float score_gain(std::string_view name) {
  if (name == "ssd_resnet50") return 0.2F;
  return name == "ssd_vgg16" ? 0.75F : 1.5F;
}

// Returns a threshold that some 10 to 300 scores pass. So few lie far apart beside float32's rounding, and a run that
// rounds in another way selects the same boxes in the same order. Maps of low resolution are mostly padding, which
// makes smaller scores.
float score_threshold(int64_t boxes) { return boxes < 1000 ? 0.06F : 0.6F; }

// Returns the name of f32[N,places*priors,values].
std::string head(Net& net, const Tap& tap, int64_t values, float gain, bool is_separable) {
  Map x = tap.map;
  if (is_separable) x = net.relu6(net.batch_norm(net.conv(x, depthwise(x.channels, 1), false)));
  ConvSpec spec = is_separable ? square(tap.priors * values, 1, 1, 0) : square(tap.priors * values, 3, 1, 1);
  spec.gain = gain;
  const Map y = net.conv(x, spec, true);
  const std::string places = net.node("Transpose", {y.name}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}});
  return net.node("Reshape", {places, net.constant<int64_t>({3}, {0, -1, values})});
}

std::string heads(Net& net, const std::vector<Tap>& taps, int64_t values, float gain, bool is_separable) {
  std::vector<std::string> parts;
  for (const Tap& tap : taps) parts.push_back(head(net, tap, values, gain, is_separable));
  return net.node("Concat", parts, {{"axis", 1}});
}

// Returns the heights and widths of the priors of map `i`: equation 4 of the paper for the scale; a second square lies
// between this scale and the next.
std::vector<std::array<float, 2>> prior_sizes(size_t i, int64_t priors) {
  const float scale = 0.2F + 0.14F * static_cast<float>(i);
  const float between = std::sqrt(scale * (scale + 0.14F));
  std::vector<std::array<float, 2>> sizes = {{scale, scale}};
  if (priors > 3) sizes.push_back({between, between});
  for (const float ratio : {2.0F, 3.0F}) {
    if (std::ssize(sizes) == priors) break;
    const float root = std::sqrt(ratio);
    sizes.push_back({scale / root, scale * root});
    sizes.push_back({scale * root, scale / root});
  }
  return sizes;
}

std::vector<Prior> make_priors(const std::vector<Tap>& taps) {
  std::vector<Prior> priors;
  for (size_t i = 0; i < taps.size(); ++i) {
    const auto sizes = prior_sizes(i, taps[i].priors);
    const auto side = static_cast<float>(taps[i].side);
    for (int64_t place = 0; place < taps[i].side * taps[i].side; ++place) {
      const float y = (static_cast<float>(place / taps[i].side) + 0.5F) / side;
      const float x = (static_cast<float>(place % taps[i].side) + 0.5F) / side;
      for (const auto& [height, width] : sizes) priors.push_back({y, x, height, width});
    }
  }
  return priors;
}

// Returns a part of the last or another axis.
std::string slice(Net& net, const std::string& x, int64_t axis, int64_t begin, int64_t end) {
  return net.node("Slice", {x, net.constant<int64_t>({1}, {begin}), net.constant<int64_t>({1}, {end}),
                            net.constant<int64_t>({1}, {axis})});
}

// Moves and scales the priors by the locations f32[N,n,4]. The result has the corners (y1, x1, y2, x2), as
// NonMaxSuppression takes them.
std::string decode(Net& net, const std::string& locations, const std::vector<Prior>& priors) {
  std::vector<float> centers, sizes, steps;
  for (const Prior& prior : priors) {
    centers.insert(centers.end(), {prior.center_y, prior.center_x});
    sizes.insert(sizes.end(), {prior.height, prior.width});
    steps.insert(steps.end(), {0.1F * prior.height, 0.1F * prior.width});
  }
  const std::vector<int64_t> dims = {1, std::ssize(priors), 2};
  const std::string move = net.node("Mul", {slice(net, locations, 2, 0, 2), net.constant(dims, steps)});
  const std::string center = net.node("Add", {move, net.constant(dims, centers)});
  const std::string growth = net.node("Mul", {slice(net, locations, 2, 2, 4), net.constant<float>({}, {0.2F})});
  const std::string size = net.node("Mul", {net.node("Exp", {growth}), net.constant(dims, sizes)});
  const std::string reach = net.node("Mul", {size, net.constant<float>({}, {0.5F})});
  const std::string low = net.node("Sub", {center, reach}), high = net.node("Add", {center, reach});
  return net.node("Concat", {low, high}, {{"axis", 2}});
}

}  // namespace

void build_ssd(Net& net, std::string_view name, const Sizes& sizes) {
  const Map x = picture(net, sizes);
  std::vector<Tap> taps;
  if (name == "ssd_vgg16") taps = vgg16_taps(net, x, sizes.resolution);
  if (name == "ssd_resnet50") taps = resnet50_taps(net, x, sizes.resolution);
  const bool is_lite = name == "ssd_mobilenet";
  if (is_lite) taps = mobilenet_taps(net, x, sizes.resolution);
  HEADRACE_CHECK(!taps.empty(), "no builder for {}", name);
  const std::vector<Prior> priors = make_priors(taps);
  const auto count = std::ssize(priors);
  const std::string boxes = decode(net, heads(net, taps, 4, 1, is_lite), priors);
  std::string scores = heads(net, taps, sizes.classes, score_gain(name), is_lite);
  scores = net.node("Softmax", {scores}, {{"axis", 2}});
  scores = net.node("Transpose", {scores}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  // Class 0 is the background.
  scores = slice(net, scores, 1, 1, std::numeric_limits<int64_t>::max());
  const std::string selected =
      net.node("NonMaxSuppression", {boxes, scores, net.constant<int64_t>({1}, {20}), net.constant<float>({1}, {0.45F}),
                                     net.constant<float>({1}, {score_threshold(count)})});
  net.output("boxes", boxes, onnx::ElementType::kFloat, {sizes.batch, count, int64_t{4}});
  net.output("scores", scores, onnx::ElementType::kFloat, {sizes.batch, sizes.classes - 1, count});
  net.output("selected", selected, onnx::ElementType::kInt64, {std::string("selected"), int64_t{3}});
}

}  // namespace headrace::kit::zoo
