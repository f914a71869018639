#include "graph/label_bound.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace headrace::graph {

namespace {

using Costs = std::vector<LabelCost>;

// The factors with costs that move: those of each variable, and those of each pair of variables.
class MovingCosts {
 public:
  explicit MovingCosts(const LabelFactors& factors) : factors_(factors), node_(factors.size.size()) {
    for (size_t i = 0; i < node_.size(); ++i) node_[i].costs.assign(static_cast<size_t>(factors.size[i]), 0);
    find_order();
    for (const LabelFactors::Factor& factor : factors.factors) {
      if (factor.scope.size() == 1) {
        Costs& costs = node_[static_cast<size_t>(factor.scope[0])].costs;
        for (size_t value = 0; value < costs.size(); ++value) costs[value] += factor.table[value];
      } else {
        add_edge(factor);
      }
    }
  }

  // Goes through the variables in one direction. Each gives its costs to its edges in that direction in equal parts,
  // and these pass on what their other end must cost at least.
  void sweep(bool forward) {
    for (size_t i = 0; i < order_.size(); ++i) {
      const int32_t at = order_[forward ? i : order_.size() - 1 - i];
      Node& node = node_[static_cast<size_t>(at)];
      const std::vector<int32_t>& edges = forward ? node.after : node.before;
      const auto parts = static_cast<LabelCost>(std::max({node.before.size(), node.after.size(), size_t{1}}));
      Costs part = node.costs;
      for (LabelCost& cost : part) cost /= parts;
      for (const int32_t edge : edges) {
        for (size_t value = 0; value < part.size(); ++value) node.costs[value] -= part[value];
        pass_on(edges_[static_cast<size_t>(edge)], at, part);
      }
    }
  }

  LabelCost bound() const {
    LabelCost sum = factors_.constant;
    for (const Node& node : node_) sum += *std::min_element(node.costs.begin(), node.costs.end());
    for (const Edge& edge : edges_) sum += *std::min_element(edge.table.begin(), edge.table.end());
    return sum;
  }

  // Assigns the variables greedily in order: each takes the value of least cost, given the values already chosen.
  std::vector<int32_t> values() const {
    std::vector<int32_t> chosen(node_.size(), 0);
    for (const int32_t at : order_) {
      const Node& node = node_[static_cast<size_t>(at)];
      Costs costs = node.costs;
      for (const int32_t index : node.before) {
        const Edge& edge = edges_[static_cast<size_t>(index)];
        const bool is_first = edge.a == at;
        const auto other = static_cast<size_t>(chosen[static_cast<size_t>(is_first ? edge.b : edge.a)]);
        for (size_t value = 0; value < costs.size(); ++value)
          costs[value] += is_first ? edge.at(value, other) : edge.at(other, value);
      }
      chosen[static_cast<size_t>(at)] =
          static_cast<int32_t>(std::min_element(costs.begin(), costs.end()) - costs.begin());
    }
    return chosen;
  }

 private:
  struct Node {
    Costs costs;
    std::vector<int32_t> before, after;  // edges to variables before and after this one in the order
  };
  struct Edge {
    int32_t a, b;
    size_t size_b;
    Costs table;
    LabelCost at(size_t value_a, size_t value_b) const { return table[value_a * size_b + value_b]; }
  };

  void find_order() {
    order_.resize(node_.size());
    std::iota(order_.begin(), order_.end(), 0);
    const auto key = [&](int32_t at) { return std::pair(factors_.anchor[static_cast<size_t>(at)], at); };
    std::sort(order_.begin(), order_.end(), [&](int32_t a, int32_t b) { return key(a) < key(b); });
    place_.resize(order_.size());
    for (size_t i = 0; i < order_.size(); ++i) place_[static_cast<size_t>(order_[i])] = i;
  }

  void add_edge(const LabelFactors::Factor& factor) {
    const int32_t a = factor.scope[0], b = factor.scope[1];
    const auto index = static_cast<int32_t>(edges_.size());
    edges_.push_back({a, b, static_cast<size_t>(factors_.size[static_cast<size_t>(b)]), factor.table});
    const bool a_first = place_[static_cast<size_t>(a)] < place_[static_cast<size_t>(b)];
    node_[static_cast<size_t>(a_first ? a : b)].after.push_back(index);
    node_[static_cast<size_t>(a_first ? b : a)].before.push_back(index);
  }

  // Adds `part` to the edge's table at the values of `from`, and moves the least of each value of the other end there.
  void pass_on(Edge& edge, int32_t from, const Costs& part) {
    const bool from_a = edge.a == from;
    Costs& to = node_[static_cast<size_t>(from_a ? edge.b : edge.a)].costs;
    Costs least(to.size(), INT64_MAX);
    const size_t size_a = edge.table.size() / edge.size_b;
    for (size_t i = 0; i < size_a; ++i) {
      for (size_t j = 0; j < edge.size_b; ++j) {
        LabelCost& cost = edge.table[i * edge.size_b + j];
        cost += part[from_a ? i : j];
        LabelCost& lowest = least[from_a ? j : i];
        lowest = std::min(lowest, cost);
      }
    }
    for (size_t i = 0; i < size_a; ++i) {
      for (size_t j = 0; j < edge.size_b; ++j) edge.table[i * edge.size_b + j] -= least[from_a ? j : i];
    }
    for (size_t value = 0; value < to.size(); ++value) to[value] += least[value];
  }

  const LabelFactors& factors_;
  std::vector<Node> node_;
  std::vector<Edge> edges_;
  std::vector<int32_t> order_;
  std::vector<size_t> place_;
};

}  // namespace

LabelBound bound_labels(const LabelFactors& factors, int max_sweeps) {
  constexpr LabelCost kLeastGrowth = 100'000;  // one part in so many
  MovingCosts costs(factors);
  LabelBound result{.lower_bound = costs.bound(), .values = costs.values()};
  for (int sweep = 0; sweep < max_sweeps; ++sweep) {
    costs.sweep(true);
    costs.sweep(false);
    const LabelCost bound = costs.bound();
    if (bound <= result.lower_bound) break;
    const bool is_slow = sweep > 2 && bound - result.lower_bound < result.lower_bound / kLeastGrowth;
    result = {.lower_bound = bound, .values = costs.values()};
    if (is_slow) break;
  }
  return result;
}

}  // namespace headrace::graph
