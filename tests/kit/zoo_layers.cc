#include "kit/zoo_layers.h"

namespace headrace::kit::zoo {

Map vgg_convs(Net& net, Map x, int64_t channels, int count) {
  for (int i = 0; i < count; ++i) x = net.relu(net.conv(x, square(channels, 3, 1, 1), true));
  return x;
}

Map resnet_stem(Net& net, const Map& x) {
  const Map y = net.relu(net.batch_norm(net.conv(x, square(64, 7, 2, 3), false)));
  return net.pool(y, "MaxPool", 3, 2, 1);
}

// He et al. 2015, figure 5 right.
Map bottleneck_block(Net& net, const Map& x, int64_t channels, int64_t stride) {
  Map y = net.relu(net.batch_norm(net.conv(x, square(channels, 1, 1, 0), false)));
  y = net.relu(net.batch_norm(net.conv(y, square(channels, 3, stride, 1), false)));
  y = net.batch_norm(net.conv(y, square(4 * channels, 1, 1, 0), false), 1e-5F, 0.3F);
  if (stride == 1 && x.channels == 4 * channels) return net.relu(net.add(y, x));
  ConvSpec shortcut = square(4 * channels, 1, stride, 0);
  return net.relu(net.add(y, net.batch_norm(net.conv(x, shortcut, false))));
}

// Sandler et al. 2018, table 2.
constexpr struct {
  int64_t expand, channels;
  int repeats;
  int64_t stride;
} kMobilenetRows[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                      {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};

static Map expanded(Net& net, const Map& x, int64_t factor) {
  if (factor == 1) return x;
  return net.relu6(net.batch_norm(net.conv(x, square(factor * x.channels, 1, 1, 0), false)));
}

// Reduces the expanded `y` of `x` to `channels`.
static Map inverted_residual(Net& net, const Map& x, Map y, int64_t channels, int64_t stride) {
  y = net.relu6(net.batch_norm(net.conv(y, depthwise(y.channels, stride), false)));
  const bool has_shortcut = stride == 1 && x.channels == channels;
  y = net.batch_norm(net.conv(y, square(channels, 1, 1, 0), false), 1e-5F, has_shortcut ? 0.3F : 1.0F);
  return has_shortcut ? net.add(x, y) : y;
}

MobilenetMaps mobilenet_v2_maps(Net& net, const Map& picture) {
  Map x = net.relu6(net.batch_norm(net.conv(picture, square(32, 3, 2, 1), false)));
  Map tap;
  for (const auto& row : kMobilenetRows) {
    for (int i = 0; i < row.repeats; ++i) {
      const Map y = expanded(net, x, row.expand);
      if (i == 0 && row.channels == 160) tap = y;
      x = inverted_residual(net, x, y, row.channels, i == 0 ? row.stride : 1);
    }
  }
  return {tap, net.relu6(net.batch_norm(net.conv(x, square(1280, 1, 1, 0), false)))};
}

}  // namespace headrace::kit::zoo
