// Two tests, both by minimum cuts, each of which takes a plan with a shorter period for granted.
//
// Borders: what is computed before some stage is a downset, and the tensors that leave it go out of a stage and into
// another one. All stages together have the period times the devices, less all compute; a downset whose tensors take
// longer is no border. When the least such downset with unit a and without unit b takes longer, none separates them,
// nor any units between them. That is asked of the ends of a path first, and where they can be separated, of the two
// parts of the path. Only many tensors that are alive at a time (activations that a backward pass reads) fail it.
//
// Stages: the largest unit is in some stage. If another unit is in an earlier one, all that this unit depends on is
// too; the least time of a stage with the first unit and without those says whether that can be. Likewise for later
// stages. A unit that can be in neither joins.
#include "plan/pipeline/inseparable.h"

#include <algorithm>
#include <numeric>

#include "graph/components.h"
#include "plan/pipeline/cut_network.h"
#include "plan/pipeline/limits.h"

namespace headrace::plan {
namespace {

// Parts of a path with less compute than this share of a stage are left as they are: it saves most of the cuts.
constexpr int64_t kLeastParts = 32;

// Returns the network of downsets: the cut of a downset is the time of the tensors that leave it, out and in.
CutNetwork border_network(const SplitGraph& graph) {
  CutNetwork network(graph.num_units);
  for (size_t tensor = 0; tensor < graph.tensor_bytes.size(); ++tensor) {
    const LeastTransfer time = least_transfer(graph, graph.tensor_bytes[tensor]);
    const int32_t producer = graph.tensor_producer[tensor];
    if (graph.tensor_consumers[tensor].size() == 1) {
      network.add_arc(producer, graph.tensor_consumers[tensor][0], time.in_ns + time.out_ns, kUncuttable);
      continue;
    }
    const int32_t crossing = network.add_node();
    network.add_arc(producer, crossing, time.in_ns + time.out_ns);
    for (const int32_t consumer : graph.tensor_consumers[tensor]) {
      network.add_arc(crossing, consumer, kUncuttable);
      network.add_arc(consumer, producer, kUncuttable);
    }
  }
  return network;
}

// Returns the network of stages: the cut of a set of units is at most the time of a stage that has them.
CutNetwork stage_network(const SplitGraph& graph) {
  CutNetwork network(graph.num_units);
  if (!any_overlaps(graph)) {
    for (int32_t unit = 0; unit < graph.num_units; ++unit) network.add_cost(unit, graph.fastest(unit));
  }
  for (size_t tensor = 0; tensor < graph.tensor_bytes.size(); ++tensor) {
    const LeastTransfer time = least_transfer(graph, graph.tensor_bytes[tensor]);
    const int32_t producer = graph.tensor_producer[tensor];
    if (graph.tensor_consumers[tensor].size() == 1) {
      network.add_arc(producer, graph.tensor_consumers[tensor][0], time.out_ns, time.in_ns);
      continue;
    }
    const int32_t out = network.add_node(), in = network.add_node();
    network.add_arc(producer, out, time.out_ns);
    network.add_arc(in, producer, time.in_ns);
    for (const int32_t consumer : graph.tensor_consumers[tensor]) {
      network.add_arc(out, consumer, kUncuttable);
      network.add_arc(consumer, in, kUncuttable);
    }
  }
  return network;
}

class Merger {
 public:
  Merger(const SplitGraph& graph, int64_t period_ns, int64_t max_steps)
      : made_{graph, std::vector<int32_t>(as_index(graph.num_units))},
        max_sum_ns_(period_ns * graph.devices.num_devices),
        max_stage_ns_(period_ns * most_replicas(graph)),
        steps_left_(max_steps) {
    std::iota(made_.group.begin(), made_.group.end(), 0);
  }

  std::optional<MergedGraph> run() {
    if (is_impossible()) return {};
    find_neighbours();
    merge_path();
    contract();
    for (bool merged = true; merged && steps_left_ > 0;) {
      if (is_impossible()) return {};
      find_neighbours();
      merge_into_largest();
      merged = !pairs_.empty();
      if (merged) contract();
    }
    if (is_impossible()) return {};
    return std::move(made_);
  }

  int64_t steps_left() const { return steps_left_; }

 private:
  const SplitGraph& graph() const { return made_.graph; }

  bool is_impossible() const {
    int64_t sum = 0;
    for (int32_t unit = 0; unit < graph().num_units; ++unit) {
      if (graph().fastest(unit) >= max_stage_ns_) return true;
      sum += graph().fastest(unit);
      if (sum >= max_sum_ns_) return true;
    }
    return false;
  }

  void find_neighbours() {
    before_.assign(as_index(graph().num_units), {});
    after_ = before_;
    for (size_t tensor = 0; tensor < graph().tensor_bytes.size(); ++tensor) {
      const int32_t producer = graph().tensor_producer[tensor];
      for (const int32_t consumer : graph().tensor_consumers[tensor]) {
        after_[as_index(producer)].push_back(consumer);
        before_[as_index(consumer)].push_back(producer);
      }
    }
  }

  // Returns the units that edges lead to, the first one too.
  std::vector<int32_t> reached(int32_t unit, const std::vector<std::vector<int32_t>>& edges) const {
    std::vector<int32_t> found{unit};
    std::vector<bool> is_found(edges.size(), false);
    is_found[as_index(unit)] = true;
    for (size_t i = 0; i < found.size(); ++i) {
      for (const int32_t next : edges[as_index(found[i])]) {
        if (!is_found[as_index(next)]) found.push_back(next);
        is_found[as_index(next)] = true;
      }
    }
    return found;
  }

  std::vector<int32_t> longest_path() const {
    std::vector<int32_t> length(before_.size(), 1), previous(before_.size(), -1), path;
    int32_t last = 0;
    for (int32_t unit = 0; unit < graph().num_units; ++unit) {
      for (const int32_t one : before_[as_index(unit)]) {
        if (length[as_index(one)] < length[as_index(unit)]) continue;
        length[as_index(unit)] = length[as_index(one)] + 1;
        previous[as_index(unit)] = one;
      }
      if (length[as_index(unit)] > length[as_index(last)]) last = unit;
    }
    for (; last >= 0; last = previous[as_index(last)]) path.push_back(last);
    std::reverse(path.begin(), path.end());
    return path;
  }

  // Returns the place where half of the compute of a part of the path is reached; nothing for parts of little compute.
  std::optional<size_t> middle_of(const std::vector<int32_t>& path, size_t first, size_t last) const {
    int64_t compute = 0, sum = 0;
    for (size_t i = first; i <= last; ++i) compute += graph().fastest(path[i]);
    if (compute * kLeastParts < max_stage_ns_) return {};
    for (; first < last; ++first) {
      sum += graph().fastest(path[first]);
      if (2 * sum >= compute) break;
    }
    return first;
  }

  // Returns the place on the path farthest from `middle`, up to `end`, that no border separates from it.
  size_t farthest(CutNetwork& network, const std::vector<int32_t>& path, size_t middle, size_t end, int64_t limit) {
    size_t known = middle;
    for (size_t tried = end; tried != known;) {
      const size_t low = std::min(middle, tried), high = std::max(middle, tried);
      if (network.min_cut({&path[low], 1}, {&path[high], 1}, limit) >= limit) {
        known = tried;
      } else {
        size_t border = low + 1;  // the first place above it
        while (network.is_inside(path[border])) ++border;
        end = tried < middle ? border : border - 1;
      }
      tried = (known + end + (end > known ? 1 : 0)) / 2;
    }
    return known;
  }

  void merge_path() {
    const std::vector<int32_t> path = longest_path();
    CutNetwork network = border_network(graph());
    int64_t limit = max_sum_ns_;
    if (!any_overlaps(graph())) {
      for (int32_t unit = 0; unit < graph().num_units; ++unit) limit -= graph().fastest(unit);
    }
    std::vector<std::pair<size_t, size_t>> parts{{0, path.size() - 1}};
    while (!parts.empty() && network.steps() < steps_left_) {
      const auto [first, last] = parts.back();
      parts.pop_back();
      const std::optional<size_t> middle = middle_of(path, first, last);
      if (!middle) continue;
      const size_t begin = farthest(network, path, *middle, first, limit);
      const size_t end = farthest(network, path, *middle, last, limit);
      if (begin < end) pairs_.emplace_back(path[begin], path[end]);
      if (begin > first) parts.emplace_back(first, begin - 1);
      if (end < last) parts.emplace_back(end + 1, last);
    }
    steps_left_ -= network.steps();
  }

  void merge_into_largest() {
    int32_t largest = 0;
    for (int32_t unit = 1; unit < graph().num_units; ++unit) {
      if (graph().fastest(unit) > graph().fastest(largest)) largest = unit;
    }
    CutNetwork network = stage_network(graph());
    std::vector<std::vector<bool>> stages;  // stages known to take less time
    std::vector<bool> is_before = marked(reached(largest, before_)), is_after = marked(reached(largest, after_));
    std::vector<bool> is_merged = marked({largest});
    // Units far from the largest one come first: with one of them, all between the two join.
    const auto visit = [&](int32_t unit) {
      if (is_merged[as_index(unit)] || network.steps() >= steps_left_) return;
      if (!is_after[as_index(unit)] && can_be_without(network, largest, reached(unit, before_), stages)) return;
      if (!is_before[as_index(unit)] && can_be_without(network, largest, reached(unit, after_), stages)) return;
      pairs_.emplace_back(unit, largest);
      const std::vector<bool>& side = is_before[as_index(unit)] ? is_before : is_after;
      if (!side[as_index(unit)]) return;
      for (const int32_t one : reached(unit, is_before[as_index(unit)] ? after_ : before_))
        is_merged[as_index(one)] = is_merged[as_index(one)] || side[as_index(one)];
    };
    for (int32_t unit = 0; unit < graph().num_units; ++unit) {
      if (!is_after[as_index(unit)]) visit(unit);
    }
    for (int32_t unit = graph().num_units; unit-- > 0;) {
      if (is_after[as_index(unit)]) visit(unit);
    }
    steps_left_ -= network.steps();
  }

  std::vector<bool> marked(const std::vector<int32_t>& units) const {
    std::vector<bool> made(as_index(graph().num_units), false);
    for (const int32_t unit : units) made[as_index(unit)] = true;
    return made;
  }

  // Returns whether a stage that has the unit and none of the others may have less time. `stages` are those known.
  bool can_be_without(CutNetwork& network, int32_t unit, const std::vector<int32_t>& others,
                      std::vector<std::vector<bool>>& stages) const {
    for (const std::vector<bool>& stage : stages) {
      if (std::none_of(others.begin(), others.end(), [&](int32_t one) { return stage[as_index(one)]; })) return true;
    }
    if (network.min_cut({&unit, 1}, others, max_stage_ns_) >= max_stage_ns_) return false;
    std::vector<bool> stage;
    for (int32_t one = 0; one < graph().num_units; ++one) stage.push_back(network.is_inside(one));
    stages.push_back(std::move(stage));
    return true;
  }

  // Merges the pairs and all units between them: the strong components once each pair is a cycle.
  void contract() {
    std::vector<graph::Edge> edges;
    for (int32_t unit = 0; unit < graph().num_units; ++unit) {
      for (const int32_t next : after_[as_index(unit)]) edges.push_back({unit, next});
    }
    for (const auto& [a, b] : pairs_) {
      edges.push_back({a, b});
      edges.push_back({b, a});
    }
    const auto components = graph::strong_components(graph::IndexGraph(graph().num_units, edges));
    std::vector<int32_t> group(as_index(graph().num_units));
    int32_t count = 0;
    for (auto component = components.rbegin(); component != components.rend(); ++component, ++count) {
      for (const int32_t unit : *component) group[as_index(unit)] = count;
    }
    made_.graph = group_units(graph(), group, count);
    for (int32_t& one : made_.group) one = group[as_index(one)];
    pairs_.clear();
  }

  MergedGraph made_;
  int64_t max_sum_ns_, max_stage_ns_;  // limits for all stages, and for one
  int64_t steps_left_;
  std::vector<std::vector<int32_t>> before_, after_;  // by unit
  std::vector<std::pair<int32_t, int32_t>> pairs_;    // units to merge
};

}  // namespace

std::optional<MergedGraph> merge_inseparable(const SplitGraph& graph, int64_t period_ns, int64_t& max_steps) {
  Merger merger(graph, period_ns, max_steps);
  auto made = merger.run();
  max_steps = merger.steps_left();
  return made;
}

}  // namespace headrace::plan
