#include "kit/zoo_densenet.h"

namespace headrace::kit::zoo {

namespace {

// Channels that a layer adds, and those of its 1x1 convolution.
constexpr int64_t kGrowth = 32;
constexpr int64_t kBottleneck = 4 * kGrowth;

Map norm_relu_conv(Net& net, const Map& x, const ConvSpec& spec) {
  return net.conv(net.relu(net.batch_norm(x)), spec, false);
}

// Applies layers that each read the results of all layers before: Huang et al. 2016, equation 2.
Map dense_block(Net& net, const Map& x, int layers) {
  std::vector<Map> maps = {x};
  for (int layer = 0; layer < layers; ++layer) {
    const Map all = maps.size() == 1 ? x : net.concat(maps);
    const Map narrow = norm_relu_conv(net, all, square(kBottleneck, 1, 1, 0));
    maps.push_back(norm_relu_conv(net, narrow, square(kGrowth, 3, 1, 1)));
  }
  return net.concat(maps);
}

}  // namespace

// Huang et al. 2016, table 1, as torchvision implements it.
Map densenet121(Net& net, const Sizes& sizes) {
  Map x = dense_block(net, resnet_stem(net, picture(net, sizes)), 6);
  for (const int layers : {12, 24, 16}) {
    const Map narrow = norm_relu_conv(net, x, square(x.channels / 2, 1, 1, 0));
    x = dense_block(net, net.pool(narrow, "AveragePool", 2, 2, 0), layers);
  }
  x = net.global_pool(net.relu(net.batch_norm(x)));
  return net.dense(net.flatten(x), sizes.classes, 1);
}

}  // namespace headrace::kit::zoo
