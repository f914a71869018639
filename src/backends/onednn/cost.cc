// The time of a primitive is a call and one of two things. A convolution or a product takes the greater of what its
// arithmetic takes at a share of the machine's peak, and what its weights take: from the L2 cache where they fit, else
// from memory. Its second operand counts as weights, whether it is a constant or not. Every other primitive takes what
// its tensors take at a share of the bandwidth of the smallest cache that holds them. README.md says how the shares
// were measured.
#include "backends/onednn/cost.h"

#include <algorithm>
#include <string>

#include "backends/onednn/fuse.h"
#include "backends/onednn/network.h"
#include "backends/onednn/read_graph.h"

namespace headrace_onednn {

namespace {

// Shares of the peak.
constexpr double kPointwiseShare = 0.9;     // convolutions with a kernel of one element
constexpr double kSpatialShare = 0.97;      // other kernels
constexpr double kFewChannelsShare = 0.85;  // kernels over fewer input channels than a vector has elements
constexpr double kDepthwiseShare = 0.45;
constexpr double kStridedDepthwiseShare = 0.3;
constexpr double kProductShare = 0.9;  // matrix products and dense layers
constexpr int64_t kVectorElements = 16;

// Shares of bandwidths.
constexpr double kCopyShare = 0.45;          // primitives that pass over tensors
constexpr double kCachedWeightsShare = 0.8;  // weights that the L2 cache keeps
constexpr double kWeightsShare = 0.45;       // others, which come from memory

constexpr double kCallSeconds = 0.5e-6;  // starting one primitive

constexpr double kElementBytes = sizeof(float);

// The parts that the time of one primitive is made of.
struct Work {
  double operations = 0;
  double share = kProductShare;  // share of the peak
  double bytes = 0;              // bytes of tensors that are read or written
  double weights_bytes = 0;
};

// Returns the number of elements of a tensor, which may exceed an int64_t.
double elements_of(const Dims& dims) {
  double elements = 1;
  for (const int64_t dim : dims) elements *= static_cast<double>(dim);
  return elements;
}

double bytes_of(const Network& network, int32_t tensor) {
  return kElementBytes * elements_of(network.tensors[static_cast<size_t>(tensor)].dims);
}

double share_of(const Dims& weights, const Op& op) {
  const size_t axes = weights.size() - 2;
  const bool is_pointwise = std::all_of(weights.begin() + 2, weights.end(), [](int64_t dim) { return dim == 1; });
  const bool has_steps = std::any_of(op.sizes.begin() + 1, op.sizes.begin() + 1 + static_cast<int64_t>(axes),
                                     [](int64_t stride) { return stride > 1; });
  if (op.sizes[0] > 1 && weights[1] == 1) return has_steps ? kStridedDepthwiseShare : kDepthwiseShare;
  if (is_pointwise) return kPointwiseShare;
  return weights[1] < kVectorElements ? kFewChannelsShare : kSpatialShare;
}

// Multiply-adds of an element of the result.
double products_of(const Network& network, const Op& op) {
  const Dims& first = network.tensors[static_cast<size_t>(op.inputs[0])].dims;
  const Dims& second = network.tensors[static_cast<size_t>(op.inputs[1])].dims;
  if (op.kind == OpKind::matmul) return static_cast<double>(first[first.size() - (op.sizes[0] != 0 ? 2 : 1)]);
  return elements_of(Dims(second.begin() + 1, second.end()));
}

Work work_of(const Network& network, const Op& op) {
  Work work{.bytes = bytes_of(network, op.output)};
  const bool is_product = op.kind == OpKind::convolution || op.kind == OpKind::dense || op.kind == OpKind::matmul;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const bool is_constant = network.tensors[static_cast<size_t>(op.inputs[i])].constant >= 0;
    const bool is_weights = is_product && (i == 1 || is_constant);
    (is_weights ? work.weights_bytes : work.bytes) += bytes_of(network, op.inputs[i]);
  }
  if (!is_product) return work;
  const Dims& result = network.tensors[static_cast<size_t>(op.output)].dims;
  work.operations = 2 * products_of(network, op) * elements_of(result);
  if (op.kind == OpKind::convolution)
    work.share = share_of(network.tensors[static_cast<size_t>(op.inputs[1])].dims, op);
  return work;
}

double memory_rate(const hr_machine& machine, int threads) {
  return std::min(machine.memory_rate * threads, machine.all_memory_rate);
}

// The bandwidth of the smallest cache that holds so many bytes.
double rate_for(double bytes, const hr_machine& machine, int threads) {
  if (bytes <= static_cast<double>(machine.l2_bytes) * threads) return machine.l2_rate * threads;
  return bytes <= static_cast<double>(machine.l3_bytes) ? machine.l3_rate * threads : memory_rate(machine, threads);
}

double copy_seconds(double bytes, const hr_machine& machine, int threads) {
  return bytes / (rate_for(bytes, machine, threads) * kCopyShare);
}

// Returns the bytes of the operands of a concat that are copied. Those that lie in the result one after another are
// made in its memory (primitives.cc), but for constants, and for operands that are there a second time.
double copied_bytes(const Network& network, const Op& op) {
  const Dims& result = network.tensors[static_cast<size_t>(op.output)].dims;
  const bool is_in_place =
      std::all_of(result.begin(), result.begin() + op.sizes[0], [](int64_t dim) { return dim == 1; });
  double bytes = 0;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const auto own = op.inputs.begin() + static_cast<std::ptrdiff_t>(i);
    const bool is_there = std::find(op.inputs.begin(), own, *own) != own;
    const bool is_constant = network.tensors[static_cast<size_t>(*own)].constant >= 0;
    if (!is_in_place || is_there || is_constant) bytes += bytes_of(network, *own);
  }
  return bytes;
}

double concat_seconds(const Network& network, const Op& op, const hr_machine& machine, int threads) {
  const double bytes = copied_bytes(network, op);
  if (bytes == 0) return 0;
  return copy_seconds(2 * bytes, machine, threads) + kCallSeconds + (threads > 1 ? machine.fork_seconds : 0);
}

double seconds_of(const Network& network, const Op& op, const hr_machine& machine, int threads) {
  if (op.kind == OpKind::view) return 0;
  if (op.kind == OpKind::concat) return concat_seconds(network, op, machine, threads);
  const Work work = work_of(network, op);
  const double arithmetic = work.operations / (machine.operations_per_second * threads * work.share);
  const bool stay = work.weights_bytes <= static_cast<double>(machine.l2_bytes) * threads;
  const double rate =
      stay ? machine.l2_rate * threads * kCachedWeightsShare : memory_rate(machine, threads) * kWeightsShare;
  const double weights = work.weights_bytes / rate;
  // The tensors of a product are read by the loops of its arithmetic.
  const double tensors = work.operations > 0 ? 0 : copy_seconds(work.bytes, machine, threads);
  const double fork = threads > 1 ? machine.fork_seconds : 0;
  return std::max({arithmetic, weights, tensors}) + kCallSeconds + fork;
}

const hr_machine* machine_of(const hr_cost_query& query) {
  return HR_HAS_FIELD(hr_cost_query, &query, machine) ? query.machine : nullptr;
}

bool is_post_op(OpKind kind) { return kind == OpKind::eltwise || kind == OpKind::binary; }

// The ops of the last call: one, but for a composite that is two, each a pass over the result of the one before.
size_t num_last_ops(const hr_graph_api& api, const hr_cost_query& query) {
  const char* name = api.op(query.graph, query.node);
  return name != nullptr && std::string(name) == "onednn.twice_gelu" ? 2 : 1;
}

}  // namespace

double network_seconds(const Network& network, const hr_machine& machine, int threads) {
  double seconds = 0;
  for (const Op& op : network.ops) seconds += seconds_of(network, op, machine, threads);
  return seconds;
}

double call_seconds(const hr_graph_api& api, const hr_cost_query& query) {
  const hr_machine* machine = machine_of(query);
  Network network;
  if (machine == nullptr || read_graph(api, query.graph, network)) return -1;
  return network_seconds(network, *machine, query.num_threads);
}

double fused_seconds(const hr_graph_api& api, const hr_cost_query& query) {
  const hr_machine* machine = machine_of(query);
  Network network;
  if (machine == nullptr || read_graph(api, query.graph, network) || network.outputs.size() != 1) return 0;
  const size_t count = num_last_ops(api, query);
  if (network.ops.size() <= count) return 0;
  double seconds = 0;
  for (size_t i = network.ops.size() - count; i < network.ops.size(); ++i) {
    if (!is_post_op(network.ops[i].kind)) return 0;
    seconds += seconds_of(network, network.ops[i], *machine, query.num_threads);
  }
  fuse(network);
  const bool is_fused = std::any_of(network.ops.begin(), network.ops.end(), [&](const Op& op) {
    return op.output == network.outputs[0] && !is_post_op(op.kind);
  });
  return is_fused ? seconds : 0;
}

double border_seconds(const hr_border_query& query) {
  constexpr int32_t kConvolutionAxes = 4;
  if (query.machine == nullptr || query.tensor.ndim < kConvolutionAxes) return 0;
  const Dims dims(query.tensor.shape, query.tensor.shape + query.tensor.ndim);
  return copy_seconds(2 * kElementBytes * elements_of(dims), *query.machine, query.num_threads) + kCallSeconds;
}

}  // namespace headrace_onednn
