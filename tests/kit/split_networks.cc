#include "kit/split_networks.h"

#include <fmt/format.h>

#include <algorithm>

namespace headrace::kit {
namespace {

using plan::SplitProblem;

// Builds a graph in which each node makes one tensor.
class GraphBuilder {
 public:
  GraphBuilder(const SplitMachine& machine) {
    problem_.kinds = {"gpu", "cpu"};
    const auto count = static_cast<size_t>(machine.gpus + (machine.with_cpu ? 1 : 0));
    const std::vector<plan::SplitLink> links(count, {machine.bytes_per_second, 5000});
    for (int32_t i = 0; i < machine.gpus; ++i)
      problem_.devices.push_back({.name = fmt::format("gpu{}", i),
                                  .kind = 0,
                                  .memory_bytes = machine.memory_bytes,
                                  .overlaps = machine.overlaps,
                                  .links = links});
    if (machine.with_cpu)
      problem_.devices.push_back({.name = "cpu", .kind = 1, .overlaps = machine.overlaps, .links = links});
  }

  // Adds a node that computes `operations` and makes `bytes`; returns its number.
  int32_t add(std::string name, double operations, int64_t bytes, const std::vector<int32_t>& inputs,
              int64_t constant_bytes = 0) {
    const auto made = static_cast<int32_t>(problem_.nodes.size());
    double traffic = static_cast<double>(bytes + constant_bytes);
    for (const int32_t input : inputs) {
      plan::SplitTensor& tensor = problem_.tensors[static_cast<size_t>(input)];
      if (std::find(tensor.consumers.begin(), tensor.consumers.end(), made) == tensor.consumers.end())
        tensor.consumers.push_back(made);
      traffic += static_cast<double>(tensor.size_bytes);
    }
    // 10 Tflop/s and 500 GB/s on an accelerator, a fifteenth of both on the processor, and 2 us to start.
    const double gpu_ns = 2000 + operations / 10e3 + traffic / 500.0;
    problem_.nodes.push_back({.name = std::move(name),
                              .time_ns = {static_cast<int64_t>(gpu_ns), static_cast<int64_t>(gpu_ns * 15)},
                              .constant_bytes = constant_bytes,
                              .buffer = made});
    problem_.tensors.push_back({.producer = made, .size_bytes = bytes});
    return made;
  }

  // Adds, in reverse order, a node for the gradient of each node so far: it reads the gradients of the consumers, and
  // what the node read. Nodes with constants get another one that updates them.
  void add_backward() {
    const auto forward = static_cast<int32_t>(problem_.nodes.size());
    std::vector<std::vector<int32_t>> inputs(static_cast<size_t>(forward));
    for (const plan::SplitTensor& tensor : problem_.tensors) {
      for (const int32_t consumer : tensor.consumers) inputs[static_cast<size_t>(consumer)].push_back(tensor.producer);
    }
    std::vector<int32_t> gradient(static_cast<size_t>(forward), -1);
    for (int32_t node = forward; node-- > 0;) {
      std::vector<int32_t> reads = inputs[static_cast<size_t>(node)];
      for (const int32_t consumer : problem_.tensors[static_cast<size_t>(node)].consumers) {
        if (consumer < forward) reads.push_back(gradient[static_cast<size_t>(consumer)]);
      }
      const plan::SplitNode one = problem_.nodes[static_cast<size_t>(node)];
      const double operations = static_cast<double>(one.time_ns[0]) * 5e3;
      int64_t bytes = 0;
      for (const int32_t input : inputs[static_cast<size_t>(node)])
        bytes = std::max(bytes, problem_.tensors[static_cast<size_t>(input)].size_bytes);
      gradient[static_cast<size_t>(node)] = add(one.name + "_grad", operations, bytes, reads, one.constant_bytes);
      if (one.constant_bytes == 0) continue;
      const int32_t weights = add(one.name + "_wgrad", operations, one.constant_bytes, reads);
      add(one.name + "_update", 0, 0, {weights}, one.constant_bytes);
    }
  }

  int64_t bytes_of(int32_t node) const { return problem_.tensors[static_cast<size_t>(node)].size_bytes; }
  // Gives each tensor a buffer in the stage that keeps it for itself.
  SplitProblem take() {
    for (const plan::SplitTensor& tensor : problem_.tensors)
      problem_.buffers.push_back(
          {.producer = tensor.producer, .consumers = tensor.consumers, .size_bytes = tensor.size_bytes});
    return std::move(problem_);
  }

 private:
  SplitProblem problem_;
};

// A feature map: its node, height (and width), channels.
struct Plane {
  int32_t node;
  int64_t size, channels;
};

// Convolutional layers for pictures of float32.
class Pictures {
 public:
  Pictures(GraphBuilder& graph, int64_t batch, bool fused) : graph_(graph), batch_(batch), fused_(fused) {}

  Plane conv(const std::string& name, Plane in, int64_t channels, int64_t taps, int64_t stride, bool relu = true) {
    const int64_t size = in.size / stride;
    const int64_t bytes = batch_ * size * size * channels * 4;
    const double operations = 2.0 * static_cast<double>(bytes / 4 * in.channels * taps);
    int32_t node = graph_.add(name, operations, bytes, {in.node}, in.channels * channels * taps * 4);
    if (!fused_) {
      node = graph_.add(name + "_norm", static_cast<double>(bytes), bytes, {node}, channels * 16);
      if (relu) node = graph_.add(name + "_relu", static_cast<double>(bytes / 4), bytes, {node});
    }
    return {node, size, channels};
  }
  Plane pool(const std::string& name, Plane in, int64_t stride) {
    const int64_t size = in.size / stride, bytes = batch_ * size * size * in.channels * 4;
    return {graph_.add(name, static_cast<double>(bytes) * 2, bytes, {in.node}), size, in.channels};
  }
  Plane join(const std::string& name, const std::vector<Plane>& parts, bool is_sum) {
    Plane made{0, parts.front().size, is_sum ? parts.front().channels : 0};
    std::vector<int32_t> nodes;
    for (const Plane& part : parts) {
      nodes.push_back(part.node);
      if (!is_sum) made.channels += part.channels;
    }
    made.node = graph_.add(name, 0, batch_ * made.size * made.size * made.channels * 4, nodes);
    return made;
  }
  Plane input(int64_t size) { return {graph_.add("input", 0, batch_ * size * size * 3 * 4, {}), size, 3}; }
  void classify(Plane in) {
    const Plane pooled = pool("mean", in, in.size);
    graph_.add("classes", 2e3 * static_cast<double>(batch_ * in.channels), batch_ * 4000, {pooled.node},
               in.channels * 4000);
  }

 private:
  GraphBuilder& graph_;
  int64_t batch_;
  bool fused_;
};

Plane inception_block(Pictures& net, const std::string& name, Plane in, int64_t width, int64_t taps, bool reduces) {
  const int64_t stride = reduces ? 2 : 1;
  std::vector<Plane> parts;
  if (!reduces) parts.push_back(net.conv(name + "_a", in, width, 1, 1));
  Plane two = net.conv(name + "_b0", in, width, 1, 1);
  parts.push_back(net.conv(name + "_b1", two, width, taps, stride));
  Plane three = net.conv(name + "_c0", in, width, 1, 1);
  three = net.conv(name + "_c1", three, width, taps, 1);
  parts.push_back(net.conv(name + "_c2", three, width, taps, stride));
  Plane pooled = net.pool(name + "_pool", in, stride);
  if (!reduces) pooled = net.conv(name + "_d", pooled, width / 2, 1, 1);
  parts.push_back(pooled);
  return net.join(name + "_concat", parts, false);
}

// The sizes of an attention layer's tensors; a batch of 8 sentences.
constexpr int64_t kSentences = 8, kWords = 384, kFeatures = 1024, kRows = kSentences * kWords;
constexpr int64_t kRowBytes = kRows * kFeatures * 4;

int32_t dense(GraphBuilder& graph, const std::string& name, int32_t in, int64_t from, int64_t to) {
  const int64_t bytes = kRows * to * 4;
  const int32_t product = graph.add(name, 2.0 * static_cast<double>(kRows * from * to), bytes, {in}, from * to * 4);
  return graph.add(name + "_bias", 0, bytes, {product}, to * 4);
}

int32_t attention_layer(GraphBuilder& graph, const std::string& name, int32_t in) {
  std::vector<int32_t> heads;
  for (const char* part : {"_q", "_k", "_v"}) {
    const int32_t made = dense(graph, name + part, in, kFeatures, kFeatures);
    heads.push_back(graph.add(name + part + "_heads", 0, kRowBytes, {made}));
  }
  const int64_t score_bytes = kSentences * 16 * kWords * kWords * 4;
  const double operations = 2.0 * static_cast<double>(kRows * kWords * kFeatures);
  int32_t node = graph.add(name + "_scores", operations, score_bytes, {heads[0], heads[1]});
  node = graph.add(name + "_mask", 0, score_bytes, {node});
  node = graph.add(name + "_softmax", 0, score_bytes, {node});
  node = graph.add(name + "_mix", operations, kRowBytes, {node, heads[2]});
  node = graph.add(name + "_join", 0, kRowBytes, {node});
  node = dense(graph, name + "_out", node, kFeatures, kFeatures);
  node = graph.add(name + "_add0", 0, kRowBytes, {node, in});
  const int32_t first = graph.add(name + "_norm0", 0, kRowBytes, {node}, kFeatures * 8);
  node = dense(graph, name + "_up", first, kFeatures, 4 * kFeatures);
  node = graph.add(name + "_gelu", 0, 4 * kRowBytes, {node});
  node = dense(graph, name + "_down", node, 4 * kFeatures, kFeatures);
  node = graph.add(name + "_add1", 0, kRowBytes, {node, first});
  return graph.add(name + "_norm1", 0, kRowBytes, {node}, kFeatures * 8);
}

}  // namespace

SplitProblem resnet50_training(const SplitMachine& machine) {
  GraphBuilder graph(machine);
  Pictures net(graph, 32, false);
  Plane at = net.pool("pool", net.conv("conv0", net.input(224), 64, 49, 2), 2);
  int block = 0;
  for (const auto& [blocks, width, stride] : {std::tuple(3, 64, 1), {4, 128, 2}, {6, 256, 2}, {3, 512, 2}}) {
    for (int i = 0; i < blocks; ++i, ++block) {
      const std::string name = fmt::format("block{}", block);
      const int64_t step = i == 0 ? stride : 1;
      Plane inner = net.conv(name + "_a", at, width, 1, 1);
      inner = net.conv(name + "_b", inner, width, 9, step);
      inner = net.conv(name + "_c", inner, width * 4, 1, 1, false);
      const Plane side = i == 0 ? net.conv(name + "_side", at, width * 4, 1, step, false) : at;
      at = net.join(name + "_add", {inner, side}, true);
      at.node = graph.add(name + "_relu", 0, graph.bytes_of(at.node), {at.node});
    }
  }
  net.classify(at);
  graph.add_backward();
  return graph.take();
}

SplitProblem inception(const SplitMachine& machine, bool fused) {
  GraphBuilder graph(machine);
  Pictures net(graph, 16, fused);
  Plane at = net.conv("conv0", net.input(304), 32, 9, 2);
  at = net.conv("conv2", net.conv("conv1", at, 32, 9, 1), 64, 9, 1);
  at = net.conv("conv4", net.conv("conv3", net.pool("pool0", at, 2), 80, 1, 1), 192, 9, 1);
  at = net.pool("pool1", at, 2);
  int block = 0;
  for (const auto& [blocks, width, taps] : {std::tuple(3, 64, 9), {4, 160, 14}, {2, 320, 6}}) {
    if (block > 0) at = inception_block(net, fmt::format("mix{}", block++), at, width, 9, true);
    for (int i = 0; i < blocks; ++i) at = inception_block(net, fmt::format("mix{}", block++), at, width, taps, false);
  }
  net.classify(at);
  return graph.take();
}

SplitProblem bert24(const SplitMachine& machine, bool training) {
  GraphBuilder graph(machine);
  int32_t node = graph.add("words", 0, kRowBytes, {}, 30522 * kFeatures * 4);
  for (int layer = 0; layer < 24; ++layer) node = attention_layer(graph, fmt::format("layer{}", layer), node);
  dense(graph, "spans", node, kFeatures, 2);
  if (training) graph.add_backward();
  return graph.take();
}

SplitProblem gnmt(const SplitMachine& machine, int32_t words) {
  GraphBuilder graph(machine);
  constexpr int64_t kBatch = 128, kBytes = kBatch * kFeatures * 4;
  const double operations = 2.0 * kBatch * 8 * kFeatures * kFeatures;
  const auto steps = static_cast<size_t>(words);
  std::vector<int32_t> row(steps);
  for (size_t step = 0; step < steps; ++step)
    row[step] = graph.add(fmt::format("source{}", step), 0, kBytes, {}, step == 0 ? 32000 * kFeatures * 4 : 0);
  int32_t context = -1;
  for (int layer = 0; layer < 16; ++layer) {
    std::vector<int32_t> last = row;
    for (size_t step = 0; step < steps; ++step) {
      if (layer == 8) last[step] = graph.add(fmt::format("target{}", step), 0, kBytes, {});
      std::vector<int32_t> inputs{last[step]};
      if (step > 0) inputs.push_back(row[step - 1]);
      if (layer >= 8) inputs.push_back(context);
      const int64_t weights = step == 0 ? 8 * kFeatures * kFeatures * 4 : 0;
      row[step] = graph.add(fmt::format("cell{}_{}", layer, step), operations, kBytes, inputs, weights);
      if (layer % 8 >= 2)
        row[step] = graph.add(fmt::format("add{}_{}", layer, step), 0, kBytes, {row[step], last[step]});
    }
    if (layer == 7) context = graph.add("attention", operations, kBytes * words, row);
  }
  for (size_t step = 0; step < steps; ++step) graph.add(fmt::format("word{}", step), 8 * operations, 0, {row[step]});
  return graph.take();
}

SplitProblem residual_stack(const SplitMachine& machine, int32_t nodes) {
  GraphBuilder graph(machine);
  int32_t at = graph.add("input", 0, 100'000, {});
  for (int32_t block = 0; block < nodes / 7; ++block) {
    // Every third block halves what is alive.
    const int64_t bytes = block % 3 == 0 ? 50'000 : 100'000;
    int32_t inner = at;
    for (const char* part : {"conv0", "norm0", "relu0", "conv1", "norm1"})
      inner = graph.add(part, 1e7 * (1 + block % 5), bytes, {inner}, 4096);
    at = graph.add("relu1", 0, bytes, {graph.add("add", 0, bytes, {inner, at})});
  }
  return graph.take();
}

}  // namespace headrace::kit
