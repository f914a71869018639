// Splitting into stages: random problems against an exhaustive search that follows the
// definition in split.h.
#include "plan/pipeline/split.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/error.h"
#include "executors/pipeline/slots.h"
#include "kit/property.h"
#include "plan/pipeline/around_largest.h"
#include "plan/pipeline/branch_and_bound.h"
#include "plan/pipeline/contract.h"
#include "plan/pipeline/inseparable.h"
#include "plan/pipeline/stage_search.h"

namespace headrace::plan {
namespace {

size_t at(int32_t number) { return static_cast<size_t>(number); }

// A stage of an arrangement: `replicas` devices like `device`.
struct OracleStage {
  int32_t device = 0;
  int32_t replicas = 1;
};

struct OracleCost {
  int64_t compute = 0, in = 0, out = 0, memory = 0, period = 0;
  bool fits = true;
};

int64_t transfer_time(const SplitProblem& problem, int32_t from, int32_t to, int64_t bytes) {
  const auto& links = problem.devices[at(from)].links;
  if (links.empty()) return 0;
  const SplitLink& link = links[at(to)];
  if (link.bytes_per_second == 0) return link.latency_ns;
  return link.latency_ns + (bytes * 1'000'000'000 + link.bytes_per_second - 1) / link.bytes_per_second;
}

bool is_held(const SplitProblem& problem, int32_t node) {
  return problem.nodes[at(node)].is_constant &&
         std::any_of(problem.tensors.begin(), problem.tensors.end(),
                     [&](const SplitTensor& tensor) { return tensor.producer == node && !tensor.consumers.empty(); });
}

// Returns for each node the least number of a node that must share its stage: two nodes must that lead to each other
// once colocated nodes do.
std::vector<int32_t> oracle_units(const SplitProblem& problem) {
  const size_t count = problem.nodes.size();
  std::vector<std::vector<bool>> leads(count, std::vector<bool>(count, false));
  for (size_t i = 0; i < count; ++i) leads[i][i] = true;
  for (const SplitTensor& tensor : problem.tensors) {
    if (is_held(problem, tensor.producer)) continue;
    for (const int32_t consumer : tensor.consumers) leads[at(tensor.producer)][at(consumer)] = true;
  }
  for (const auto& list : problem.colocated) {
    for (const int32_t one : list) {
      for (const int32_t other : list) leads[at(one)][at(other)] = true;
    }
  }
  for (size_t via = 0; via < count; ++via) {
    for (size_t from = 0; from < count; ++from) {
      for (size_t to = 0; to < count; ++to) leads[from][to] = leads[from][to] || (leads[from][via] && leads[via][to]);
    }
  }
  std::vector<int32_t> units;
  for (size_t i = 0; i < count; ++i) {
    size_t least = 0;
    while (!leads[i][least] || !leads[least][i]) ++least;
    units.push_back(static_cast<int32_t>(least));
  }
  return units;
}

// Returns the working memory of a node in its stage, by the definition.
int64_t oracle_need(const SplitProblem& problem, const std::vector<int32_t>& units,
                    const std::vector<int32_t>& stage_of, size_t node) {
  int64_t need = problem.nodes[node].working_bytes;
  const bool is_alone = std::count(units.begin(), units.end(), units[node]) == 1;
  const auto is_here = [&](int32_t one) {
    return stage_of[at(one)] == stage_of[node] && (is_alone || units[at(one)] == units[node]);
  };
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const SplitBuffer& buffer = problem.buffers[i];
    const std::vector<int32_t>& consumers = buffer.consumers;
    const bool reads = std::count(consumers.begin(), consumers.end(), static_cast<int32_t>(node)) > 0;
    if (!reads && problem.nodes[node].buffer != static_cast<int32_t>(i)) continue;
    if (is_here(buffer.producer) && std::all_of(consumers.begin(), consumers.end(), is_here)) need += buffer.size_bytes;
  }
  return need;
}

// Returns what a stage's own nodes and constants cost, by the definition.
OracleCost own_cost(const SplitProblem& problem, const std::vector<int32_t>& units,
                    const std::vector<int32_t>& stage_of, size_t stage, const SplitDevice& device) {
  OracleCost cost;
  int64_t working = 0;
  for (size_t node = 0; node < problem.nodes.size(); ++node) {
    const SplitNode& one = problem.nodes[node];
    if (is_held(problem, static_cast<int32_t>(node))) {
      bool is_read = false;
      for (const SplitTensor& tensor : problem.tensors) {
        for (const int32_t consumer : tensor.consumers)
          is_read = is_read || (at(tensor.producer) == node && at(stage_of[at(consumer)]) == stage);
      }
      if (is_read) cost.memory += one.constant_bytes;
      continue;
    }
    if (at(stage_of[node]) != stage) continue;
    cost.memory += one.constant_bytes;
    working = std::max(working, oracle_need(problem, units, stage_of, node));
    const int64_t time = one.is_constant ? 0 : one.time_ns[at(device.kind)];
    if (time == kCannotRun) cost.fits = false;
    cost.compute += time;
  }
  cost.memory += working;
  return cost;
}

std::set<int32_t> readers_of(const SplitTensor& tensor, const std::vector<int32_t>& stage_of) {
  std::set<int32_t> readers;
  for (const int32_t consumer : tensor.consumers) readers.insert(stage_of[at(consumer)]);
  readers.erase(stage_of[at(tensor.producer)]);
  return readers;
}

// Returns the slots that the pipeline gives to each pair of stages that a tensor joins.
std::map<std::pair<int32_t, int32_t>, int64_t> oracle_slots(const SplitProblem& problem,
                                                            const std::vector<int32_t>& stage_of,
                                                            const std::vector<OracleStage>& stages) {
  std::map<std::pair<int32_t, int32_t>, int64_t> slots;
  for (const SplitTensor& tensor : problem.tensors) {
    if (is_held(problem, tensor.producer)) continue;
    for (const int32_t to : readers_of(tensor, stage_of)) slots[{stage_of[at(tensor.producer)], to}] = 0;
  }
  std::vector<executors::StageEdge> edges;
  for (const auto& [ends, count] : slots) edges.push_back({ends.first, ends.second});
  const std::vector<int32_t> needed = executors::slots_of_edges(static_cast<int32_t>(stages.size()), edges);
  auto next = needed.begin();
  for (auto& [ends, count] : slots)
    count = *next++ + stages[at(ends.first)].replicas - 1 + stages[at(ends.second)].replicas - 1;
  return slots;
}

// Adds what the tensors between stages cost, by the definition.
void add_tensor_costs(const SplitProblem& problem, const std::vector<int32_t>& stage_of,
                      const std::vector<OracleStage>& stages, std::vector<OracleCost>& costs) {
  const auto slots = oracle_slots(problem, stage_of, stages);
  for (const SplitTensor& tensor : problem.tensors) {
    if (is_held(problem, tensor.producer)) continue;
    const int32_t from = stage_of[at(tensor.producer)];
    const std::set<int32_t> readers = readers_of(tensor, stage_of);
    int64_t most = 0;
    for (const int32_t to : readers) most = std::max(most, slots.at({from, to}));
    for (const int32_t to : readers) {
      // Two stages on devices of one class are on two devices, whose link all such pairs share.
      int32_t to_device = stages[at(to)].device;
      const int32_t from_device = stages[at(from)].device;
      if (to_device == from_device) to_device = from_device + 1;
      const int64_t time = transfer_time(problem, from_device, to_device, tensor.size_bytes);
      costs[at(from)].out += time;
      costs[at(to)].in += time;
      costs[at(to)].memory += most * tensor.size_bytes;
    }
    costs[at(from)].memory += most * tensor.size_bytes;
  }
}

// Returns the cost of each stage by the definition. A stage's device is one of its replicas, which are all alike.
std::vector<OracleCost> defined_costs(const SplitProblem& problem, const std::vector<int32_t>& units,
                                      const std::vector<int32_t>& stage_of, const std::vector<OracleStage>& stages) {
  std::vector<OracleCost> costs;
  for (size_t s = 0; s < stages.size(); ++s)
    costs.push_back(own_cost(problem, units, stage_of, s, problem.devices[at(stages[s].device)]));
  add_tensor_costs(problem, stage_of, stages, costs);
  for (size_t s = 0; s < stages.size(); ++s) {
    OracleCost& cost = costs[s];
    const SplitDevice& device = problem.devices[at(stages[s].device)];
    const int64_t moved = cost.in + cost.out;
    const int64_t time = device.overlaps ? std::max(cost.compute, moved) : cost.compute + moved;
    cost.period = (time + stages[s].replicas - 1) / stages[s].replicas;
    cost.fits = cost.fits && cost.memory <= device.memory_bytes;
  }
  return costs;
}

// Devices come in classes of neighbours: `first` is the first device of each, `count` how many there are.
struct SplitCase {
  SplitProblem problem;
  std::vector<int32_t> first, count;
};

// Tries every way to give stages to nodes and devices to stages that could have a period below `best`.
class Oracle {
 public:
  explicit Oracle(const SplitCase& one, std::optional<int64_t> best = {})
      : case_(one), problem_(one.problem), units_(oracle_units(one.problem)), best_(best) {
    stage_of_.assign(problem_.nodes.size(), -1);
    order_.resize(problem_.nodes.size());
    std::iota(order_.begin(), order_.end(), 0);
    sort_topologically();
  }

  // Returns the least period, or `best` when none is below it; nothing when nothing fits.
  std::optional<int64_t> run() {
    const auto devices = static_cast<int32_t>(problem_.devices.size());
    for (int32_t stages = 1; stages <= devices; ++stages) {
      num_stages_ = stages;
      give_stage(0);
    }
    return best_;
  }

 private:
  void sort_topologically() {
    for (bool changed = true; changed;) {
      changed = false;
      for (const SplitTensor& tensor : problem_.tensors) {
        for (const int32_t consumer : tensor.consumers) {
          const auto producer_at = std::find(order_.begin(), order_.end(), tensor.producer);
          const auto consumer_at = std::find(order_.begin(), order_.end(), consumer);
          if (producer_at < consumer_at) continue;
          std::rotate(consumer_at, producer_at, producer_at + 1);
          changed = true;
        }
      }
    }
  }

  void give_stage(size_t place) {
    if (place == order_.size()) return give_devices();
    const int32_t node = order_[place];
    if (is_held(problem_, node)) return give_stage(place + 1);
    int32_t low = 0, high = num_stages_ - 1;
    for (const SplitTensor& tensor : problem_.tensors) {
      if (!is_held(problem_, tensor.producer) && std::count(tensor.consumers.begin(), tensor.consumers.end(), node) > 0)
        low = std::max(low, stage_of_[at(tensor.producer)]);
    }
    for (const auto& list : problem_.colocated) {
      if (std::count(list.begin(), list.end(), node) == 0) continue;
      for (const int32_t other : list) {
        if (other == node || stage_of_[at(other)] < 0) continue;
        low = std::max(low, stage_of_[at(other)]);
        high = std::min(high, stage_of_[at(other)]);
      }
    }
    for (int32_t stage = low; stage <= high; ++stage) {
      stage_of_[at(node)] = stage;
      if (may_have_device(stage)) give_stage(place + 1);
    }
    stage_of_[at(node)] = -1;
  }

  bool may_have_device(int32_t stage) const {
    for (size_t i = 0; i < case_.first.size(); ++i) {
      if (may_run_on(stage, i, std::min(case_.count[i], problem_.max_replicas))) return true;
    }
    return false;
  }

  // Returns whether the nodes that the stage has so far fit into such a device, in less time than the best period.
  bool may_run_on(int32_t stage, size_t device_class, int32_t replicas) const {
    const SplitDevice& device = problem_.devices[at(case_.first[device_class])];
    int64_t compute = 0, bytes = 0;
    for (size_t node = 0; node < problem_.nodes.size(); ++node) {
      const SplitNode& one = problem_.nodes[node];
      if (stage_of_[node] != stage) continue;
      bytes += one.constant_bytes;
      if (one.is_constant) continue;
      if (one.time_ns[at(device.kind)] == kCannotRun) return false;
      compute += one.time_ns[at(device.kind)];
    }
    return bytes <= device.memory_bytes && (!best_ || (compute + replicas - 1) / replicas < *best_);
  }

  void give_devices() {
    for (int32_t stage = 0; stage < num_stages_; ++stage) {
      if (std::count(stage_of_.begin(), stage_of_.end(), stage) == 0) return;
    }
    left_ = case_.count;
    give_device();
  }

  void give_device() {
    if (stages_.size() == at(num_stages_)) return compare();
    for (size_t i = 0; i < left_.size(); ++i) {
      for (int32_t replicas = 1; replicas <= std::min(left_[i], problem_.max_replicas); ++replicas) {
        if (!may_run_on(static_cast<int32_t>(stages_.size()), i, replicas)) continue;
        left_[i] -= replicas;
        stages_.push_back({case_.first[i], replicas});
        give_device();
        stages_.pop_back();
        left_[i] += replicas;
      }
    }
  }

  void compare() {
    int64_t period = 0;
    for (const OracleCost& cost : defined_costs(problem_, units_, stage_of_, stages_)) {
      if (!cost.fits) return;
      period = std::max(period, cost.period);
    }
    if (!best_ || period < *best_) best_ = period;
  }

  const SplitCase& case_;
  const SplitProblem& problem_;
  const std::vector<int32_t> units_;
  int32_t num_stages_ = 1;
  std::vector<int32_t> order_, stage_of_, left_;
  std::vector<OracleStage> stages_;
  std::optional<int64_t> best_;
};

void add_random_devices(kit::Random& random, SplitCase& one, int64_t max_devices, bool unlike_links) {
  const int64_t devices = random.integer(1, max_devices);
  std::vector<int32_t> class_of;
  while (static_cast<int64_t>(class_of.size()) < devices) {
    const auto place = static_cast<int32_t>(one.first.size());
    const int64_t left = devices - static_cast<int64_t>(class_of.size());
    const auto count = static_cast<int32_t>(random.chance(0.5F) ? random.integer(1, left) : 1);
    one.first.push_back(static_cast<int32_t>(class_of.size()));
    one.count.push_back(count);
    // Memories differ by class, so that no two classes are alike.
    SplitDevice device{.name = {},
                       .kind = static_cast<int32_t>(random.integer(0, 1)),
                       .memory_bytes = (random.chance(0.5F) ? random.integer(20, 120) : 1000) * 8 + place,
                       .overlaps = random.chance(0.3F)};
    for (int32_t i = 0; i < count; ++i) {
      device.name = fmt::format("d{}", class_of.size());
      one.problem.devices.push_back(device);
      class_of.push_back(place);
    }
  }
  const auto random_link = [&] {
    return SplitLink{int64_t{1'000'000'000} >> random.integer(0, 2), random.integer(0, 3)};
  };
  const SplitLink common = random_link();
  std::vector<SplitLink> links;
  for (size_t i = 0; i < one.first.size() * one.first.size(); ++i)
    links.push_back(unlike_links ? random_link() : common);
  for (int64_t from = 0; from < devices; ++from) {
    for (int64_t to = 0; to < devices; ++to) {
      const auto pair =
          at(class_of[static_cast<size_t>(from)]) * one.first.size() + at(class_of[static_cast<size_t>(to)]);
      one.problem.devices[static_cast<size_t>(from)].links.push_back(links[pair]);
    }
  }
}

// Nodes have shuffled numbers; `rank` is their topological order.
void add_random_graph(kit::Random& random, SplitProblem& problem, int64_t num_nodes) {
  std::vector<int32_t> node_of(static_cast<size_t>(num_nodes));
  std::iota(node_of.begin(), node_of.end(), 0);
  for (size_t i = node_of.size(); i > 1; --i) std::swap(node_of[i - 1], node_of[random.index(i)]);
  for (int64_t i = 0; i < num_nodes; ++i) {
    const bool only_one = random.chance(0.1F);
    problem.nodes.push_back({.name = fmt::format("n{}", i),
                             .time_ns = {random.integer(0, 20), only_one ? kCannotRun : random.integer(0, 20)},
                             .constant_bytes = random.chance(0.5F) ? random.integer(0, 30) * 8 : 0,
                             .working_bytes = random.chance(0.5F) ? random.integer(0, 20) * 8 : 0});
  }
  const bool is_dense = random.chance(0.3F);
  for (int64_t rank = 0; rank + 1 < num_nodes; ++rank) {
    for (int64_t tensors = random.integer(is_dense ? 1 : 0, is_dense ? 2 : 1); tensors > 0; --tensors) {
      SplitTensor tensor{.producer = node_of[static_cast<size_t>(rank)], .size_bytes = random.integer(0, 9)};
      for (int64_t i = random.integer(1, 3); i > 0; --i) {
        const int64_t far = random.chance(0.3F) ? num_nodes - 1 : std::min(num_nodes - 1, rank + 2);
        tensor.consumers.push_back(node_of[static_cast<size_t>(random.integer(rank + 1, far))]);
      }
      problem.tensors.push_back(tensor);
    }
  }
  if (random.chance(0.3F)) problem.nodes[at(node_of[0])].is_constant = true;
  for (int64_t lists = random.integer(0, 4) - 2; lists > 0; --lists) {
    std::vector<int32_t> list;
    for (int64_t i = random.integer(1, 3); i > 0; --i) list.push_back(node_of[random.index(node_of.size() - 1) + 1]);
    problem.colocated.push_back(list);
  }
}

// Some tensors have buffers, which their producers write, and perhaps any other node that does not read them.
void add_random_buffers(kit::Random& random, SplitProblem& problem) {
  for (const SplitTensor& tensor : problem.tensors) {
    if (random.chance(0.4F) || problem.nodes[at(tensor.producer)].is_constant) continue;
    const auto number = static_cast<int32_t>(problem.buffers.size());
    problem.buffers.push_back(
        {.producer = tensor.producer, .consumers = tensor.consumers, .size_bytes = random.integer(0, 20) * 8});
    if (random.chance(0.8F)) problem.nodes[at(tensor.producer)].buffer = number;
    const auto other = static_cast<int32_t>(random.index(problem.nodes.size()));
    const bool reads = std::count(tensor.consumers.begin(), tensor.consumers.end(), other) > 0;
    if (random.chance(0.5F) && !reads) problem.nodes[at(other)].buffer = number;
  }
}

SplitCase random_split_case(kit::Random& random, bool unlike_links, int64_t max_nodes) {
  SplitCase one;
  one.problem.kinds = {"cpu", "gpu"};
  const int64_t nodes = random.integer(2, max_nodes);
  add_random_graph(random, one.problem, nodes);
  add_random_buffers(random, one.problem);
  add_random_devices(random, one, 4, unlike_links);
  one.problem.max_replicas = random.chance(0.3F) ? 2 : 1;
  return one;
}

std::string show_split_case(const SplitCase& one) {
  std::string text = fmt::format("max_replicas {}, colocated {}", one.problem.max_replicas, one.problem.colocated);
  for (const SplitNode& node : one.problem.nodes)
    text += fmt::format("\n  {} times {} constants {} working {} buffer {}{}", node.name, node.time_ns,
                        node.constant_bytes, node.working_bytes, node.buffer, node.is_constant ? " constant" : "");
  for (const SplitBuffer& buffer : one.problem.buffers)
    text += fmt::format("\n  buffer {} -> {} bytes {}", buffer.producer, buffer.consumers, buffer.size_bytes);
  for (const SplitTensor& tensor : one.problem.tensors)
    text += fmt::format("\n  {} -> {} bytes {}", tensor.producer, tensor.consumers, tensor.size_bytes);
  for (const SplitDevice& device : one.problem.devices) {
    text += fmt::format("\n  {} kind {} memory {}{}", device.name, device.kind, device.memory_bytes,
                        device.overlaps ? " overlaps" : "");
    for (const SplitLink& link : device.links) text += fmt::format(" {}+{}", link.bytes_per_second, link.latency_ns);
  }
  return text;
}

// Checks what a plan says of itself by the definition.
std::optional<std::string> check_plan(const SplitProblem& problem, const SplitPlan& plan) {
  std::vector<OracleStage> stages;
  std::set<int32_t> devices;
  for (const SplitStage& stage : plan.stages) {
    stages.push_back({stage.devices.front(), static_cast<int32_t>(stage.devices.size())});
    for (const int32_t device : stage.devices) {
      if (!devices.insert(device).second) return fmt::format("device {} has two stages", device);
    }
  }
  for (const SplitTensor& tensor : problem.tensors) {
    for (const int32_t consumer : tensor.consumers) {
      if (plan.stage_of_node[at(tensor.producer)] > plan.stage_of_node[at(consumer)]) return "an edge leads back";
    }
  }
  for (const auto& list : problem.colocated) {
    for (const int32_t node : list) {
      if (plan.stage_of_node[at(node)] != plan.stage_of_node[at(list.front())]) return "colocated nodes are apart";
    }
  }
  const std::vector<OracleCost> costs = defined_costs(problem, oracle_units(problem), plan.stage_of_node, stages);
  int64_t period = 0;
  for (size_t i = 0; i < costs.size(); ++i) {
    const SplitStage& stage = plan.stages[i];
    const OracleCost& cost = costs[i];
    if (!cost.fits) return fmt::format("stage {} does not fit", i);
    if (cost.compute != stage.compute_ns || cost.in != stage.transfer_in_ns || cost.out != stage.transfer_out_ns ||
        cost.memory != stage.memory_bytes || cost.period != stage.period_ns)
      return fmt::format("stage {} has {} {} {} {} {}", i, cost.compute, cost.in, cost.out, cost.memory, cost.period);
    period = std::max(period, cost.period);
  }
  if (period != plan.period_ns) return fmt::format("the period is {}, not {}", period, plan.period_ns);
  return {};
}

// The plan shows by the definition that its period is possible: the exhaustive search only looks for shorter ones.
std::optional<std::string> check_exact(const SplitCase& one) {
  SplitPlan plan;
  try {
    plan = split_pipeline(one.problem);
  } catch (const UserError& error) {
    const std::optional<int64_t> least = Oracle(one).run();
    if (least) return fmt::format("refused, but {} is possible: {}", *least, error.what());
    return {};
  }
  if (auto wrong = check_plan(one.problem, plan)) return wrong;
  const std::optional<int64_t> least = Oracle(one, plan.period_ns).run();
  if (plan.period_ns != *least || plan.lower_bound_ns != *least)
    return fmt::format("found {} with the bound {}, the least is {}", plan.period_ns, plan.lower_bound_ns, *least);
  return {};
}

kit::Property<SplitCase> split_property(uint64_t seed, int runs_ci, int runs_full, bool unlike_links) {
  kit::Property<SplitCase> property;
  property.seed = seed;
  property.runs_ci = runs_ci;
  property.runs_full = runs_full;
  property.generate = [=](kit::Random& random) { return random_split_case(random, unlike_links, 11); };
  property.show = show_split_case;
  property.check = check_exact;
  return property;
}

TEST(Split, EqualsTheExhaustiveSearch) { EXPECT_TRUE(kit::holds(split_property(1, 80, 5000, false))); }

TEST(Split, EqualsTheExhaustiveSearchWithUnlikeLinks) { EXPECT_TRUE(kit::holds(split_property(2, 40, 2000, true))); }

// Proofs that no plan is below a period, for a period that one plan is below. Memory counts for nothing in them.
std::optional<std::string> check_proofs(const SplitCase& one) {
  const std::optional<int64_t> least = Oracle(one).run();
  if (!least) return {};
  const SplitGraph graph = contract_problem(one.problem).graph;
  int64_t steps = 1'000'000'000;
  if (is_refuted_around_largest(graph, *least + 1, 5000, steps)) return fmt::format("refuted {} at once", *least);
  const auto merged = merge_inseparable(graph, *least + 1, steps);
  if (!merged) return fmt::format("merging refuted {}", *least);
  if (is_refuted_around_largest(merged->graph, *least + 1, 5000, steps)) return fmt::format("refuted {}", *least);
  const Lattice lattice = *all_downsets(merged->graph, 5000);
  SegmentWalk walk(merged->graph, lattice);
  const auto states = device_states(merged->graph.devices, merged->graph.max_replicas);
  if (!search_stages(walk, states.front(), *least + 1, 1'000'000).found) return "units of the best plan were merged";
  return {};
}

// Returns what is wrong with a bound by branches, for a goal above the optimum.
std::optional<std::string> check_branches(const SplitCase& one) {
  const std::optional<int64_t> least = Oracle(one).run();
  if (!least) return {};
  const SplitGraph graph = contract_problem(one.problem).graph;
  std::optional<std::string> wrong;
  const auto visit = [&](const std::vector<int32_t>& stages) {
    for (size_t tensor = 0; tensor < graph.tensor_bytes.size(); ++tensor) {
      for (const int32_t consumer : graph.tensor_consumers[tensor]) {
        if (stages[at(graph.tensor_producer[tensor])] > stages[at(consumer)]) wrong = "an edge leads back";
      }
    }
    return INT64_MAX;
  };
  for (const int64_t goal : {*least + 1, 2 * *least + 10}) {
    int64_t steps = 300'000;
    const int64_t bound = bound_by_branches(graph, goal, steps, visit);
    if (bound > *least) return fmt::format("the bound is {}, the least period {}", bound, *least);
  }
  return wrong;
}

TEST(Split, BranchesAreNeverAboveTheOptimum) {
  for (const bool unlike_links : {false, true}) {
    kit::Property<SplitCase> property = split_property(6, 150, 3000, unlike_links);
    property.generate = [=](kit::Random& random) { return random_split_case(random, unlike_links, 8); };
    property.check = check_branches;
    EXPECT_TRUE(kit::holds(property));
  }
}

// A row of six nodes of 100 ns over two devices. Of the tensors between them, all but the first take longer than all
// nodes, and the first takes 50 ns.
TEST(Split, BranchesFindTheOptimumOfARow) {
  SplitProblem problem{.kinds = {"cpu"}};
  for (int i = 0; i < 6; ++i) problem.nodes.push_back({.name = fmt::format("n{}", i), .time_ns = {100}});
  for (int32_t i = 0; i < 5; ++i)
    problem.tensors.push_back({.producer = i, .consumers = {i + 1}, .size_bytes = i == 0 ? 50 : 1000});
  const std::vector<SplitLink> links(2, {1'000'000'000, 0});
  for (const bool overlaps : {false, true}) {
    problem.devices.clear();
    for (const char* name : {"a", "b"}) problem.devices.push_back({.name = name, .overlaps = overlaps, .links = links});
    const SplitGraph graph = contract_problem(problem).graph;
    const int64_t least = overlaps ? 500 : 550;
    int64_t steps = 1'000'000;
    std::set<std::vector<int32_t>> found;
    const auto visit = [&](const std::vector<int32_t>& stages) {
      found.insert(stages);
      return INT64_MAX;
    };
    EXPECT_EQ(bound_by_branches(graph, least, steps, visit), least);
    EXPECT_LE(bound_by_branches(graph, 2 * least, steps, visit), least);
    EXPECT_EQ(found.count({0, 1, 1, 1, 1, 1}), 1);
    EXPECT_LT(steps, 1'000'000);
    // A plan that is found lowers the goal.
    EXPECT_EQ(bound_by_branches(graph, 2 * least, steps, [](const auto&) { return 300; }), 300);
    int64_t none = 0;
    EXPECT_LT(bound_by_branches(graph, 2 * least, none, visit), least);
  }
  problem.max_replicas = 2;
  int64_t steps = 1'000'000;
  EXPECT_EQ(bound_by_branches(contract_problem(problem).graph, 500, steps, [](const auto&) { return INT64_MAX; }), 0);
}

TEST(Split, ProofsNeverRefuteTheOptimum) {
  for (const bool unlike_links : {false, true}) {
    kit::Property<SplitCase> property = split_property(4, 100, 2000, unlike_links);
    property.generate = [=](kit::Random& random) { return random_split_case(random, unlike_links, 8); };
    property.check = check_proofs;
    EXPECT_TRUE(kit::holds(property));
  }
}

// Stages must pay for both ends of every tensor: the proofs alone find how short a plan can be.
TEST(Split, ProofsRefuteWhatTransfersForbid) {
  SplitProblem problem{.kinds = {"cpu"}};
  for (int i = 0; i < 6; ++i) problem.nodes.push_back({.name = fmt::format("n{}", i), .time_ns = {100}});
  for (int32_t i = 0; i < 5; ++i) problem.tensors.push_back({.producer = i, .consumers = {i + 1}, .size_bytes = 1000});
  // 1,000 bytes take 1,000 ns, longer than all nodes, but for the first border.
  problem.tensors.front().size_bytes = 50;
  const std::vector<SplitLink> links(2, {1'000'000'000, 0});
  for (const char* name : {"a", "b"}) problem.devices.push_back({.name = name, .links = links});
  const SplitGraph graph = contract_problem(problem).graph;
  int64_t steps = 1'000'000;
  EXPECT_FALSE(merge_inseparable(graph, 501, steps).has_value());
  const auto merged = merge_inseparable(graph, 560, steps);
  ASSERT_TRUE(merged.has_value());
  EXPECT_EQ(merged->group, (std::vector<int32_t>{0, 1, 1, 1, 1, 1}));
  // The best plan: 100 + 50, and 50 + 500.
  EXPECT_TRUE(is_refuted_around_largest(merged->graph, 550, 100, steps));
  EXPECT_FALSE(is_refuted_around_largest(merged->graph, 551, 100, steps));
  int64_t none = 0;
  EXPECT_EQ(merge_inseparable(graph, 560, none)->graph.num_units, 6);
  EXPECT_FALSE(is_refuted_around_largest(merged->graph, 550, 100, none));
}

// The methods for large graphs on small ones: their plans are what they say, and never beat the optimum or their bound.
TEST(Split, LargeMethodsKeepTheirWord) {
  for (const auto& [method, max_ordered] : {std::pair(SplitMethod::orders, 20'000), {SplitMethod::cuts, 0}}) {
    kit::Property<SplitCase> property = split_property(3, 100, 1000, false);
    property.generate = [](kit::Random& random) { return random_split_case(random, false, 8); };
    property.check = [&](const SplitCase& one) -> std::optional<std::string> {
      const std::optional<int64_t> least = Oracle(one).run();
      SplitPlan plan;
      try {
        plan = split_pipeline(one.problem, {.max_downsets = 0, .max_ordered_nodes = max_ordered});
      } catch (const UserError&) {
        return {};  // a plan may exist that no order shows
      }
      if (plan.method != method) return "another method";
      if (!least || plan.period_ns < *least || plan.lower_bound_ns > *least)
        return fmt::format("found {} with the bound {}", plan.period_ns, plan.lower_bound_ns);
      return check_plan(one.problem, plan);
    };
    EXPECT_TRUE(kit::holds(property));
  }
}

}  // namespace
}  // namespace headrace::plan
