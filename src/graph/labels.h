// Labels: gives each node of a graph one of k labels at the least cost. What labels stand for is up to the caller: the
// backend that computes an op, the layout of a tensor.
//
//   total = sum of the cost of each node's label
//         + sum of the pair costs of two nodes' labels
//         + sum over producers, over the classes of their consumers' labels other than the producer's own class: the
//           price of that class, once, however many consumers have it
//
// The last term is a tensor that is copied or converted once for all consumers that want it in one form. Labels of one
// class want one form.
//
// Costs are integers (such as picoseconds), so that sums are exact and results do not depend on their order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace headrace::graph {

using LabelCost = int64_t;

// The cost of a label that a node must not have.
inline constexpr LabelCost kForbidden = INT64_MAX;

struct LabelProblem {
  struct PairCost {
    int32_t a, b;   // two different nodes
    int32_t table;  // its entry [label of a * num_labels + label of b] is the cost
  };
  struct SharedCost {
    int32_t producer;
    std::vector<int32_t> consumers;  // a node that is listed twice counts once
    int32_t table;                   // its entry [label of the producer * num_classes() + class] is the price
  };

  int32_t num_nodes = 0;
  int32_t num_labels = 1;              // at most kMaxLabels
  std::vector<int32_t> label_class{};  // by label, numbered from 0; empty: each label is a class of its own
  std::vector<LabelCost> costs{};      // [node * num_labels + label]
  std::vector<std::vector<LabelCost>> tables{};
  std::vector<PairCost> pairs{};
  std::vector<SharedCost> shared{};

  static constexpr int32_t kMaxLabels = 255;
  int32_t class_of(int32_t label) const {
    return label_class.empty() ? label : label_class[static_cast<size_t>(label)];
  }
  int32_t num_classes() const;
  LabelCost cost(int32_t node, int32_t label) const {
    return costs[static_cast<size_t>(node) * static_cast<size_t>(num_labels) + static_cast<size_t>(label)];
  }
};

enum class LabelMethod : uint8_t {
  elimination,  // variable elimination over a tree decomposition: exact
  min_cut,      // two labels and costs that one minimum cut expresses: exact
  moves,        // expansion and local moves, with a lower bound
};
std::string_view to_string(LabelMethod method);

struct LabelOptions {
  int64_t max_table_entries = int64_t{1} << 24;  // limit for one table of the elimination
  int64_t max_operations = int64_t{1} << 31;     // limit for the elimination: all entries that it adds up
  int max_sweeps = 100;                          // limit for the lower bound of `moves`
  std::optional<LabelMethod> method = {};        // nothing: the first that can solve the problem, in the order above
};

struct Labelling {
  std::vector<int32_t> labels;  // by node
  LabelCost cost = 0;
  LabelCost lower_bound = 0;  // no labels cost less; equal to `cost` for exact methods
  LabelMethod method = LabelMethod::elimination;
  int64_t operations = 0;  // entries that the elimination added up

  LabelCost gap() const { return cost - lower_bound; }
};

// Returns labels of least cost, or of low cost where an exact method takes too long. InternalError for a problem that
// is not well-formed: a number out of range, a negative cost, costs whose sum may pass 2^60, a forbidden entry of a
// table, a node without a label that is allowed; and for a method in `options` that cannot solve the problem.
// Deterministic; no recursion.
Labelling find_labels(const LabelProblem& problem, const LabelOptions& options = {});

// Returns the total cost of labels. InternalError when a node has a label that is forbidden or out of range.
LabelCost cost_of(const LabelProblem& problem, const std::vector<int32_t>& labels);

}  // namespace headrace::graph
