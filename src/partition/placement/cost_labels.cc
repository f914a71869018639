// The label problem of a cost problem.
#include <algorithm>
#include <cmath>
#include <set>

#include "partition/placement/cost_problem.h"

namespace headrace::partition {

using relay::CallNode;

namespace {

constexpr int64_t kMaxNative = int64_t{1} << 58;

}  // namespace

void CostProblem::set_unit(double per_second) {
  per_second_ = per_second;
  const auto labels = static_cast<size_t>(num_labels());
  problem_ = {.num_nodes = static_cast<int32_t>(plain_->consumers.size()), .num_labels = num_labels()};
  if (labels != num_backends_) problem_.label_class = pieces_.backends();
  for (const double one : seconds_)
    problem_.costs.push_back(one < 0 ? graph::kForbidden : std::llround(one * per_second));
  for (size_t i = flow_.nodes.size(); i < plain_->consumers.size(); ++i) {  // variables are native
    problem_.costs.push_back(0);
    problem_.costs.insert(problem_.costs.end(), labels - 1, graph::kForbidden);
  }
  tables_.clear();
  choose_consumers();
  add_borders_of_values();
  add_joins();
  add_whole_pieces();
}

void CostProblem::choose_unit() {
  constexpr double kPicoseconds = 1e12, kMaxSum = 0x1p58;
  set_unit(std::min(kPicoseconds, kMaxSum / std::max(most_seconds(), 1 / kPicoseconds)));
}

int32_t CostProblem::table_of(std::vector<graph::LabelCost> table) {
  const auto [known, is_new] = tables_.try_emplace(std::move(table), static_cast<int32_t>(problem_.tables.size()));
  if (is_new) problem_.tables.push_back(known->first);
  return known->second;
}

// A value that instances compute once more for themselves: where such an instance is taken, it does not use the value.
// The label problem takes no border for it there, nor for any value that is not computed in some plan. It has no
// borders for the operands of such a value either, which enter the instance, so that its costs are a lower bound.
void CostProblem::choose_consumers() {
  consumers_ = plain_->consumers;
  std::map<int32_t, int> repeated;  // by node: the number of instances that compute it once more
  for (const Piece& piece : pieces_.all()) {
    if (piece.label == kNone) continue;
    for (const int32_t node : piece.twice) {
      ++repeated[node];
      std::erase_if(consumers_[static_cast<size_t>(node)], [&](int32_t consumer) {
        return std::find(piece.nodes.begin(), piece.nodes.end(), consumer) != piece.nodes.end();
      });
    }
  }
  for (const auto& [node, times] : repeated) {
    if (times < 2) continue;
    for (auto& consumers : consumers_) std::erase(consumers, node);
    const auto labels = static_cast<size_t>(num_labels());
    for (size_t label = 0; label < labels; ++label) {
      graph::LabelCost& cost = problem_.costs[static_cast<size_t>(node) * labels + label];
      if (cost != graph::kForbidden) cost = 0;
    }
  }
}

// One device: a border costs the call of the region that is entered and changes of layout, and no copy. A result is a
// use by native code.
void CostProblem::add_borders_of_values() {
  const auto labels = static_cast<size_t>(num_labels());
  for (size_t producer = 0; producer < consumers_.size(); ++producer) {
    const bool is_result = producer < flow_.nodes.size() && plain_->is_result[producer];
    if (consumers_[producer].empty() && !is_result) continue;
    std::vector<graph::LabelCost> prices(labels * num_backends_, 0);
    for (size_t from = 0; from < labels; ++from) {
      for (size_t to = 0; to < num_backends_; ++to) {
        if (backend_index(static_cast<int32_t>(from)) != to)
          prices[from * num_backends_ + to] =
              border_units(producer, static_cast<int32_t>(from), static_cast<int32_t>(to));
      }
      if (!is_result || from == 0) continue;
      graph::LabelCost& own = problem_.costs[producer * labels + from];
      if (own != graph::kForbidden) own += prices[from * num_backends_];
      prices[from * num_backends_] = 0;
    }
    add_borders_of_lone_calls(producer, prices);
    if (!consumers_[producer].empty())
      problem_.shared.push_back({static_cast<int32_t>(producer), consumers_[producer], table_of(std::move(prices))});
  }
}

bool CostProblem::is_call(int32_t node) const { return node >= flow_.num_nodes() || flow_.node(node).is<CallNode>(); }

// Returns whether each call with the label `to` pays for this value by itself, because its backend's regions have one
// call each. A tuple may be in the region of the call that takes it, and a value and its tuple then enter once.
bool CostProblem::is_lone(size_t producer, int32_t from, int32_t to) const {
  if (backend_of(to) == kNativeLabel || !one_call_.contains(names_[static_cast<size_t>(to)])) return false;
  if (backend_of(from) == backend_of(to)) return is_call(static_cast<int32_t>(producer));
  return std::all_of(consumers_[producer].begin(), consumers_[producer].end(),
                     [&](int32_t consumer) { return is_call(consumer); });
}

// Takes the prices that each such call pays out of the shared ones.
void CostProblem::add_borders_of_lone_calls(size_t producer, std::vector<graph::LabelCost>& prices) {
  const auto labels = static_cast<size_t>(num_labels());
  std::vector<graph::LabelCost> lone(labels * labels, 0);
  bool any = false;
  for (int32_t from = 0; from < num_labels(); ++from) {
    for (int32_t to = 0; to < num_labels(); ++to) {
      if (!is_lone(producer, from, to)) continue;
      lone[static_cast<size_t>(from) * labels + static_cast<size_t>(to)] = border_units(producer, from, to);
      prices[static_cast<size_t>(from) * num_backends_ + backend_index(to)] = 0;
      any = true;
    }
  }
  if (any) add_lone_pairs(static_cast<int32_t>(producer), lone);
}

void CostProblem::add_lone_pairs(int32_t producer, const std::vector<graph::LabelCost>& lone) {
  const auto labels = static_cast<size_t>(num_labels());
  const std::vector<int32_t>& all = consumers_[static_cast<size_t>(producer)];
  for (const int32_t consumer : std::set<int32_t>(all.begin(), all.end())) {
    if (!is_call(consumer)) continue;
    std::vector<graph::LabelCost> table = lone;
    for (int32_t from = 0; from < num_labels(); ++from) {
      for (int32_t to = 0; to < num_labels(); ++to) {
        if (!pays_alone(producer, from, consumer, to))
          table[static_cast<size_t>(from) * labels + static_cast<size_t>(to)] = 0;
      }
    }
    problem_.pairs.push_back({producer, consumer, table_of(std::move(table))});
  }
}

// An instance pays once for a value, at the first of its calls that takes it, and not for its own values.
bool CostProblem::pays_alone(int32_t producer, int32_t from, int32_t consumer, int32_t to) const {
  if (to < static_cast<int32_t>(num_backends_)) return true;
  const int32_t piece = pieces_.at(consumer, to);
  if (piece == kNone) return true;
  if (producer < flow_.num_nodes() && pieces_.at(producer, from) == piece) return false;
  const std::vector<int32_t>& all = consumers_[static_cast<size_t>(producer)];
  return std::none_of(all.begin(), all.end(), [&](int32_t other) {
    return other < consumer && is_call(other) && pieces_.at(other, to) == piece;
  });
}

// A call costs less where its producers have its label. Costs are not negative, so it costs that little, and the rest
// where one of them has another label.
void CostProblem::add_joins() {
  const auto labels = static_cast<size_t>(num_labels());
  for (const auto& [key, joins] : joins_) {
    const auto& [node, label] = key;
    int64_t most = 0;
    for (const Join& join : joins) most = std::max(most, units_saved(node, label, join));
    const int32_t piece = pieces_.at(node, label);
    const int32_t lead = piece == kNone ? node : pieces_.all()[static_cast<size_t>(piece)].lead;
    graph::LabelCost& cost = problem_.costs[static_cast<size_t>(lead) * labels + static_cast<size_t>(label)];
    if (cost < most) continue;  // it is free already
    cost -= most;
    if (joins.size() == 1) {
      add_condition(node, label, joins.front(), most);
    } else {
      add_forms(node, label, joins, most);
    }
  }
}

// With one producer a pair of both calls has the cost. With several, a node of the problem's own pays with those that
// have another label, or, by a label that is not the join's, once with the call itself: the cheaper of the two.
void CostProblem::add_condition(int32_t node, int32_t label, const Join& join, int64_t saved) {
  const auto labels = static_cast<size_t>(num_labels()), own = static_cast<size_t>(label);
  const auto others_of = [&](int32_t wanted) {  // the producer has another label, the payer the join's
    std::vector<graph::LabelCost> others(labels * labels, 0);
    for (size_t from = 0; from < labels; ++from) {
      if (from != static_cast<size_t>(wanted)) others[from * labels + own] = saved;
    }
    return table_of(std::move(others));
  };
  int32_t payer = node;
  if (join.producers.size() > 1) {
    payer = problem_.num_nodes++;
    problem_.costs.insert(problem_.costs.end(), labels, graph::kForbidden);
    graph::LabelCost* costs = &problem_.costs[static_cast<size_t>(payer) * labels];
    costs[own] = costs[kNativeLabel] = 0;
    problem_.pairs.push_back({payer, node, others_of(label)});
  }
  problem_.pairs.push_back({join.operand, payer, others_of(join.form)});
  for (size_t i = 1; i < join.producers.size(); ++i)
    problem_.pairs.push_back({flow_.find(ref(join.producers[i])), payer, others_of(backend_of(label))});
}

// The label of the operand says which of several joins the call has; that others may be missing, too, is left out. With
// several operands nothing is paid at all: both are lower bounds.
void CostProblem::add_forms(int32_t node, int32_t label, const Joins& joins, int64_t most) {
  const auto labels = static_cast<size_t>(num_labels()), own = static_cast<size_t>(label);
  const int32_t operand = joins.front().operand;
  std::vector<graph::LabelCost> table(labels * labels, 0);
  for (size_t from = 0; from < labels; ++from) table[from * labels + own] = most;
  for (const Join& join : joins) {
    if (join.operand != operand) return;
    table[static_cast<size_t>(join.form) * labels + own] = most - units_saved(node, label, join);
  }
  problem_.pairs.push_back({operand, node, table_of(std::move(table))});
}

// Labels by which an instance is taken in part cost more than native code, and so more than any plan of least cost.
// Each node of an instance is tied to one that uses it, up to the root.
void CostProblem::add_whole_pieces() {
  if (pieces_.all().empty()) return;
  int64_t native = 0;
  for (int32_t node = 0; node < flow_.num_nodes(); ++node) native += units(node, kNativeLabel);
  for (const auto& [labels, seconds] : measured_)
    native = std::max<int64_t>(native, std::llround(seconds * per_second_));
  native = std::min(native, kMaxNative);
  const auto labels = static_cast<size_t>(num_labels());
  for (size_t i = 0; i < pieces_.all().size(); ++i) {
    const Piece& piece = pieces_.all()[i];
    if (piece.label == kNone) continue;
    const auto own = static_cast<size_t>(piece.label);
    std::vector<graph::LabelCost> table(labels * labels, 0);
    for (size_t label = 0; label < labels; ++label) {
      if (label != own) table[label * labels + own] = table[own * labels + label] = native + 1;
    }
    const int32_t whole = table_of(std::move(table));
    for (const int32_t node : piece.nodes) {
      if (node == piece.root) continue;
      const std::vector<int32_t>& users = plain_->consumers[static_cast<size_t>(node)];
      const auto user = std::find_if(users.begin(), users.end(), [&](int32_t one) {
        return pieces_.at(one, piece.label) == static_cast<int32_t>(i);
      });
      problem_.pairs.push_back({node, user == users.end() ? piece.root : *user, whole});
    }
  }
}

graph::Labelling CostProblem::solve() const {
  graph::Labelling found = graph::find_labels(problem_);
  found.labels.resize(flow_.nodes.size());
  if (!pieces_.all().empty()) repair(found.labels);
  return found;
}

bool CostProblem::add_borders(const std::vector<int32_t>& labels) {
  const Regions regions = regions_of(labels);
  const auto region = [&](int32_t node) {
    return node < flow_.num_nodes() ? regions.region[static_cast<size_t>(node)] : kNone;
  };
  const auto label = [&](int32_t node) {
    return node < flow_.num_nodes() ? labels[static_cast<size_t>(node)] : kNativeLabel;
  };
  bool any = false;
  for (size_t i = 0; i < plain_->consumers.size(); ++i) {
    const auto producer = static_cast<int32_t>(i);
    std::set<int32_t> split, first;  // regions with a border to the producer; labels whose border is in the problem
    for (const int32_t consumer : plain_->consumers[i]) {
      const int32_t at = region(consumer);
      if (at == kNone || at == region(producer) || !split.insert(at).second) continue;
      const int32_t own = label(consumer);
      if (is_lone(i, label(producer), own) && is_call(consumer)) continue;  // the problem has it
      const int64_t border = border_units(i, label(producer), own);
      if (backend_of(own) == backend_of(label(producer))) {
        std::vector<graph::LabelCost> table(names_.size() * names_.size(), 0);
        table[static_cast<size_t>(label(producer)) * names_.size() + static_cast<size_t>(own)] = border;
        problem_.pairs.push_back({producer, consumer, table_of(std::move(table))});
        any = true;
      } else if (!first.insert(backend_of(own)).second) {
        problem_.costs[static_cast<size_t>(consumer) * names_.size() + static_cast<size_t>(own)] += border;
        any = true;
      }
    }
  }
  return any;
}

}  // namespace headrace::partition
