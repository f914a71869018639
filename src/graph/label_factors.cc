#include "graph/label_factors.h"

#include <algorithm>
#include <utility>

namespace headrace::graph {

namespace {

class FactorMaker {
 public:
  FactorMaker(const LabelProblem& problem, int64_t max_entries) : problem_(problem), max_entries_(max_entries) {
    result_.labels.resize(static_cast<size_t>(problem.num_nodes));
    for (int32_t node = 0; node < problem.num_nodes; ++node) {
      std::vector<int32_t>& allowed = result_.labels[static_cast<size_t>(node)];
      for (int32_t label = 0; label < problem.num_labels; ++label) {
        if (problem.cost(node, label) != kForbidden) allowed.push_back(label);
      }
      add_variable(static_cast<int32_t>(allowed.size()), node);
    }
  }

  LabelFactors take() {
    for (int32_t node = 0; node < problem_.num_nodes; ++node)
      add({node}, [&](const int32_t* value) { return problem_.cost(node, label(node, value[0])); });
    for (const LabelProblem::PairCost& pair : problem_.pairs) add_pair(pair);
    for (const LabelProblem::SharedCost& shared : problem_.shared) add_shared(shared);
    return std::move(result_);
  }

 private:
  int32_t label(int32_t node, int32_t value) const {
    return result_.labels[static_cast<size_t>(node)][static_cast<size_t>(value)];
  }
  int32_t size(int32_t variable) const { return result_.size[static_cast<size_t>(variable)]; }

  int32_t add_variable(int32_t size, int32_t anchor) {
    result_.size.push_back(size);
    result_.anchor.push_back(anchor);
    return result_.num_variables() - 1;
  }

  // Adds the factor whose cost is `cost` of the values of `variables`, which are ascending.
  template <typename Cost>
  void add(const std::vector<int32_t>& variables, Cost&& cost) {
    LabelFactors::Factor factor;
    for (const int32_t variable : variables) {
      if (size(variable) > 1) factor.scope.push_back(variable);
    }
    std::vector<int32_t> values(variables.size(), 0);
    bool is_zero = true;
    for (bool more = true; more;) {
      factor.table.push_back(cost(values.data()));
      is_zero &= factor.table.back() == 0;
      more = false;
      for (size_t i = values.size(); i-- > 0 && !more;) {
        more = ++values[i] < size(variables[i]);
        if (!more) values[i] = 0;
      }
    }
    if (factor.scope.empty()) {
      result_.constant += factor.table[0];
    } else if (!is_zero) {
      result_.factors.push_back(std::move(factor));
    }
  }

  void add_pair(const LabelProblem::PairCost& pair) {
    const std::vector<LabelCost>& table = problem_.tables[static_cast<size_t>(pair.table)];
    const bool in_order = pair.a < pair.b;
    const int32_t first = in_order ? pair.a : pair.b, second = in_order ? pair.b : pair.a;
    add({first, second}, [&](const int32_t* value) {
      const int32_t x = label(first, value[0]), y = label(second, value[1]);
      return table[static_cast<size_t>(in_order ? x * problem_.num_labels + y : y * problem_.num_labels + x)];
    });
  }

  LabelCost price(const LabelProblem::SharedCost& shared, int32_t label, int32_t label_class) const {
    if (problem_.class_of(label) == label_class) return 0;
    return problem_
        .tables[static_cast<size_t>(shared.table)][static_cast<size_t>(label * problem_.num_classes() + label_class)];
  }

  void add_shared(const LabelProblem::SharedCost& shared) {
    if (shared.consumers.empty()) return;
    std::vector<int32_t> variables = shared.consumers;
    variables.insert(std::lower_bound(variables.begin(), variables.end(), shared.producer), shared.producer);
    int64_t entries = 1, free_variables = 0;
    for (const int32_t variable : variables) {
      entries = std::min(entries, INT64_MAX / 256) * size(variable);
      free_variables += size(variable) > 1 ? 1 : 0;
    }
    if (free_variables <= 2 || entries <= max_entries_) {
      add_whole(shared, variables);
    } else {
      for (int32_t at = 0; at < problem_.num_classes(); ++at) add_class(shared, at);
    }
  }

  void add_whole(const LabelProblem::SharedCost& shared, const std::vector<int32_t>& variables) {
    const auto place =
        static_cast<size_t>(std::lower_bound(variables.begin(), variables.end(), shared.producer) - variables.begin());
    std::vector<int32_t> seen(static_cast<size_t>(problem_.num_classes()), 0);
    int32_t stamp = 0;
    add(variables, [&](const int32_t* value) {
      const int32_t own = label(shared.producer, value[place]);
      LabelCost sum = 0;
      ++stamp;
      for (size_t i = 0; i < variables.size(); ++i) {
        if (i == place) continue;
        const int32_t wanted = problem_.class_of(label(variables[i], value[i]));
        if (std::exchange(seen[static_cast<size_t>(wanted)], stamp) != stamp) sum += price(shared, own, wanted);
      }
      return sum;
    });
  }

  void add_class(const LabelProblem::SharedCost& shared, int32_t wanted) {
    const std::vector<int32_t>& consumers = shared.consumers;
    LabelCost highest = 0;
    for (const int32_t own : result_.labels[static_cast<size_t>(shared.producer)])
      highest = std::max(highest, price(shared, own, wanted));
    const auto wants = [&](int32_t consumer) {
      const std::vector<int32_t>& allowed = result_.labels[static_cast<size_t>(consumer)];
      return std::any_of(allowed.begin(), allowed.end(),
                         [&](int32_t label) { return problem_.class_of(label) == wanted; });
    };
    if (highest == 0 || std::none_of(consumers.begin(), consumers.end(), wants)) return;
    const int32_t paid = add_variable(2, shared.producer);
    add({shared.producer, paid}, [&](const int32_t* value) {
      return value[1] == 0 ? 0 : price(shared, label(shared.producer, value[0]), wanted);
    });
    for (const int32_t consumer : consumers) {
      add({consumer, paid}, [&](const int32_t* value) {
        return value[1] == 0 && problem_.class_of(label(consumer, value[0])) == wanted ? highest : 0;
      });
    }
  }

  const LabelProblem& problem_;
  const int64_t max_entries_;
  LabelFactors result_;
};

}  // namespace

std::vector<int32_t> LabelFactors::labels_of(std::span<const int32_t> values) const {
  std::vector<int32_t> result(labels.size());
  for (size_t node = 0; node < labels.size(); ++node) result[node] = labels[node][static_cast<size_t>(values[node])];
  return result;
}

LabelFactors make_factors(const LabelProblem& problem, int64_t max_entries) {
  return FactorMaker(problem, max_entries).take();
}

}  // namespace headrace::graph
