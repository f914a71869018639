#include "kit/zoo_shufflenet.h"

namespace headrace::kit::zoo {

namespace {

// Interleaves the two halves of the channels: f32[N,C,H,W] becomes [N,2,C/2,H,W], and its axes 1 and 2 change places.
Map channel_shuffle(Net& net, const Map& x, int64_t side) {
  const std::string groups = net.constant<int64_t>({5}, {0, 2, x.channels / 2, side, side});
  const std::string apart = net.node("Reshape", {x.name, groups});
  const std::string turned = net.node("Transpose", {apart}, {{"perm", std::vector<int64_t>{0, 2, 1, 3, 4}}});
  return {net.node("Reshape", {turned, net.constant<int64_t>({4}, {0, x.channels, side, side})}), x.channels};
}

Map pointwise(Net& net, const Map& x, int64_t channels) {
  return net.relu(net.batch_norm(net.conv(x, square(channels, 1, 1, 0), false)));
}

// Applies a depthwise convolution that no ReLU follows.
Map depthwise_norm(Net& net, const Map& x, int64_t stride) {
  ConvSpec spec = depthwise(x.channels, stride);
  spec.gain = 1;
  return net.batch_norm(net.conv(x, spec, false));
}

Map main_branch(Net& net, const Map& x, int64_t channels, int64_t stride) {
  return pointwise(net, depthwise_norm(net, pointwise(net, x, channels), stride), channels);
}

// Halves the side: Ma et al. 2018, figure 3 (d).
Map down_unit(Net& net, const Map& x, int64_t channels, int64_t side) {
  const Map left = pointwise(net, depthwise_norm(net, x, 2), channels / 2);
  return channel_shuffle(net, net.concat({left, main_branch(net, x, channels / 2, 2)}), side);
}

// Changes one half of the channels and passes the other on: Ma et al. 2018, figure 3 (c).
Map split_unit(Net& net, const Map& x, int64_t side) {
  const int64_t half_channels = x.channels / 2;
  const std::vector<std::string> parts = net.split(x.name, 1, 2, half_channels);
  const Map right = main_branch(net, {parts[1], half_channels}, half_channels, 1);
  return channel_shuffle(net, net.concat({{parts[0], half_channels}, right}), side);
}

}  // namespace

// Ma et al. 2018, table 5, as torchvision implements it: the mean over the picture is a ReduceMean.
Map shufflenet_v2(Net& net, const Sizes& sizes) {
  const auto halved = [](int64_t side) { return (side + 1) / 2; };
  Map x = net.relu(net.batch_norm(net.conv(picture(net, sizes), square(24, 3, 2, 1), false)));
  x = net.pool(x, "MaxPool", 3, 2, 1);
  int64_t side = halved(halved(sizes.resolution));
  for (const auto& [channels, units] : {std::pair<int64_t, int>{116, 4}, {232, 8}, {464, 4}}) {
    side = halved(side);
    x = down_unit(net, x, channels, side);
    for (int unit = 1; unit < units; ++unit) x = split_unit(net, x, side);
  }
  x = pointwise(net, x, 1024);
  const std::vector<AttributeSpec> over_picture = {{"axes", std::vector<int64_t>{2, 3}}, {"keepdims", 0}};
  return net.dense({net.node("ReduceMean", {x.name}, over_picture), x.channels}, sizes.classes, 1);
}

}  // namespace headrace::kit::zoo
