// The steps with the least sum of reaches are a linear program; its dual is a flow of greatest length. One unit along
// each edge is a flow that keeps, at every stage, the balance which the dual asks for. A residual cycle of negative
// length shows a longer flow with the same balance; without such a cycle the shortest distances are the steps (M.
// Klein, "A primal method for minimal cost flows", 1967). The flow's length is at most the sum of reaches, so the
// search ends.
#include "executors/pipeline/slots.h"

#include <algorithm>
#include <optional>

#include "base/error.h"

namespace headrace::executors {
namespace {

// An edge of the pipeline as an arc of the residual graph; `back` is its reverse, which undoes flow.
struct ResidualStep {
  int32_t edge = -1;
  bool back = false;
};

class StepSearch {
 public:
  StepSearch(int32_t num_stages, std::span<const StageEdge> edges)
      : edges_(edges),
        flow_(edges.size(), 1),
        distance_(static_cast<size_t>(num_stages), 0),
        came_by_(static_cast<size_t>(num_stages)) {}

  // Returns the distances of a flow without negative cycles: minus the step of each stage.
  const std::vector<int32_t>& run() {
    while (const std::optional<int32_t> stage = find_cycle()) push_around(*stage);
    return distance_;
  }

 private:
  int32_t start_of(ResidualStep step) const {
    const StageEdge& edge = edges_[static_cast<size_t>(step.edge)];
    return step.back ? edge.consumer : edge.producer;
  }

  bool relax(ResidualStep step) {
    const StageEdge& edge = edges_[static_cast<size_t>(step.edge)];
    const auto from = static_cast<size_t>(step.back ? edge.consumer : edge.producer);
    const auto to = static_cast<size_t>(step.back ? edge.producer : edge.consumer);
    const int32_t distance = distance_[from] + (step.back ? 1 : -1);
    if (distance >= distance_[to]) return false;
    distance_[to] = distance;
    came_by_[to] = step;
    return true;
  }

  // Computes shortest distances. Returns a stage that a negative cycle leads to, or nothing when there is none.
  std::optional<int32_t> find_cycle() {
    std::fill(distance_.begin(), distance_.end(), 0);
    std::fill(came_by_.begin(), came_by_.end(), ResidualStep{});
    std::optional<int32_t> last;
    for (size_t round = 0; round <= distance_.size(); ++round) {
      last.reset();
      for (int32_t i = 0; i < static_cast<int32_t>(edges_.size()); ++i) {
        const StageEdge& edge = edges_[static_cast<size_t>(i)];
        if (relax({i, false})) last = edge.consumer;
        if (flow_[static_cast<size_t>(i)] > 0 && relax({i, true})) last = edge.producer;
      }
      if (!last) return {};
    }
    return last;
  }

  void push_around(int32_t stage) {
    // As many steps back as there are stages lead into the cycle for certain.
    for (size_t i = 0; i < distance_.size(); ++i) stage = start_of(came_by_[static_cast<size_t>(stage)]);
    const auto each_step = [&](const auto& visit) {
      int32_t at = stage;
      do {
        const ResidualStep step = came_by_[static_cast<size_t>(at)];
        visit(step);
        at = start_of(step);
      } while (at != stage);
    };
    int32_t amount = INT32_MAX;
    each_step([&](ResidualStep step) {
      if (step.back) amount = std::min(amount, flow_[static_cast<size_t>(step.edge)]);
    });
    each_step([&](ResidualStep step) { flow_[static_cast<size_t>(step.edge)] += step.back ? -amount : amount; });
  }

  std::span<const StageEdge> edges_;
  std::vector<int32_t> flow_;      // by edge
  std::vector<int32_t> distance_;  // by stage
  std::vector<ResidualStep> came_by_;
};

// Returns whether the ends of an edge are joined by edges to other stages, too, whatever the direction of these.
bool has_way_beside(const StageEdge& edge, size_t num_stages, std::span<const StageEdge> edges) {
  std::vector<bool> is_reached(num_stages, false);
  std::vector<int32_t> to_visit{edge.producer};
  is_reached[static_cast<size_t>(edge.producer)] = true;
  const auto reach = [&](int32_t stage) {
    if (is_reached[static_cast<size_t>(stage)]) return;
    is_reached[static_cast<size_t>(stage)] = true;
    to_visit.push_back(stage);
  };
  while (!to_visit.empty()) {
    const int32_t stage = to_visit.back();
    to_visit.pop_back();
    for (const StageEdge& other : edges) {
      if (other.producer == edge.producer && other.consumer == edge.consumer) continue;
      if (other.producer == stage) reach(other.consumer);
      if (other.consumer == stage) reach(other.producer);
    }
  }
  return is_reached[static_cast<size_t>(edge.consumer)];
}

}  // namespace

std::vector<int32_t> batches_of_edges(std::span<const int32_t> batches, std::span<const StageEdge> edges) {
  std::vector<int32_t> factors(edges.size(), 1);
  const int32_t largest = batches.empty() ? 1 : *std::max_element(batches.begin(), batches.end());
  if (largest == 1) return factors;
  for (size_t i = 0; i < edges.size(); ++i) {
    const int32_t of_ends =
        std::max(batches[static_cast<size_t>(edges[i].producer)], batches[static_cast<size_t>(edges[i].consumer)]);
    factors[i] = has_way_beside(edges[i], batches.size(), edges) ? largest : of_ends;
  }
  return factors;
}

std::vector<int32_t> slots_of_edges(int32_t num_stages, std::span<const StageEdge> edges) {
  for (const StageEdge& edge : edges)
    HEADRACE_CHECK(edge.producer >= 0 && edge.producer < edge.consumer && edge.consumer < num_stages,
                   "an edge leads from stage {} to stage {} of {}", edge.producer, edge.consumer, num_stages);
  StepSearch search(num_stages, edges);
  const std::vector<int32_t>& distance = search.run();
  std::vector<int32_t> slots;
  slots.reserve(edges.size());
  for (const StageEdge& edge : edges) {
    const int32_t reach = distance[static_cast<size_t>(edge.producer)] - distance[static_cast<size_t>(edge.consumer)];
    slots.push_back(reach + 1 + (reach > 1 ? kJitterSlots : 0));
  }
  return slots;
}

}  // namespace headrace::executors
