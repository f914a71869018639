#include "partition/cost_problem.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "partition/by_cost.h"
#include "partition/decider.h"
#include "partition/place.h"

namespace headrace::partition {

using relay::CallNode;

namespace {

constexpr double kNotAllowed = -1;
constexpr int32_t kNativeLabel = 0;

// Tables of the label problem.
constexpr int32_t kBorders = 0;     // the price of a producer's label and a class
constexpr int32_t kFirstSplit = 1;  // by label from 1: a border between two nodes that both have it

}  // namespace

CostProblem::CostProblem(IRModule module, const OpCosts& costs)
    : module_(std::move(module)), flow_(make_flow(module_->lookup("main").cast<relay::FunctionNode>()->body)) {
  names_.emplace_back();
  for (const auto& backend : costs.backends()) names_.emplace_back(backend->name());
  one_call_ = one_call_backends(costs.backends());
  read_costs(costs);
  read_uses();
  read_joins(costs);
}

// Returns whether a node costs nothing wherever it is: tuples and their items.
bool CostProblem::is_free(int32_t node) const {
  const Expr& expr = flow_.node(node);
  return !expr.is<CallNode>() && is_computation(expr) && region_fault(expr).empty();
}

void CostProblem::read_costs(const OpCosts& costs) {
  seconds_.assign(flow_.nodes.size() * names_.size(), kNotAllowed);
  const auto at = [&](int32_t node, size_t label) -> double& {
    return seconds_[static_cast<size_t>(node) * names_.size() + label];
  };
  for (int32_t node = 0; node < flow_.num_nodes(); ++node) {
    at(node, kNativeLabel) = 0;
    for (size_t label = 1; label < names_.size() && is_free(node); ++label) at(node, label) = 0;
  }
  for_each_placeable(module_, [&](const CallNode& call) {
    const int32_t node = flow_.find(ref(&call));
    if (node == kNone) return;
    for (const LabelSeconds& one : costs.of(call)) {
      const auto label = one.label == kNative ? names_.begin() : std::find(names_.begin() + 1, names_.end(), one.label);
      at(node, static_cast<size_t>(label - names_.begin())) = one.seconds;
    }
  });
}

// A variable is a producer of its own; constants are part of the region that uses them.
void CostProblem::read_uses() {
  consumers_.resize(flow_.nodes.size());
  is_result_.resize(flow_.nodes.size());
  std::unordered_map<const Object*, size_t> variables;
  for (const Flow::Use& use : flow_.uses) {
    if (use.to == kNone) {
      if (use.from != kNone) is_result_[static_cast<size_t>(use.from)] = true;
      continue;
    }
    const auto* call = flow_.node(use.to).as<CallNode>();
    if (call != nullptr && call->op == use.value) continue;
    auto producer = static_cast<size_t>(use.from);
    if (use.from == kNone) {
      if (!use.value.is<relay::VarNode>()) continue;
      const auto [it, is_new] = variables.try_emplace(use.value.object(), consumers_.size());
      if (is_new) consumers_.emplace_back();
      producer = it->second;
    }
    consumers_[producer].push_back(use.to);
  }
}

void CostProblem::read_joins(const OpCosts& costs) {
  for (int32_t node = 0; node < flow_.num_nodes(); ++node) {
    const auto* call = flow_.node(node).as<CallNode>();
    if (call == nullptr || call->as_op() == nullptr) continue;
    for (const Expr& arg : call->args) {
      const auto* producer = arg.as<CallNode>();
      const int32_t from = producer == nullptr ? kNone : flow_.find(arg);
      if (from == kNone || producer->as_op() == nullptr || is_result_[static_cast<size_t>(from)]) continue;
      const std::vector<int32_t>& users = consumers_[static_cast<size_t>(from)];
      if (std::any_of(users.begin(), users.end(), [&](int32_t user) { return user != node; })) continue;
      const double saved = std::min(costs.saved(*producer, *call), seconds(node, kNativeLabel));
      if (saved == 0) continue;
      joins_[node] = {producer, saved};
      break;
    }
  }
}

const CostProblem::Join* CostProblem::join_of(const CallNode& call, const Labels& backends) const {
  const int32_t node = flow_.find(ref(&call));
  const auto join = node == kNone ? joins_.end() : joins_.find(node);
  return join == joins_.end() || backends.contains(join->second.producer) ? nullptr : &join->second;
}

double CostProblem::most_seconds() const {
  double sum = 0;
  for (int32_t node = 0; node < flow_.num_nodes(); ++node) {
    double most = 0;
    for (int32_t label = 0; label < num_labels(); ++label) most = std::max(most, seconds(node, label));
    sum += most + kBorderSeconds;
  }
  // The label problem counts a border for each class and each consumer when it checks that sums stay in range, and
  // rounds may add some more.
  for (const std::vector<int32_t>& consumers : consumers_)
    sum += kBorderSeconds * static_cast<double>(names_.size() + 8) * static_cast<double>(consumers.size() + 1);
  return sum;
}

void CostProblem::set_unit(double per_second) {
  per_second_ = per_second;
  border_ = std::llround(kBorderSeconds * per_second);
  const auto labels = static_cast<size_t>(num_labels());
  problem_ = {.num_nodes = static_cast<int32_t>(consumers_.size()), .num_labels = num_labels()};
  for (const double one : seconds_)
    problem_.costs.push_back(one < 0 ? graph::kForbidden : std::llround(one * per_second));
  for (size_t i = flow_.nodes.size(); i < consumers_.size(); ++i) {  // variables are native
    problem_.costs.push_back(0);
    problem_.costs.insert(problem_.costs.end(), labels - 1, graph::kForbidden);
  }
  // One device: a border costs the call of the region that is entered, and no copy.
  problem_.tables.emplace_back(labels * labels, border_);
  for (size_t own = 0; own < labels; ++own) problem_.tables[kBorders][own * labels + kNativeLabel] = 0;
  for (size_t label = 1; label < labels; ++label) {
    problem_.tables.emplace_back(labels * labels, 0);
    problem_.tables.back()[label * labels + label] = border_;
  }
  for (size_t producer = 0; producer < consumers_.size(); ++producer) {
    if (!consumers_[producer].empty())
      problem_.shared.push_back({static_cast<int32_t>(producer), consumers_[producer], kBorders});
  }
  add_joins();
}

// A native call costs less in the kernel of its operand. Costs are not negative, so it costs that little, and a pair of
// an operand elsewhere and the call natively costs the rest.
void CostProblem::add_joins() {
  const auto labels = static_cast<size_t>(num_labels());
  std::map<int64_t, int32_t> tables;  // equal pairs share a table
  for (const auto& [node, join] : joins_) {
    const int64_t saved = units_saved(node, join);
    const auto [table, is_new] = tables.try_emplace(saved, static_cast<int32_t>(problem_.tables.size()));
    if (is_new) {
      problem_.tables.emplace_back(labels * labels, 0);
      for (size_t from = 1; from < labels; ++from) problem_.tables.back()[from * labels + kNativeLabel] = saved;
    }
    problem_.costs[static_cast<size_t>(node) * labels + kNativeLabel] -= saved;
    problem_.pairs.push_back({flow_.find(ref(join.producer)), node, table->second});
  }
}

int64_t CostProblem::units_saved(int32_t node, const Join& join) const {
  return std::min(std::llround(join.seconds_saved * per_second_),
                  std::llround(seconds(node, kNativeLabel) * per_second_));
}

graph::Labelling CostProblem::solve() const {
  graph::Labelling found = graph::find_labels(problem_);
  found.labels.resize(flow_.nodes.size());
  return found;
}

std::vector<std::string> CostProblem::names_of(const std::vector<int32_t>& labels) const {
  std::vector<std::string> names(flow_.nodes.size());
  for (int32_t node = 0; node < flow_.num_nodes(); ++node) {
    if (flow_.node(node).is<CallNode>())
      names[static_cast<size_t>(node)] = names_[static_cast<size_t>(labels[static_cast<size_t>(node)])];
  }
  return names;
}

Regions CostProblem::regions_of(const std::vector<int32_t>& labels) const {
  return choose_regions(flow_, names_of(labels), one_call_);
}

int64_t CostProblem::cost_of(const std::vector<int32_t>& labels) const {
  const Regions regions = regions_of(labels);
  const auto region = [&](size_t node) { return node < flow_.nodes.size() ? regions.region[node] : kNone; };
  int64_t cost = 0;
  for (int32_t node = 0; node < flow_.num_nodes(); ++node) {
    const double one = seconds(node, labels[static_cast<size_t>(node)]);
    HEADRACE_CHECK(one >= 0, "node {} has a label that it must not have", node);
    if (flow_.node(node).is<CallNode>()) cost += std::llround(one * per_second_);
  }
  for (const auto& [node, join] : joins_) {
    const auto label = [&](int32_t one) { return labels[static_cast<size_t>(one)]; };
    if (label(node) == kNativeLabel && label(flow_.find(ref(join.producer))) == kNativeLabel)
      cost -= units_saved(node, join);
  }
  for (size_t producer = 0; producer < consumers_.size(); ++producer) {
    std::set<int32_t> entered;
    for (const int32_t consumer : consumers_[producer]) entered.insert(region(static_cast<size_t>(consumer)));
    entered.erase(kNone);
    entered.erase(region(producer));
    cost += border_ * static_cast<int64_t>(entered.size());
  }
  return cost;
}

// Adds a border between two nodes where both have the label.
void CostProblem::add_split(int32_t from, int32_t to, int32_t label) {
  problem_.pairs.push_back({from, to, kFirstSplit + label - 1});
}

// Adds a border to a node with the label.
void CostProblem::add_unary(int32_t node, int32_t label) {
  problem_.costs[static_cast<size_t>(node) * names_.size() + static_cast<size_t>(label)] += border_;
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
  for (size_t i = 0; i < consumers_.size(); ++i) {
    const auto producer = static_cast<int32_t>(i);
    std::set<int32_t> split, first;  // regions with a border to the producer; labels whose border is in the problem
    for (const int32_t consumer : consumers_[i]) {
      const int32_t at = region(consumer);
      if (at == kNone || at == region(producer) || !split.insert(at).second) continue;
      if (label(consumer) == label(producer)) {
        add_split(producer, consumer, label(consumer));
        any = true;
      } else if (!first.insert(label(consumer)).second) {
        add_unary(consumer, label(consumer));
        any = true;
      }
    }
  }
  return any;
}

std::vector<int32_t> CostProblem::first_of(const std::vector<int32_t>& wanted) const {
  std::vector<int32_t> labels(flow_.nodes.size(), kNativeLabel);
  for (int32_t node = 0; node < flow_.num_nodes(); ++node) {
    if (!flow_.node(node).is<CallNode>()) continue;
    for (const int32_t label : wanted) {
      if (seconds(node, label) < 0) continue;
      labels[static_cast<size_t>(node)] = label;
      break;
    }
  }
  return labels;
}

Labels CostProblem::backends_of(const std::vector<int32_t>& labels) const {
  Labels backends;
  const std::vector<std::string> names = names_of(labels);
  for (size_t node = 0; node < names.size(); ++node) {
    if (!names[node].empty()) backends.emplace(flow_.nodes[node].object(), names[node]);
  }
  return backends;
}

std::vector<int32_t> CostProblem::labels_of(const Labels& backends) const {
  std::vector<int32_t> labels(flow_.nodes.size(), kNativeLabel);
  for (size_t node = 0; node < labels.size(); ++node) {
    const auto backend = backends.find(flow_.nodes[node].object());
    if (backend == backends.end()) continue;
    const auto label = std::find(names_.begin(), names_.end(), backend->second);
    HEADRACE_CHECK(label != names_.end(), "there is no backend '{}'", backend->second);
    labels[node] = static_cast<int32_t>(label - names_.begin());
  }
  return labels;
}

}  // namespace headrace::partition
