#include "graph/label_moves.h"

#include <algorithm>

#include "graph/min_cut.h"

namespace headrace::graph {

namespace {

using PairCost = LabelProblem::PairCost;
using SharedCost = LabelProblem::SharedCost;

LabelCost pair_cost(const LabelProblem& problem, const PairCost& pair, int32_t a, int32_t b) {
  return problem.tables[static_cast<size_t>(pair.table)][static_cast<size_t>(a * problem.num_labels + b)];
}

LabelCost price_of(const LabelProblem& problem, const SharedCost& shared, int32_t label, int32_t wanted) {
  if (problem.class_of(label) == wanted) return 0;
  return problem.tables[static_cast<size_t>(shared.table)][static_cast<size_t>(label * problem.num_classes() + wanted)];
}

// Labels, and how many consumers of each shared cost have each class.
class LocalMoves {
 public:
  LocalMoves(const LabelProblem& problem, std::vector<int32_t>& labels)
      : problem_(problem), labels_(labels), classes_(static_cast<size_t>(problem.num_classes())) {
    pairs_.resize(labels.size());
    produces_.resize(labels.size());
    consumes_.resize(labels.size());
    count_.assign(problem.shared.size() * classes_, 0);
    for (size_t i = 0; i < problem.pairs.size(); ++i) {
      pairs_[static_cast<size_t>(problem.pairs[i].a)].push_back(i);
      pairs_[static_cast<size_t>(problem.pairs[i].b)].push_back(i);
    }
    for (size_t i = 0; i < problem.shared.size(); ++i) {
      produces_[static_cast<size_t>(problem.shared[i].producer)].push_back(i);
      for (const int32_t consumer : problem.shared[i].consumers) {
        consumes_[static_cast<size_t>(consumer)].push_back(i);
        ++count(i, problem.class_of(label(consumer)));
      }
    }
  }

  // Gives each node its best label, in order, until a round changes nothing.
  void run() {
    constexpr int kRounds = 20;
    bool changes = true;
    for (int round = 0; round < kRounds && changes; ++round) {
      changes = false;
      for (int32_t node = 0; node < problem_.num_nodes; ++node) {
        int32_t best = label(node);
        LabelCost least = 0;
        for (int32_t other = 0; other < problem_.num_labels; ++other) {
          if (other == label(node) || problem_.cost(node, other) == kForbidden) continue;
          if (const LabelCost change = change_of(node, other); change < least) {
            least = change;
            best = other;
          }
        }
        changes |= least < 0;
        if (least < 0) set(node, best);
      }
    }
  }

 private:
  int32_t label(int32_t node) const { return labels_[static_cast<size_t>(node)]; }
  int32_t& count(size_t shared, int32_t of_class) { return count_[shared * classes_ + static_cast<size_t>(of_class)]; }

  LabelCost change_of(int32_t node, int32_t to) {
    const int32_t from = label(node), class_from = problem_.class_of(from), class_to = problem_.class_of(to);
    LabelCost change = problem_.cost(node, to) - problem_.cost(node, from);
    for (const size_t i : pairs_[static_cast<size_t>(node)]) {
      const PairCost& pair = problem_.pairs[i];
      change += pair.a == node
                    ? pair_cost(problem_, pair, to, label(pair.b)) - pair_cost(problem_, pair, from, label(pair.b))
                    : pair_cost(problem_, pair, label(pair.a), to) - pair_cost(problem_, pair, label(pair.a), from);
    }
    for (const size_t i : produces_[static_cast<size_t>(node)]) {
      const SharedCost& shared = problem_.shared[i];
      for (int32_t wanted = 0; wanted < problem_.num_classes(); ++wanted) {
        if (count(i, wanted) > 0)
          change += price_of(problem_, shared, to, wanted) - price_of(problem_, shared, from, wanted);
      }
    }
    if (class_from == class_to) return change;
    for (const size_t i : consumes_[static_cast<size_t>(node)]) {
      const SharedCost& shared = problem_.shared[i];
      if (count(i, class_from) == 1) change -= price_of(problem_, shared, label(shared.producer), class_from);
      if (count(i, class_to) == 0) change += price_of(problem_, shared, label(shared.producer), class_to);
    }
    return change;
  }

  void set(int32_t node, int32_t to) {
    for (const size_t i : consumes_[static_cast<size_t>(node)]) {
      --count(i, problem_.class_of(label(node)));
      ++count(i, problem_.class_of(to));
    }
    labels_[static_cast<size_t>(node)] = to;
  }

  const LabelProblem& problem_;
  std::vector<int32_t>& labels_;
  const size_t classes_;
  std::vector<std::vector<size_t>> pairs_, produces_, consumes_;  // by node: indices of costs
  std::vector<int32_t> count_;
};

// The choice of each node between its label and one that all nodes may take.
class Expansion {
 public:
  Expansion(const LabelProblem& problem, const std::vector<int32_t>& labels, int32_t taken)
      : problem_(problem), labels_(labels), taken_(taken), costs_(problem.num_nodes) {
    for (int32_t node = 0; node < problem.num_nodes; ++node) {
      if (can_take(node)) costs_.add(node, problem.cost(node, label(node)), problem.cost(node, taken));
    }
    for (const PairCost& pair : problem.pairs) add_pair(pair);
    for (const SharedCost& shared : problem.shared) {
      for (int32_t wanted = 0; wanted < problem.num_classes(); ++wanted) add_class(shared, wanted);
    }
  }

  std::vector<int32_t> best() const {
    const std::vector<bool> takes = costs_.minimize();
    std::vector<int32_t> result = labels_;
    for (size_t node = 0; node < result.size(); ++node) {
      if (takes[node] && can_take(static_cast<int32_t>(node))) result[node] = taken_;
    }
    return result;
  }

  // Whether the cut saw the true costs.
  bool is_exact() const { return is_exact_; }

 private:
  int32_t label(int32_t node) const { return labels_[static_cast<size_t>(node)]; }
  bool can_take(int32_t node) const { return problem_.cost(node, taken_) != kForbidden; }
  int32_t other(int32_t node) const { return can_take(node) ? taken_ : label(node); }

  void add_pair(const PairCost& pair) {
    const int32_t a = label(pair.a), b = label(pair.b), next_a = other(pair.a), next_b = other(pair.b);
    const LabelCost stay = pair_cost(problem_, pair, a, b), both = pair_cost(problem_, pair, next_a, next_b);
    LabelCost one = pair_cost(problem_, pair, a, next_b);
    const LabelCost two = pair_cost(problem_, pair, next_a, b);
    if (stay + both > one + two) {
      one = stay + both - two;
      is_exact_ = false;
    }
    costs_.add(pair.a, pair.b, stay, one, two, both);
  }

  // Adds the price of one class: a variable says whether it is paid, as in label_factors.h.
  void add_class(const SharedCost& shared, int32_t wanted) {
    const bool takes_it = problem_.class_of(taken_) == wanted;
    const LabelCost before = price_of(problem_, shared, label(shared.producer), wanted);
    LabelCost after = price_of(problem_, shared, other(shared.producer), wanted);
    if (before == 0 && after == 0) return;
    std::vector<int32_t> choosing;  // consumers whose choice decides about the class
    for (const int32_t consumer : shared.consumers) {
      const bool has_it = problem_.class_of(label(consumer)) == wanted;
      if (has_it && (takes_it || !can_take(consumer))) return costs_.add(shared.producer, before, after);
      if (has_it || (takes_it && can_take(consumer))) choosing.push_back(consumer);
    }
    if (choosing.empty()) return;
    const int32_t paid = costs_.add_variable();
    if (takes_it) {  // 1: it is paid; a producer that takes the label pays nothing
      costs_.add(shared.producer, paid, 0, before, 0, after);
      for (const int32_t consumer : choosing) costs_.add(consumer, paid, 0, 0, before, 0);
    } else {  // 0: it is paid
      if (after < before) {
        after = before;
        is_exact_ = false;
      }
      costs_.add(shared.producer, paid, before, 0, after, 0);
      for (const int32_t consumer : choosing) costs_.add(consumer, paid, 0, after, 0, 0);
    }
  }

  const LabelProblem& problem_;
  const std::vector<int32_t>& labels_;
  const int32_t taken_;
  BinaryCosts costs_;
  bool is_exact_ = true;
};

}  // namespace

void improve_labels(const LabelProblem& problem, std::vector<int32_t>& labels) {
  constexpr int kRounds = 4;
  LocalMoves(problem, labels).run();
  LabelCost cost = cost_of(problem, labels);
  bool changes = true;
  for (int round = 0; round < kRounds && changes; ++round) {
    changes = false;
    for (int32_t label = 0; label < problem.num_labels; ++label) {
      std::vector<int32_t> moved = Expansion(problem, labels, label).best();
      const LabelCost next = cost_of(problem, moved);
      if (next >= cost) continue;
      changes = true;
      cost = next;
      labels = std::move(moved);
    }
    if (!changes) return;
    LocalMoves(problem, labels).run();
    cost = cost_of(problem, labels);
  }
}

std::optional<std::vector<int32_t>> cut_labels(const LabelProblem& problem) {
  if (problem.num_labels != 2) return {};
  std::vector<int32_t> labels(static_cast<size_t>(problem.num_nodes));
  for (int32_t node = 0; node < problem.num_nodes; ++node)
    labels[static_cast<size_t>(node)] = problem.cost(node, 0) == kForbidden ? 1 : 0;
  const Expansion expansion(problem, labels, 1);
  if (!expansion.is_exact()) return {};
  return expansion.best();
}

}  // namespace headrace::graph
