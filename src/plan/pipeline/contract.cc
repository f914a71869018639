#include "plan/pipeline/contract.h"

#include <algorithm>

#include "base/error.h"
#include "graph/components.h"
#include "graph/quotient.h"
#include "plan/pipeline/check_problem.h"

namespace headrace::plan {
namespace {

size_t index_of(int32_t number) { return static_cast<size_t>(number); }

class Contractor {
 public:
  explicit Contractor(const SplitProblem& problem) : problem_(problem) {}

  ContractedProblem run() {
    find_held_constants();
    check_acyclic();
    number_units();
    made_.graph.devices = classify_devices(problem_);
    made_.graph.max_replicas = problem_.max_replicas;
    add_units();
    check_units();
    add_buffers();
    add_tensors();
    add_constants();
    index_units(made_.graph);
    check_memory();
    return std::move(made_);
  }

 private:
  const SplitNode& node(int32_t number) const { return problem_.nodes[index_of(number)]; }
  int32_t num_nodes() const { return static_cast<int32_t>(problem_.nodes.size()); }

  // A constant that nothing reads stays a node without time.
  void find_held_constants() {
    is_held_.assign(problem_.nodes.size(), false);
    for (const SplitTensor& tensor : problem_.tensors) {
      if (node(tensor.producer).is_constant && !tensor.consumers.empty()) is_held_[index_of(tensor.producer)] = true;
    }
  }

  std::vector<graph::Edge> make_edges() const {
    std::vector<graph::Edge> edges;
    for (const SplitTensor& tensor : problem_.tensors) {
      if (is_held_[index_of(tensor.producer)]) continue;
      for (const int32_t consumer : tensor.consumers) edges.push_back({tensor.producer, consumer});
    }
    return edges;
  }

  // Orders the nodes of the problem, and throws when they have a cycle.
  void check_acyclic() {
    edges_ = make_edges();
    const graph::IndexGraph graph(num_nodes(), edges_);
    std::vector<int32_t> missing(problem_.nodes.size(), 0);
    for (const graph::Edge& edge : edges_) ++missing[index_of(edge.to)];
    for (int32_t i = 0; i < num_nodes(); ++i) {
      if (missing[index_of(i)] == 0) order_.push_back(i);
    }
    for (size_t next = 0; next < order_.size(); ++next) {
      for (const graph::Edge& edge : graph.out(order_[next])) {
        if (--missing[index_of(edge.to)] == 0) order_.push_back(edge.to);
      }
    }
    if (order_.size() == problem_.nodes.size()) return;
    std::vector<int32_t> own(problem_.nodes.size());
    for (int32_t i = 0; i < num_nodes(); ++i) own[index_of(i)] = i;
    const std::vector<int32_t> cycle = graph::order_quotient(graph, own, num_nodes()).cycle;
    std::string names;
    for (const int32_t one : cycle) names += fmt::format("'{}' -> ", node_label(problem_, one));
    throw UserError(fmt::format("the graph has a cycle: {}'{}'", names, node_label(problem_, cycle.front())),
                    {.op = node_label(problem_, cycle.front()), .place = {}});
  }

  // Nodes that must share a stage are the strong components once colocated nodes lead to each other: a path between two
  // of them is then part of a cycle.
  void number_units() {
    made_.unit_of_node.assign(problem_.nodes.size(), -1);
    if (problem_.colocated.empty()) {
      for (const int32_t one : order_) {
        if (!is_held_[index_of(one)]) made_.unit_of_node[index_of(one)] = num_units_++;
      }
      return;
    }
    for (const auto& list : problem_.colocated) {
      for (size_t i = 1; i < list.size(); ++i) {
        edges_.push_back({list[i - 1], list[i]});
        edges_.push_back({list[i], list[i - 1]});
      }
    }
    const auto components = graph::strong_components(graph::IndexGraph(num_nodes(), edges_));
    for (auto component = components.rbegin(); component != components.rend(); ++component) {
      if (is_held_[index_of(component->front())]) continue;
      for (const int32_t one : *component) made_.unit_of_node[index_of(one)] = num_units_;
      ++num_units_;
    }
  }

  int64_t time_of(int32_t number, int32_t kind) const {
    if (node(number).is_constant) return 0;
    const int64_t time = node(number).time_ns[index_of(kind)];
    return time == kCannotRun ? kNever : time;
  }

  void add_units() {
    SplitGraph& graph = made_.graph;
    graph.num_units = num_units_;
    const size_t classes = graph.num_classes(), units = index_of(num_units_);
    graph.compute_ns.assign(units * classes, 0);
    graph.constant_bytes.assign(units, 0);
    for (int32_t one = 0; one < num_nodes(); ++one) {
      if (is_held_[index_of(one)]) continue;
      const size_t unit = index_of(made_.unit_of_node[index_of(one)]);
      for (size_t i = 0; i < classes; ++i) {
        int64_t& sum = graph.compute_ns[unit * classes + i];
        sum = std::min(kNever, sum + time_of(one, graph.devices.classes[i].kind));
      }
      graph.constant_bytes[unit] += node(one).constant_bytes;
    }
  }

  // Returns the buffers, whose nodes get the numbers that `number` gives them.
  template <typename Number>
  BufferTable numbered_buffers(const Number& number) const {
    BufferTable table;
    for (const SplitBuffer& buffer : problem_.buffers) {
      const int32_t producer = number(buffer.producer);
      append_numbers(buffer.consumers, producer, number, table.readers);
      table.readers.close();
      table.producer.push_back(producer);
      table.bytes.push_back(buffer.size_bytes);
    }
    return table;
  }

  // A unit of one node holds the buffers between units; those within a unit of several are part of its own memory.
  void add_buffers() {
    SplitGraph& graph = made_.graph;
    std::vector<int32_t> sizes(index_of(num_units_), 0);
    for (const int32_t unit : made_.unit_of_node) {
      if (unit >= 0) ++sizes[index_of(unit)];
    }
    graph.buffers = numbered_buffers([&](int32_t one) { return made_.unit_of_node[index_of(one)]; });
    graph.buffers.written.assign(sizes.size(), -1);
    for (const int32_t size : sizes) graph.buffers.holds.push_back(size == 1);
    graph.working_bytes.assign(sizes.size(), 0);
    if (!problem_.colocated.empty()) graph.working_bytes = memory_within_units();
    for (int32_t one = 0; one < num_nodes(); ++one) {
      const int32_t unit = made_.unit_of_node[index_of(one)];
      if (unit < 0 || !graph.buffers.holds[index_of(unit)]) continue;
      graph.buffers.written[index_of(unit)] = node(one).buffer;
      graph.working_bytes[index_of(unit)] = node(one).working_bytes;
    }
  }

  std::vector<int64_t> memory_within_units() const {
    BufferTable buffers = numbered_buffers([](int32_t one) { return one; });
    buffers.holds.assign(problem_.nodes.size(), true);
    std::vector<int64_t> own_bytes;
    for (const SplitNode& one : problem_.nodes) {
      buffers.written.push_back(one.buffer);
      own_bytes.push_back(one.working_bytes);
    }
    return working_memory(buffers, own_bytes, made_.unit_of_node, index_of(num_units_));
  }

  void check_units() const {
    const SplitGraph& graph = made_.graph;
    for (int32_t one = 0; one < num_nodes(); ++one) {
      const int32_t unit = made_.unit_of_node[index_of(one)];
      if (unit < 0 || graph.fastest(unit) < kNever) continue;
      const auto& classes = graph.devices.classes;
      const ErrorPlace place{.op = node_label(problem_, one), .place = {}};
      const auto can_run = [&](int32_t number, const DeviceClass& device) {
        return time_of(number, device.kind) < kNever;
      };
      if (std::none_of(classes.begin(), classes.end(), [&](const DeviceClass& device) { return can_run(one, device); }))
        throw UserError(fmt::format("no device can run it: it has no time for {}", kinds_of_devices()), place);
      std::string others;
      for (int32_t other = 0; other < num_nodes(); ++other) {
        if (other != one && made_.unit_of_node[index_of(other)] == unit)
          others += fmt::format("{}'{}'", others.empty() ? "" : ", ", node_label(problem_, other));
      }
      throw UserError(
          fmt::format("it must share a stage with {} (colocated, or on a path between colocated nodes, which "
                      "would be a cycle through another stage), and no device can run them all; colocate "
                      "fewer nodes",
                      others),
          place);
    }
  }

  std::string kinds_of_devices() const {
    std::vector<bool> seen(problem_.kinds.size(), false);
    std::string names;
    for (const SplitDevice& device : problem_.devices) {
      if (seen[index_of(device.kind)]) continue;
      seen[index_of(device.kind)] = true;
      names += fmt::format("{}'{}'", names.empty() ? "" : ", ", problem_.kinds[index_of(device.kind)]);
    }
    return names;
  }

  // Appends the units of nodes, ascending and each once, without `left_out`; returns how many.
  size_t append_units(const std::vector<int32_t>& nodes, int32_t left_out, Lists& lists) const {
    return append_numbers(nodes, left_out, [&](int32_t one) { return made_.unit_of_node[index_of(one)]; }, lists);
  }

  template <typename Number>
  static size_t append_numbers(const std::vector<int32_t>& nodes, int32_t left_out, const Number& number,
                               Lists& lists) {
    const size_t begin = lists.items.size();
    for (const int32_t one : nodes) {
      if (number(one) != left_out) lists.items.push_back(number(one));
    }
    const auto first = lists.items.begin() + static_cast<std::ptrdiff_t>(begin);
    std::sort(first, lists.items.end());
    lists.items.erase(std::unique(first, lists.items.end()), lists.items.end());
    return lists.items.size() - begin;
  }

  void add_tensors() {
    SplitGraph& graph = made_.graph;
    for (const SplitTensor& tensor : problem_.tensors) {
      if (is_held_[index_of(tensor.producer)]) continue;
      const int32_t producer = made_.unit_of_node[index_of(tensor.producer)];
      if (append_units(tensor.consumers, producer, graph.tensor_consumers) == 0) continue;
      graph.tensor_consumers.close();
      graph.tensor_producer.push_back(producer);
      graph.tensor_bytes.push_back(tensor.size_bytes);
    }
  }

  // A constant may have several tensors; its readers are those of all of them.
  void add_constants() {
    std::vector<std::vector<int32_t>> readers(problem_.nodes.size());
    for (const SplitTensor& tensor : problem_.tensors) {
      auto& list = readers[index_of(tensor.producer)];
      if (is_held_[index_of(tensor.producer)])
        list.insert(list.end(), tensor.consumers.begin(), tensor.consumers.end());
    }
    SplitGraph& graph = made_.graph;
    for (int32_t one = 0; one < num_nodes(); ++one) {
      if (!is_held_[index_of(one)]) continue;
      if (append_units(readers[index_of(one)], -1, graph.shared_consumers) > 1) {
        graph.shared_consumers.close();
        graph.shared_bytes.push_back(node(one).constant_bytes);
      } else {
        graph.constant_bytes[index_of(graph.shared_consumers.items.back())] += node(one).constant_bytes;
        graph.shared_consumers.items.pop_back();
      }
    }
  }

  void check_memory() const {
    const SplitGraph& graph = made_.graph;
    for (int32_t one = 0; one < num_nodes(); ++one) {
      const int32_t unit = made_.unit_of_node[index_of(one)];
      if (unit < 0) continue;
      int64_t bytes = graph.constant_bytes[index_of(unit)] + graph.working_bytes[index_of(unit)];
      for (const int32_t shared : graph.shared_of_unit[index_of(unit)]) bytes += graph.shared_bytes[index_of(shared)];
      int64_t largest = 0;
      for (size_t i = 0; i < graph.num_classes(); ++i) {
        if (graph.compute(unit, i) < kNever) largest = std::max(largest, graph.devices.classes[i].memory_bytes);
      }
      if (bytes <= largest) continue;
      throw UserError(fmt::format("no device has the memory for it: it needs {} bytes with what must share its stage, "
                                  "and the largest device that can run it has {}",
                                  bytes, largest),
                      {.op = node_label(problem_, one), .place = {}});
    }
  }

  const SplitProblem& problem_;
  ContractedProblem made_;
  std::vector<bool> is_held_;       // by node: a constant that stages hold
  std::vector<graph::Edge> edges_;  // between nodes that are not held
  std::vector<int32_t> order_;      // order of the nodes
  int32_t num_units_ = 0;
};

}  // namespace

ContractedProblem contract_problem(const SplitProblem& problem) {
  check_problem(problem);
  return Contractor(problem).run();
}

}  // namespace headrace::plan
