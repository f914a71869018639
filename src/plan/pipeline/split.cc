#include "plan/pipeline/split.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "plan/pipeline/contract.h"
#include "plan/pipeline/lower_bound.h"
#include "plan/pipeline/orders.h"
#include "plan/pipeline/refine.h"
#include "plan/pipeline/stage_search.h"
#include "plan/pipeline/tighten.h"

namespace headrace::plan {
namespace {

// Groups of units that a first, coarse plan is made of; enough for stages to come within a few percent of each other.
constexpr int32_t kCoarseGroups = 192;
// Groups of the method `cuts`, whose boundaries are refined after that.
constexpr int32_t kCutGroups = 768;
constexpr int32_t kRefinePasses = 12;
constexpr int32_t kCutRefinePasses = 2;

class Splitter {
 public:
  Splitter(const SplitGraph& graph, const SplitOptions& options)
      : graph_(graph), options_(options), states_(device_states(graph.devices, graph.max_replicas)) {}

  void run() {
    lower_bound_ns_ = lower_bound(graph_);
    const std::optional<Lattice> lattice = all_downsets(graph_, options_.max_downsets);
    if (lattice) {
      num_downsets_ = lattice->size();
      run_downsets(*lattice);
    } else if (graph_.num_units <= options_.max_ordered_nodes) {
      method_ = SplitMethod::orders;
      run_orders();
    } else {
      method_ = SplitMethod::cuts;
      run_cuts();
    }
  }

  const Assignment& best() const { return best_; }
  int64_t lower_bound_ns() const { return lower_bound_ns_; }
  SplitMethod method() const { return method_; }
  int32_t num_downsets() const { return num_downsets_; }
  bool is_proven() const { return is_proven_; }

 private:
  bool is_done() const { return best_.period_ns <= lower_bound_ns_; }

  void keep(Assignment made, int32_t passes) {
    refine(graph_, made, passes);
    if (made.period_ns < best_.period_ns) best_ = std::move(made);
  }

  // Cuts an order at the borders of groups only. `num_groups` bounds the time.
  void cut_coarsely(std::span<const int32_t> order, int32_t num_groups, int32_t passes) {
    const std::vector<int32_t> group = group_at_least_live_cuts(graph_, order, num_groups);
    const int32_t made_groups = *std::max_element(group.begin(), group.end()) + 1;
    const SplitGraph coarse = group_units(graph_, group, made_groups);
    std::vector<int32_t> numbers(static_cast<size_t>(made_groups));
    std::iota(numbers.begin(), numbers.end(), 0);
    const Lattice lattice = prefixes_of(numbers);
    SegmentWalk walk(coarse, lattice);
    for (const DeviceStates& states : states_) {
      std::optional<Assignment> found = search_stages(walk, states, best_.period_ns, options_.max_steps / 10).found;
      if (!found) continue;
      std::vector<int32_t> stage_of_unit;
      for (const int32_t one : group) stage_of_unit.push_back(found->stage_of_unit[static_cast<size_t>(one)]);
      found->stage_of_unit = std::move(stage_of_unit);
      keep(std::move(*found), passes);
    }
  }

  // Cuts an order anywhere.
  void cut_order(std::span<const int32_t> order) {
    const Lattice lattice = prefixes_of(order);
    SegmentWalk walk(graph_, lattice);
    for (const DeviceStates& states : states_) {
      if (is_done()) return;
      auto found = search_stages(walk, states, best_.period_ns, options_.max_steps / 10).found;
      if (found) keep(std::move(*found), kRefinePasses);
    }
  }

  void run_downsets(const Lattice& lattice) {
    const std::vector<std::vector<int32_t>> orders = five_orders(graph_);
    cut_coarsely(orders[3], kCoarseGroups, kRefinePasses);
    cut_coarsely(orders[4], kCoarseGroups, kRefinePasses);
    SegmentWalk walk(graph_, lattice);
    for (const DeviceStates& states : states_) {
      SearchResult result = search_stages(walk, states, best_.period_ns, options_.max_steps);
      if (result.found) best_ = std::move(*result.found);
      if (!states.is_complete) continue;
      is_proven_ = result.lower_bound_ns >= best_.period_ns;
      lower_bound_ns_ = std::max(lower_bound_ns_, std::min(result.lower_bound_ns, best_.period_ns));
    }
  }

  void run_orders() {
    const std::vector<std::vector<int32_t>> orders = five_orders(graph_);
    for (const auto& order : orders) cut_coarsely(order, kCoarseGroups, kRefinePasses);
    for (const auto& order : orders) cut_order(order);
    uint64_t random = options_.seed;
    for (int32_t restart = 0; restart < options_.restarts && !is_done(); ++restart) cut_order(shuffled_order(random));
    if (best_.period_ns < kNever) tighten(graph_, options_, states_, best_, lower_bound_ns_);
  }

  // Returns a random order in which the stages of the best plan stay one after another.
  std::vector<int32_t> shuffled_order(uint64_t& random) const {
    std::vector<int64_t> key;
    for (int32_t unit = 0; unit < graph_.num_units; ++unit) {
      random = random * 6364136223846793005ULL + 1442695040888963407ULL;  // D. Knuth's constants for 64 bits
      const int64_t stage = best_.stage_of_unit.empty() ? 0 : best_.stage_of_unit[static_cast<size_t>(unit)];
      key.push_back((stage << 32) + static_cast<int64_t>(random >> 32));
    }
    return order_by_key(graph_, key);
  }

  void run_cuts() {
    std::vector<int32_t> order(static_cast<size_t>(graph_.num_units));
    std::iota(order.begin(), order.end(), 0);
    cut_coarsely(order, kCutGroups, kCutRefinePasses);
    const std::vector<int64_t> same(order.size(), 0);
    if (best_.period_ns >= kNever) cut_coarsely(order_by_key(graph_, same), 4 * kCutGroups, kCutRefinePasses);
  }

  const SplitGraph& graph_;
  const SplitOptions& options_;
  std::vector<DeviceStates> states_;
  Assignment best_;
  int64_t lower_bound_ns_ = 0;
  SplitMethod method_ = SplitMethod::downsets;
  int32_t num_downsets_ = 0;
  bool is_proven_ = false;
};

[[noreturn]] void throw_no_plan(const SplitProblem& problem, const SplitGraph& graph, bool is_proven) {
  int64_t constants = std::accumulate(graph.constant_bytes.begin(), graph.constant_bytes.end(), int64_t{0});
  constants = std::accumulate(graph.shared_bytes.begin(), graph.shared_bytes.end(), constants);
  size_t largest = 0;
  for (size_t i = 1; i < problem.devices.size(); ++i) {
    if (problem.devices[i].memory_bytes > problem.devices[largest].memory_bytes) largest = i;
  }
  throw UserError(fmt::format("{}: constants take {} bytes, and stages need working memory and room for the tensors "
                              "between them besides; give devices more memory, or more devices",
                              is_proven ? "no plan fits into the devices' memory"
                                        : "no plan was found that fits into the devices' memory",
                              constants),
                  {.op = {}, .place = fmt::format("device '{}'", problem.devices[largest].name)});
}

std::vector<int32_t> stages_of_nodes(const SplitProblem& problem, const ContractedProblem& contracted,
                                     const Assignment& best) {
  std::vector<int32_t> stages;
  for (const int32_t unit : contracted.unit_of_node)
    stages.push_back(unit < 0 ? -1 : best.stage_of_unit[static_cast<size_t>(unit)]);
  for (const SplitTensor& tensor : problem.tensors) {
    const auto producer = static_cast<size_t>(tensor.producer);
    if (contracted.unit_of_node[producer] >= 0) continue;
    for (const int32_t consumer : tensor.consumers) {
      const int32_t stage = stages[static_cast<size_t>(consumer)];
      if (stages[producer] < 0 || stage < stages[producer]) stages[producer] = stage;
    }
  }
  return stages;
}

std::vector<SplitStage> make_stages(const SplitGraph& graph, const Assignment& best,
                                    const std::vector<int32_t>& stage_of_node) {
  const std::vector<StageCost> costs = stage_costs(graph, best);
  std::vector<size_t> taken(graph.num_classes(), 0);
  std::vector<SplitStage> stages;
  for (size_t i = 0; i < costs.size(); ++i) {
    const StageDevices& chosen = best.stages[i];
    const auto& devices = graph.devices.classes[static_cast<size_t>(chosen.device_class)].devices;
    size_t& next = taken[static_cast<size_t>(chosen.device_class)];
    SplitStage stage{.compute_ns = costs[i].compute_ns,
                     .transfer_in_ns = costs[i].in_ns,
                     .transfer_out_ns = costs[i].out_ns,
                     .time_ns = stage_time(graph, chosen, costs[i]),
                     .period_ns = stage_period(graph, chosen, costs[i]),
                     .memory_bytes = costs[i].memory_bytes};
    for (int32_t replica = 0; replica < chosen.replicas; ++replica) stage.devices.push_back(devices[next++]);
    stages.push_back(std::move(stage));
  }
  for (const int32_t stage : stage_of_node) ++stages[static_cast<size_t>(stage)].num_nodes;
  return stages;
}

}  // namespace

std::string_view to_string(SplitMethod method) {
  switch (method) {
    case SplitMethod::downsets:
      return "downsets";
    case SplitMethod::orders:
      return "orders";
    case SplitMethod::cuts:
      return "cuts";
  }
  HEADRACE_CHECK(false, "a method of splitting is {}", static_cast<int>(method));
}

double SplitPlan::gap() const {
  if (period_ns == lower_bound_ns) return 0;
  return static_cast<double>(period_ns - lower_bound_ns) / static_cast<double>(std::max<int64_t>(lower_bound_ns, 1));
}

SplitPlan split_pipeline(const SplitProblem& problem, const SplitOptions& options) {
  const ContractedProblem contracted = contract_problem(problem);
  Splitter splitter(contracted.graph, options);
  splitter.run();
  const Assignment& best = splitter.best();
  if (best.period_ns >= kNever) throw_no_plan(problem, contracted.graph, splitter.is_proven());
  SplitPlan plan;
  plan.stage_of_node = stages_of_nodes(problem, contracted, best);
  plan.stages = make_stages(contracted.graph, best, plan.stage_of_node);
  plan.period_ns = best.period_ns;
  plan.lower_bound_ns = splitter.lower_bound_ns();
  plan.method = splitter.method();
  plan.num_units = contracted.graph.num_units;
  plan.num_downsets = splitter.num_downsets();
  return plan;
}

}  // namespace headrace::plan
