#include "graph/labels.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "graph/label_bound.h"
#include "graph/label_elimination.h"
#include "graph/label_factors.h"
#include "graph/label_moves.h"

namespace headrace::graph {

namespace {

constexpr LabelCost kMaxTotal = LabelCost{1} << 60;

// Adds up costs that must not be negative and whose sum must stay in range.
class CostSum {
 public:
  void add(LabelCost cost, LabelCost times = 1) {
    HEADRACE_CHECK(cost >= 0, "a label cost of {}", cost);
    HEADRACE_CHECK(cost <= (kMaxTotal - total_) / std::max<LabelCost>(times, 1), "label costs whose sum passes 2^60");
    total_ += cost * times;
  }

 private:
  LabelCost total_ = 0;
};

void check_node(const LabelProblem& problem, int32_t node) {
  HEADRACE_CHECK(node >= 0 && node < problem.num_nodes, "node {} of {}", node, problem.num_nodes);
}

void check_sizes(const LabelProblem& problem) {
  HEADRACE_CHECK(problem.num_nodes >= 0 && problem.num_labels >= 1 && problem.num_labels <= LabelProblem::kMaxLabels,
                 "{} nodes with {} labels", problem.num_nodes, problem.num_labels);
  const auto labels = static_cast<size_t>(problem.num_labels);
  HEADRACE_CHECK(problem.costs.size() == static_cast<size_t>(problem.num_nodes) * labels,
                 "{} costs of {} nodes with {} labels", problem.costs.size(), problem.num_nodes, labels);
  HEADRACE_CHECK(problem.label_class.empty() || problem.label_class.size() == labels, "classes of {} of {} labels",
                 problem.label_class.size(), labels);
  for (const int32_t at : problem.label_class)
    HEADRACE_CHECK(at >= 0 && at < problem.num_labels, "the class {} of a label", at);
}

// Checks that a table has `columns` entries for each label, and returns its highest entry.
LabelCost check_table(const LabelProblem& problem, int32_t table, int32_t columns) {
  HEADRACE_CHECK(table >= 0 && static_cast<size_t>(table) < problem.tables.size(), "table {} of {}", table,
                 problem.tables.size());
  const std::vector<LabelCost>& entries = problem.tables[static_cast<size_t>(table)];
  HEADRACE_CHECK(entries.size() == static_cast<size_t>(problem.num_labels) * static_cast<size_t>(columns),
                 "a table of {} entries for {} labels and {} columns", entries.size(), problem.num_labels, columns);
  LabelCost highest = 0;
  for (const LabelCost cost : entries) {
    HEADRACE_CHECK(cost >= 0 && cost <= kMaxTotal, "a label cost of {}", cost);
    highest = std::max(highest, cost);
  }
  return highest;
}

void check_problem(const LabelProblem& problem) {
  check_sizes(problem);
  CostSum sum;
  for (int32_t node = 0; node < problem.num_nodes; ++node) {
    LabelCost highest = -1;
    for (int32_t label = 0; label < problem.num_labels; ++label) {
      const LabelCost cost = problem.cost(node, label);
      HEADRACE_CHECK(cost >= 0, "a label cost of {}", cost);
      if (cost != kForbidden) highest = std::max(highest, cost);
    }
    HEADRACE_CHECK(highest >= 0, "node {} may have no label", node);
    sum.add(highest);
  }
  for (const LabelProblem::PairCost& pair : problem.pairs) {
    check_node(problem, pair.a);
    check_node(problem, pair.b);
    HEADRACE_CHECK(pair.a != pair.b, "a pair cost of node {} and itself", pair.a);
    sum.add(check_table(problem, pair.table, problem.num_labels));
  }
  for (const LabelProblem::SharedCost& shared : problem.shared) {
    check_node(problem, shared.producer);
    for (const int32_t consumer : shared.consumers) check_node(problem, consumer);
    // Beside the price, each consumer may pay it while the variable of label_factors.h says otherwise.
    sum.add(check_table(problem, shared.table, problem.num_classes()),
            problem.num_classes() * static_cast<LabelCost>(shared.consumers.size() + 1));
  }
}

std::optional<Labelling> solve_exactly(const LabelProblem& problem, const LabelOptions& options, LabelMethod method) {
  constexpr int64_t kMaxSharedEntries = 4096;  // entries in the table of one shared cost
  Labelling result{.labels = {}, .method = method};
  if (method == LabelMethod::elimination) {
    LabelFactors factors = make_factors(problem, kMaxSharedEntries);
    const auto found = eliminate(factors, options);
    if (!found) return {};
    result.labels = factors.labels_of(found->values);
    result.operations = found->operations;
  } else {
    auto labels = cut_labels(problem);
    if (!labels) return {};
    result.labels = std::move(*labels);
  }
  result.cost = result.lower_bound = cost_of(problem, result.labels);
  return result;
}

// Begins with the labels that the lower bound suggests.
Labelling solve_by_moves(const LabelProblem& problem, const LabelOptions& options) {
  const LabelFactors factors = make_factors(problem, 0);
  const LabelBound bound = bound_labels(factors, options.max_sweeps);
  Labelling result{.labels = factors.labels_of(bound.values), .method = LabelMethod::moves};
  improve_labels(problem, result.labels);
  result.cost = cost_of(problem, result.labels);
  result.lower_bound = bound.lower_bound;
  return result;
}

}  // namespace

int32_t LabelProblem::num_classes() const {
  return label_class.empty() ? num_labels : 1 + *std::max_element(label_class.begin(), label_class.end());
}

std::string_view to_string(LabelMethod method) {
  switch (method) {
    case LabelMethod::elimination:
      return "elimination";
    case LabelMethod::min_cut:
      return "min_cut";
    case LabelMethod::moves:
      return "moves";
  }
  HEADRACE_CHECK(false, "a method of labels that is none");
}

LabelProblem normalized(const LabelProblem& problem) {
  check_problem(problem);
  LabelProblem result = problem;
  for (LabelProblem::SharedCost& shared : result.shared) {
    std::sort(shared.consumers.begin(), shared.consumers.end());
    shared.consumers.erase(std::unique(shared.consumers.begin(), shared.consumers.end()), shared.consumers.end());
    std::erase(shared.consumers, shared.producer);
  }
  return result;
}

Labelling find_labels(const LabelProblem& problem, const LabelOptions& options) {
  const LabelProblem normal = normalized(problem);
  for (const LabelMethod method : {LabelMethod::elimination, LabelMethod::min_cut}) {
    if (options.method.value_or(method) != method) continue;
    if (auto result = solve_exactly(normal, options, method)) return std::move(*result);
    HEADRACE_CHECK(!options.method, "the method {} cannot solve this problem", to_string(method));
  }
  return solve_by_moves(normal, options);
}

LabelCost cost_of(const LabelProblem& problem, const std::vector<int32_t>& labels) {
  HEADRACE_CHECK(labels.size() == static_cast<size_t>(problem.num_nodes), "labels of {} of {} nodes", labels.size(),
                 problem.num_nodes);
  LabelCost total = 0;
  for (int32_t node = 0; node < problem.num_nodes; ++node) {
    const int32_t label = labels[static_cast<size_t>(node)];
    HEADRACE_CHECK(label >= 0 && label < problem.num_labels && problem.cost(node, label) != kForbidden,
                   "the label {} of node {} is not allowed", label, node);
    total += problem.cost(node, label);
  }
  for (const LabelProblem::PairCost& pair : problem.pairs) {
    const int32_t a = labels[static_cast<size_t>(pair.a)], b = labels[static_cast<size_t>(pair.b)];
    total += problem.tables[static_cast<size_t>(pair.table)][static_cast<size_t>(a * problem.num_labels + b)];
  }
  const int32_t classes = problem.num_classes();
  std::vector<size_t> seen(static_cast<size_t>(classes), 0);
  for (size_t i = 0; i < problem.shared.size(); ++i) {
    const LabelProblem::SharedCost& shared = problem.shared[i];
    const int32_t own = labels[static_cast<size_t>(shared.producer)];
    seen[static_cast<size_t>(problem.class_of(own))] = i + 1;
    for (const int32_t consumer : shared.consumers) {
      const int32_t wanted = problem.class_of(labels[static_cast<size_t>(consumer)]);
      if (std::exchange(seen[static_cast<size_t>(wanted)], i + 1) != i + 1)
        total += problem.tables[static_cast<size_t>(shared.table)][static_cast<size_t>(own * classes + wanted)];
    }
  }
  return total;
}

}  // namespace headrace::graph
