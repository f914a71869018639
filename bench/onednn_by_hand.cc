// onednn-by-hand: times primitives of oneDNN, called one after another as a program would that was written for one
// network. `./dev bench onednn` gives it the primitives that the backend onednn runs for a model, and compares.
//
//   onednn-by-hand FILE ROUNDS
//
// Each line of FILE is one primitive: its kind, the implementation that the backend got, then
//   convolution IMPLEMENTATION sum relu clip bias  n g ic oc  ih iw oh ow  kh kw  sh sw  dh dw  ph pw
//   pool        IMPLEMENTATION average layout      n c  ih iw oh ow  kh kw  sh sw  ph pw
//   dense       IMPLEMENTATION bias                n ic oc
//   reorder     IMPLEMENTATION from to             n c h w
// Layouts are oneDNN's tags; flags are 0 or 1. Convolutions and dense layers choose layouts themselves, as in the
// backend. Writes JSON to the standard output: the best and the median seconds of a run over all lines, and for each
// line its best seconds, operations and bytes. One thread.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <dnnl.hpp>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <algorithm>

namespace {

using dnnl::algorithm;
using dnnl::memory;
using dnnl::prop_kind;

constexpr auto kFloat = memory::data_type::f32;
constexpr float kRelu6 = 6;

memory::desc any(const memory::dims& dims) { return {dims, kFloat, memory::format_tag::any}; }

memory::format_tag tag_of(const std::string& name) {
  static const std::map<std::string, memory::format_tag> all{{"ab", memory::format_tag::ab},
                                                             {"abcd", memory::format_tag::abcd},
                                                             {"acdb", memory::format_tag::acdb},
                                                             {"aBcd8b", memory::format_tag::aBcd8b},
                                                             {"aBcd16b", memory::format_tag::aBcd16b}};
  const auto found = all.find(name);
  if (found == all.end()) throw std::runtime_error("the layout '" + name + "' is not supported");
  return found->second;
}

// A line of the file.
struct Line {
  std::string kind, implementation;
  std::istringstream rest;

  template <typename T>
  T next() {
    T value{};
    if (!(rest >> value)) throw std::runtime_error("a line of a " + kind + " ends early");
    return value;
  }
  memory::dims dims(size_t count) {
    memory::dims all(count);
    for (auto& one : all) one = next<int64_t>();
    return all;
  }
};

// A primitive and its tensors. Those that lie in one of two buffers take turns: each reads what the one before wrote.
struct Step {
  dnnl::primitive primitive;
  std::string kind;
  memory::desc src, dst;
  std::map<int, memory> own;  // weights and bias by argument
  double operations = 0;
  bool is_other = false;  // oneDNN chose another implementation than the backend has
};

class Maker {
 public:
  explicit Maker(const dnnl::engine& engine) : engine_(engine) {}

  Step make(const std::string& text) {
    Line line;
    line.rest.str(text);
    line.kind = line.next<std::string>();
    line.implementation = line.next<std::string>();
    if (line.kind == "convolution") return convolution(line);
    if (line.kind == "pool") return pool(line);
    if (line.kind == "dense") return dense(line);
    if (line.kind == "reorder") return reorder(line);
    throw std::runtime_error("a primitive of the kind " + line.kind + " is not supported");
  }

 private:
  // Values of such a size that results are about as large as inputs.
  memory filled(const memory::desc& desc, double products) {
    memory made(desc, engine_);
    auto* data = static_cast<float*>(made.get_data_handle());
    const auto most = static_cast<float>(std::sqrt(6 / products));
    std::uniform_real_distribution<float> values(-most, most);
    for (size_t i = 0; i < desc.get_size() / sizeof(float); ++i) data[i] = values(random_);
    return made;
  }

  template <typename Desc>
  Step step(Line& line, const Desc& pd, dnnl::primitive primitive, const memory::desc& src, const memory::desc& dst) {
    return {.primitive = std::move(primitive),
            .kind = line.kind,
            .src = src,
            .dst = dst,
            .own = {},
            .is_other = line.implementation != pd.impl_info_str()};
  }

  Step convolution(Line& line) {
    dnnl::post_ops post;
    if (line.next<int>() != 0) post.append_sum();
    if (line.next<int>() != 0) post.append_eltwise(1, algorithm::eltwise_relu, 0, 0);
    if (line.next<int>() != 0) post.append_eltwise(1, algorithm::eltwise_clip, 0, kRelu6);
    dnnl::primitive_attr attr;
    attr.set_post_ops(post);
    const bool has_bias = line.next<int>() != 0;
    const memory::dims sizes = line.dims(4), image = line.dims(4), kernel = line.dims(2), strides = line.dims(2),
                       dilation = line.dims(2), pads = line.dims(2);
    const int64_t n = sizes[0], g = sizes[1], ic = sizes[2], oc = sizes[3];
    memory::dims weights{oc / g, ic / g, kernel[0], kernel[1]}, after(2);
    if (g > 1) weights.insert(weights.begin(), g);
    for (size_t i = 0; i < 2; ++i)
      after[i] = (image[i + 2] - 1) * strides[i] + (kernel[i] - 1) * (dilation[i] + 1) + 1 - image[i] - pads[i];
    const memory::desc bias = has_bias ? memory::desc({oc}, kFloat, memory::format_tag::a) : memory::desc();
    const dnnl::convolution_forward::primitive_desc pd(
        {prop_kind::forward_inference, algorithm::convolution_direct, any({n, ic, image[0], image[1]}), any(weights),
         bias, any({n, oc, image[2], image[3]}), strides, dilation, pads, after},
        attr, engine_);
    const auto products = static_cast<double>(ic / g * kernel[0] * kernel[1]);
    Step made = step(line, pd, dnnl::convolution_forward(pd), pd.src_desc(), pd.dst_desc());
    made.own.emplace(DNNL_ARG_WEIGHTS, filled(pd.weights_desc(), products));
    if (has_bias) made.own.emplace(DNNL_ARG_BIAS, filled(bias, products));
    made.operations = 2 * products * static_cast<double>(n * oc * image[2] * image[3]);
    return made;
  }

  Step pool(Line& line) {
    const auto kind = line.next<int>() != 0 ? algorithm::pooling_avg_exclude_padding : algorithm::pooling_max;
    const auto layout = tag_of(line.next<std::string>());
    const memory::dims sizes = line.dims(2), image = line.dims(4), kernel = line.dims(2), strides = line.dims(2),
                       pads = line.dims(2);
    memory::dims after(2);
    for (size_t i = 0; i < 2; ++i) after[i] = (image[i + 2] - 1) * strides[i] + kernel[i] - image[i] - pads[i];
    const dnnl::pooling_v2_forward::primitive_desc pd(
        {prop_kind::forward_inference, kind, memory::desc({sizes[0], sizes[1], image[0], image[1]}, kFloat, layout),
         any({sizes[0], sizes[1], image[2], image[3]}), strides, kernel, memory::dims(2, 0), pads, after},
        engine_);
    return step(line, pd, dnnl::pooling_v2_forward(pd), pd.src_desc(), pd.dst_desc());
  }

  Step dense(Line& line) {
    const bool has_bias = line.next<int>() != 0;
    const memory::dims sizes = line.dims(3);
    const memory::desc bias = has_bias ? memory::desc({sizes[2]}, kFloat, memory::format_tag::a) : memory::desc();
    const dnnl::inner_product_forward::primitive_desc pd({prop_kind::forward_inference, any({sizes[0], sizes[1]}),
                                                          any({sizes[2], sizes[1]}), bias, any({sizes[0], sizes[2]})},
                                                         engine_);
    const auto products = static_cast<double>(sizes[1]);
    Step made = step(line, pd, dnnl::inner_product_forward(pd), pd.src_desc(), pd.dst_desc());
    made.own.emplace(DNNL_ARG_WEIGHTS, filled(pd.weights_desc(), products));
    if (has_bias) made.own.emplace(DNNL_ARG_BIAS, filled(bias, products));
    made.operations = 2 * products * static_cast<double>(sizes[0] * sizes[2]);
    return made;
  }

  Step reorder(Line& line) {
    const auto from = tag_of(line.next<std::string>()), to = tag_of(line.next<std::string>());
    const memory::dims sizes = line.dims(4);
    const memory::desc src(sizes, kFloat, from), dst(sizes, kFloat, to);
    const dnnl::reorder::primitive_desc pd(engine_, src, engine_, dst);
    return step(line, pd, dnnl::reorder(pd), src, dst);
  }

  const dnnl::engine& engine_;
  std::mt19937 random_{1};
};

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

class Network {
 public:
  explicit Network(const std::string& path) : stream_(engine_) {
    std::ifstream file(path);
    Maker maker(engine_);
    for (std::string line; std::getline(file, line);) steps_.push_back(maker.make(line));
    if (steps_.empty()) throw std::runtime_error("'" + path + "' has no primitive");
    size_t most = 0;
    for (const Step& step : steps_) most = std::max({most, step.src.get_size(), step.dst.get_size()});
    for (auto& buffer : buffers_) buffer.assign(most / sizeof(float), 0.5F);
    for (size_t i = 0; i < steps_.size(); ++i) {
      std::unordered_map<int, memory> args(steps_[i].own.begin(), steps_[i].own.end());
      const bool is_reorder = steps_[i].kind == "reorder";
      args.emplace(is_reorder ? DNNL_ARG_FROM : DNNL_ARG_SRC, memory(steps_[i].src, engine_, buffers_[i % 2].data()));
      args.emplace(is_reorder ? DNNL_ARG_TO : DNNL_ARG_DST,
                   memory(steps_[i].dst, engine_, buffers_[(i + 1) % 2].data()));
      args_.push_back(std::move(args));
    }
    best_.assign(steps_.size(), 1e9);
  }

  double run() {
    const auto begin = std::chrono::steady_clock::now();
    for (size_t i = 0; i < steps_.size(); ++i) steps_[i].primitive.execute(stream_, args_[i]);
    stream_.wait();
    return seconds_since(begin);
  }

  void run_by_steps() {
    for (size_t i = 0; i < steps_.size(); ++i) {
      const auto begin = std::chrono::steady_clock::now();
      steps_[i].primitive.execute(stream_, args_[i]);
      stream_.wait();
      best_[i] = std::min(best_[i], seconds_since(begin));
    }
  }

  void print(std::vector<double> seconds) const {
    std::sort(seconds.begin(), seconds.end());
    std::printf("{\"best_seconds\": %.9g, \"median_seconds\": %.9g, \"primitives\": [", seconds.front(),
                seconds[seconds.size() / 2]);
    for (size_t i = 0; i < steps_.size(); ++i) {
      const Step& step = steps_[i];
      size_t weights = 0;
      for (const auto& [arg, own] : step.own) weights += own.get_desc().get_size();
      std::printf(
          "%s\n  {\"kind\": \"%s\", \"best_seconds\": %.9g, \"operations\": %.9g, \"bytes\": %zu, "
          "\"weights_bytes\": %zu, \"is_other\": %s}",
          i == 0 ? "" : ",", step.kind.c_str(), best_[i], step.operations, step.src.get_size() + step.dst.get_size(),
          weights, step.is_other ? "true" : "false");
    }
    std::printf("]}\n");
  }

 private:
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_;
  std::vector<Step> steps_;
  std::vector<float> buffers_[2];
  std::vector<std::unordered_map<int, memory>> args_;
  std::vector<double> best_;
};

int run(int argc, char** argv) {
  if (argc != 3 || std::atoi(argv[2]) < 1) throw std::runtime_error("usage: onednn-by-hand FILE ROUNDS");
  Network network(argv[1]);
  network.run();
  std::vector<double> seconds;
  for (int round = 0; round < std::atoi(argv[2]); ++round) {
    seconds.push_back(network.run());
    network.run_by_steps();
  }
  network.print(std::move(seconds));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "onednn-by-hand: %s\n", error.what());
    return 2;
  }
}
