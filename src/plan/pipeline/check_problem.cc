#include "plan/pipeline/check_problem.h"

#include <algorithm>

#include "base/error.h"

namespace headrace::plan {
namespace {

// Sums of all times stay far below kNever (device_classes.h).
constexpr int64_t kMaxTotal = int64_t{1} << 60;

bool is_node(const SplitProblem& problem, int32_t node) {
  return node >= 0 && static_cast<size_t>(node) < problem.nodes.size();
}

void check_devices(const SplitProblem& problem) {
  if (problem.devices.empty()) throw_user_error("there is no device to run the pipeline; name at least one");
  for (size_t i = 0; i < problem.devices.size(); ++i) {
    const SplitDevice& device = problem.devices[i];
    const ErrorPlace place{.op = {}, .place = fmt::format("device '{}'", device.name)};
    if (device.kind < 0 || static_cast<size_t>(device.kind) >= problem.kinds.size())
      throw UserError(fmt::format("its kind is {}, there are {} kinds", device.kind, problem.kinds.size()), place);
    if (device.memory_bytes < 0) throw UserError(fmt::format("its memory is {} bytes", device.memory_bytes), place);
    if (!device.links.empty() && device.links.size() != problem.devices.size())
      throw UserError(fmt::format("it has {} links, there are {} devices; give one to each, or none",
                                  device.links.size(), problem.devices.size()),
                      place);
    for (const SplitLink& link : device.links) {
      if (link.bytes_per_second < 0 || link.latency_ns < 0)
        throw UserError("a link's bandwidth or latency is negative", place);
    }
  }
}

void check_nodes(const SplitProblem& problem) {
  if (problem.nodes.empty()) throw_user_error("there is no node to split into stages");
  int64_t total = 0;
  const auto add = [&](int64_t value, const ErrorPlace& place) {
    if (value < 0 || value > kMaxTotal - total)
      throw UserError(fmt::format("a time or size is {}, or all together pass 2^60", value), place);
    total += value;
  };
  for (size_t i = 0; i < problem.nodes.size(); ++i) {
    const SplitNode& node = problem.nodes[i];
    const ErrorPlace place{.op = node_label(problem, static_cast<int32_t>(i)), .place = {}};
    if (!node.is_constant && node.time_ns.size() != problem.kinds.size())
      throw UserError(fmt::format("it has {} times, there are {} kinds of devices; give one for each",
                                  node.time_ns.size(), problem.kinds.size()),
                      place);
    for (const int64_t time : node.time_ns) add(time == kCannotRun ? 0 : time, place);
    add(node.constant_bytes, place);
    add(node.working_bytes, place);
    if (node.buffer < -1 || node.buffer >= static_cast<int64_t>(problem.buffers.size()))
      throw UserError(fmt::format("its buffer is {} of {}", node.buffer, problem.buffers.size()), place);
  }
}

void check_tensors(const SplitProblem& problem) {
  int64_t total = 0;
  for (size_t i = 0; i < problem.tensors.size(); ++i) {
    const SplitTensor& tensor = problem.tensors[i];
    const ErrorPlace place{.op = {}, .place = fmt::format("tensors[{}]", i)};
    if (!is_node(problem, tensor.producer))
      throw UserError(fmt::format("its producer is the node {} of {}", tensor.producer, problem.nodes.size()), place);
    for (const int32_t consumer : tensor.consumers) {
      if (!is_node(problem, consumer))
        throw UserError(fmt::format("a consumer is the node {} of {}", consumer, problem.nodes.size()), place);
      if (problem.nodes[static_cast<size_t>(consumer)].is_constant)
        throw UserError("a constant must not have inputs; its bytes are constant_bytes",
                        {.op = node_label(problem, consumer), .place = place.place});
    }
    if (tensor.size_bytes < 0 || tensor.size_bytes > kMaxTotal / (2 * kBorderCopies) - total)
      throw UserError(fmt::format("its size is {} bytes, or all together pass 2^58", tensor.size_bytes), place);
    total += tensor.size_bytes;
  }
}

void check_buffers(const SplitProblem& problem) {
  int64_t total = 0;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const SplitBuffer& buffer = problem.buffers[i];
    const ErrorPlace place{.op = {}, .place = fmt::format("buffers[{}]", i)};
    std::vector<int32_t> nodes = buffer.consumers;
    nodes.push_back(buffer.producer);
    for (const int32_t node : nodes) {
      if (!is_node(problem, node))
        throw UserError(fmt::format("it has the node {} of {}", node, problem.nodes.size()), place);
      if (problem.nodes[static_cast<size_t>(node)].is_constant)
        throw UserError("a constant must not have a buffer; its bytes are constant_bytes",
                        {.op = node_label(problem, node), .place = place.place});
    }
    for (const int32_t consumer : buffer.consumers) {
      if (problem.nodes[static_cast<size_t>(consumer)].buffer == static_cast<int32_t>(i))
        throw UserError("a node must not write a buffer that it reads",
                        {.op = node_label(problem, consumer), .place = place.place});
    }
    if (buffer.size_bytes < 0 || buffer.size_bytes > kMaxTotal - total)
      throw UserError(fmt::format("its size is {} bytes, or all together pass 2^60", buffer.size_bytes), place);
    total += buffer.size_bytes;
  }
}

// Throws UserError when all transfers together could take too long, at the largest latency and the lowest bandwidth of
// any link.
void check_transfers(const SplitProblem& problem) {
  double latency = 0, per_byte = 0, total = 0;
  for (const SplitDevice& device : problem.devices) {
    for (const SplitLink& link : device.links) {
      latency = std::max(latency, static_cast<double>(link.latency_ns));
      if (link.bytes_per_second > 0) per_byte = std::max(per_byte, 1e9 / static_cast<double>(link.bytes_per_second));
    }
  }
  for (const SplitTensor& tensor : problem.tensors)
    total += static_cast<double>(tensor.consumers.size() + 1) *
             (latency + per_byte * static_cast<double>(tensor.size_bytes));
  if (total > static_cast<double>(kMaxTotal))
    throw UserError("transfers over the slowest link would take more than 2^60 ns; check bandwidths and latencies",
                    {.op = {}, .place = "devices"});
}

}  // namespace

std::string node_label(const SplitProblem& problem, int32_t node) {
  const std::string& name = problem.nodes[static_cast<size_t>(node)].name;
  return name.empty() ? fmt::format("#{}", node) : name;
}

void check_problem(const SplitProblem& problem) {
  check_devices(problem);
  check_nodes(problem);
  check_tensors(problem);
  check_buffers(problem);
  check_transfers(problem);
  if (problem.max_replicas < 1) throw_user_error("max_replicas is {}, below 1", problem.max_replicas);
  for (size_t i = 0; i < problem.colocated.size(); ++i) {
    for (const int32_t node : problem.colocated[i]) {
      const std::string place = fmt::format("colocated[{}]", i);
      if (!is_node(problem, node))
        throw UserError(fmt::format("it has the node {} of {}", node, problem.nodes.size()),
                        {.op = {}, .place = place});
      if (problem.nodes[static_cast<size_t>(node)].is_constant)
        throw UserError("a constant must not be colocated; each stage that reads it holds it",
                        {.op = node_label(problem, node), .place = place});
    }
  }
}

}  // namespace headrace::plan
