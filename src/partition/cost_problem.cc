#include "partition/cost_problem.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "ops/call_fusion.h"
#include "ops/work.h"
#include "partition/by_cost.h"
#include "partition/decider.h"
#include "partition/place.h"

namespace headrace::partition {

using relay::CallNode;

namespace {

constexpr double kNotAllowed = -1;

// A region is taken to compute so many calls before one, when backends are asked what that saves.
constexpr size_t kMaxProducers = 8;
// So many calls that keep a layout are looked through for a convolution: a bias, a sum, an activation.
constexpr int kMaxKeepingLayout = 4;

std::string kind_and_place(const CallNode& call) {
  return fmt::format("{} {}", call.as_op() == nullptr ? "" : call.as_op()->name, to_string(call.span));
}

bool is_conv(const Expr& expr) {
  const auto* call = expr.as<CallNode>();
  return call != nullptr && call->as_op() != nullptr && ops::work_of(*call).kernel != ops::KernelKind::plain;
}

}  // namespace

CostProblem::CostProblem(IRModule module, const OpCosts& costs)
    : module_(std::move(module)),
      flow_(make_flow(module_->lookup("main").cast<relay::FunctionNode>()->body)),
      backends_(costs.backends()) {
  names_.emplace_back();
  for (const auto& backend : costs.backends()) names_.emplace_back(backend->name());
  region_call_.assign(names_.size(), kBorderSeconds);
  region_call_[kNativeLabel] = 0;
  one_call_ = one_call_backends(costs.backends());
  read_costs(costs);
  read_uses();
  read_joins(costs);
  read_borders(costs);
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
      if (is_new) {
        consumers_.emplace_back();
        variables_.push_back(use.value);
      }
      producer = it->second;
    }
    consumers_[producer].push_back(use.to);
  }
}

bool CostProblem::is_used_once(const CallNode& producer, int32_t user) const {
  const int32_t from = flow_.find(ref(&producer));
  if (from == kNone || is_result_[static_cast<size_t>(from)]) return false;
  const std::vector<int32_t>& users = consumers_[static_cast<size_t>(from)];
  return std::all_of(users.begin(), users.end(), [&](int32_t one) { return one == user; });
}

// Returns an operand of a node and the calls before it that a region with this label may compute with the node. What
// lies before a convolution or a product has no part in it.
std::vector<const CallNode*> CostProblem::producers_of(const CallNode& producer, int32_t label) const {
  std::vector<const CallNode*> calls{&producer};
  for (size_t i = 0; i < calls.size(); ++i) {
    const CallNode& call = *calls[i];
    if (call.as_op() != nullptr && ops::fusion_kind_of(call) == ops::FusionKind::anchor) continue;
    for (const Expr& arg : call.args) {
      const auto* before = arg.as<CallNode>();
      if (before == nullptr || calls.size() == kMaxProducers || !is_used_once(*before, flow_.find(ref(&call))))
        continue;
      const bool is_there = std::find(calls.begin(), calls.end(), before) != calls.end();
      if (!is_there && seconds(flow_.find(arg), label) >= 0) calls.push_back(before);
    }
  }
  return calls;
}

// A region may save by a call only where it computes several others: these are the first of the calls before it with
// which it saves as much as with all.
CostProblem::Join CostProblem::join_with(const OpCosts& costs, const CallNode& producer, int32_t node,
                                         int32_t label) const {
  const auto& call = *flow_.node(node).as<CallNode>();
  const double all = seconds(node, label);
  if (label == kNativeLabel) {
    if (call.as_op() == nullptr || producer.as_op() == nullptr) return {};
    return {.producers = {&producer}, .seconds_saved = std::min(costs.saved(producer, call), all)};
  }
  const size_t index = static_cast<size_t>(label);
  if (all <= 0 || seconds(flow_.find(ref(&producer)), label) < 0 || one_call_.contains(names_[index])) return {};
  const std::vector<const CallNode*> before = producers_of(producer, label);
  const partition::Backend& backend = *backends_[index - 1];
  Join join{.producers = before, .seconds_saved = costs.saved(backend, call, before)};
  for (size_t count = 1; count < before.size() && join.seconds_saved > 0; ++count) {
    const std::vector<const CallNode*> first(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(count));
    if (costs.saved(backend, call, first) < join.seconds_saved) continue;
    join.producers = first;
    break;
  }
  join.seconds_saved = std::min(join.seconds_saved, all);
  return join;
}

void CostProblem::read_joins(const OpCosts& costs) {
  for (int32_t node = 0; node < flow_.num_nodes(); ++node) {
    const auto* call = flow_.node(node).as<CallNode>();
    if (call == nullptr) continue;
    const auto [named, is_new] = nodes_by_name_.try_emplace(kind_and_place(*call), node);
    if (!is_new) named->second = kNone;
    for (int32_t label = 0; label < num_labels(); ++label) {
      for (const Expr& arg : call->args) {
        const auto* producer = arg.as<CallNode>();
        if (producer == nullptr || !is_used_once(*producer, node)) continue;
        Join join = join_with(costs, *producer, node, label);
        if (join.seconds_saved <= 0) continue;
        joins_[{node, label}] = std::move(join);
        break;
      }
    }
  }
}

const CostProblem::Join* CostProblem::find_join(const CallNode& call, int32_t label) const {
  int32_t node = flow_.find(ref(&call));
  if (node == kNone) {
    const auto named = nodes_by_name_.find(kind_and_place(call));
    if (named != nodes_by_name_.end()) node = named->second;
  }
  const auto join = joins_.find({node, label});
  return join == joins_.end() ? nullptr : &join->second;
}

const CostProblem::Join* CostProblem::join_of(const CallNode& call, const std::string& label,
                                              const Labels& backends) const {
  const auto at = label == kNative ? names_.begin() : std::find(names_.begin() + 1, names_.end(), label);
  const Join* join = find_join(call, static_cast<int32_t>(at - names_.begin()));
  if (join == nullptr) return nullptr;
  const bool are_there = std::all_of(join->producers.begin(), join->producers.end(), [&](const CallNode* producer) {
    const auto backend = backends.find(producer);
    return backend == backends.end() ? label == kNative : backend->second == label;
  });
  return are_there ? join : nullptr;
}

// Returns whether a native convolution makes the value, perhaps with what its kernel computes as well: then it is made
// in blocks of channels.
bool CostProblem::is_of_native_conv(size_t producer) const {
  if (producer >= flow_.nodes.size()) return false;
  for (auto node = static_cast<int32_t>(producer);;) {
    if (is_conv(flow_.node(node))) return true;
    const auto join = joins_.find({node, kNativeLabel});
    if (join == joins_.end()) return false;
    node = flow_.find(ref(join->second.producers.front()));
  }
}

// Returns whether a convolution reads the value, perhaps behind a few calls that keep its layout.
bool CostProblem::is_read_by_conv(size_t producer) const {
  std::vector<int32_t> users = consumers_[producer];
  for (int distance = 0; distance < kMaxKeepingLayout && !users.empty(); ++distance) {
    std::vector<int32_t> next;
    for (const int32_t user : users) {
      if (is_conv(flow_.node(user))) return true;
      const auto* call = flow_.node(user).as<CallNode>();
      if (call == nullptr || call->as_op() == nullptr) continue;
      if (ops::fusion_kind_of(*call) > ops::FusionKind::broadcast) continue;
      const std::vector<int32_t>& more = consumers_[static_cast<size_t>(user)];
      next.insert(next.end(), more.begin(), more.end());
    }
    users = std::move(next);
  }
  return false;
}

const Expr& CostProblem::value_of(size_t producer) const {
  return producer < flow_.nodes.size() ? flow_.nodes[producer] : variables_[producer - flow_.nodes.size()];
}

// Variables and results are in the caller's layout, which native code reads and writes.
void CostProblem::read_borders(const OpCosts& costs) {
  leaving_.assign(consumers_.size() * names_.size(), 0);
  entering_ = leaving_;
  for (size_t producer = 0; producer < consumers_.size(); ++producer) {
    const bool is_result = producer < flow_.nodes.size() && is_result_[producer];
    if (consumers_[producer].empty() && !is_result) continue;
    const Type& type = value_of(producer)->checked_type();
    const size_t first = producer * names_.size();
    if (is_of_native_conv(producer)) leaving_[first] = costs.native_border(type);
    if (is_read_by_conv(producer)) entering_[first] = costs.native_border(type);
    // A backend is asked about values that one of its regions may have at its border.
    const auto may_have = [&](int32_t node, size_t label) { return seconds(node, static_cast<int32_t>(label)) >= 0; };
    for (size_t label = 1; label < names_.size(); ++label) {
      const bool may_leave = producer < flow_.nodes.size() && may_have(static_cast<int32_t>(producer), label);
      const bool may_enter = std::any_of(consumers_[producer].begin(), consumers_[producer].end(),
                                         [&](int32_t consumer) { return may_have(consumer, label); });
      const double border = may_leave || may_enter ? costs.border(*backends_[label - 1], type) : 0;
      if (may_leave) leaving_[first + label] = border;
      if (may_enter) entering_[first + label] = border;
    }
  }
}

int64_t CostProblem::border_units(size_t producer, int32_t from, int32_t to) const {
  const size_t first = producer * names_.size();
  const double layouts = leaving_[first + static_cast<size_t>(from)] + entering_[first + static_cast<size_t>(to)];
  return std::llround((region_call_[static_cast<size_t>(to)] + layouts) * per_second_);
}

double CostProblem::most_seconds() const {
  const double region_call = *std::max_element(region_call_.begin(), region_call_.end());
  double sum = 0;
  for (int32_t node = 0; node < flow_.num_nodes(); ++node) {
    double most = 0;
    for (int32_t label = 0; label < num_labels(); ++label) most = std::max(most, seconds(node, label));
    sum += most + region_call;
  }
  for (const auto& [key, join] : joins_) sum += join.seconds_saved * static_cast<double>(join.producers.size() + 1);
  // The label problem counts a border for each class and each consumer when it checks that sums stay in range, and
  // rounds may add some more.
  for (size_t producer = 0; producer < consumers_.size(); ++producer) {
    double layouts = 0;
    for (size_t i = producer * names_.size(); i < (producer + 1) * names_.size(); ++i)
      layouts += leaving_[i] + entering_[i];
    sum += (region_call + layouts) * static_cast<double>(names_.size() + 9) *
           static_cast<double>(consumers_[producer].size() + 1);
  }
  return sum;
}

void CostProblem::scale(const std::vector<double>& factors) {
  const size_t labels = names_.size();
  for (size_t i = 0; i < seconds_.size(); ++i) {
    if (seconds_[i] != kNotAllowed) seconds_[i] *= factors[i % labels];
  }
  for (auto& [key, join] : joins_) join.seconds_saved *= factors[static_cast<size_t>(key.second)];
  for (size_t i = 0; i < leaving_.size(); ++i) {
    leaving_[i] *= factors[i % labels];
    entering_[i] *= factors[i % labels];
  }
  for (size_t label = 0; label < labels; ++label) region_call_[label] *= factors[label];
}

void CostProblem::set_measured(const std::vector<int32_t>& labels, double seconds) {
  measured_[names_of(labels)] = seconds;
}

void CostProblem::set_unit(double per_second) {
  per_second_ = per_second;
  const auto labels = static_cast<size_t>(num_labels());
  problem_ = {.num_nodes = static_cast<int32_t>(consumers_.size()), .num_labels = num_labels()};
  for (const double one : seconds_)
    problem_.costs.push_back(one < 0 ? graph::kForbidden : std::llround(one * per_second));
  for (size_t i = flow_.nodes.size(); i < consumers_.size(); ++i) {  // variables are native
    problem_.costs.push_back(0);
    problem_.costs.insert(problem_.costs.end(), labels - 1, graph::kForbidden);
  }
  tables_.clear();
  add_borders_of_values();
  add_joins();
}

int32_t CostProblem::table_of(std::vector<graph::LabelCost> table) {
  const auto [known, is_new] = tables_.try_emplace(std::move(table), static_cast<int32_t>(problem_.tables.size()));
  if (is_new) problem_.tables.push_back(known->first);
  return known->second;
}

// One device: a border costs the call of the region that is entered and changes of layout, and no copy. A result is a
// use by native code.
void CostProblem::add_borders_of_values() {
  const auto labels = static_cast<size_t>(num_labels());
  for (size_t producer = 0; producer < consumers_.size(); ++producer) {
    const bool is_result = producer < flow_.nodes.size() && is_result_[producer];
    if (consumers_[producer].empty() && !is_result) continue;
    std::vector<graph::LabelCost> prices(labels * labels, 0);
    for (size_t from = 0; from < labels; ++from) {
      for (size_t to = 0; to < labels; ++to) {
        if (from != to)
          prices[from * labels + to] = border_units(producer, static_cast<int32_t>(from), static_cast<int32_t>(to));
      }
      if (!is_result || from == 0) continue;
      graph::LabelCost& own = problem_.costs[producer * labels + from];
      if (own != graph::kForbidden) own += prices[from * labels];
      prices[from * labels] = 0;
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
  if (to == kNativeLabel || !one_call_.contains(names_[static_cast<size_t>(to)])) return false;
  if (from == to) return is_call(static_cast<int32_t>(producer));
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
      const size_t at = static_cast<size_t>(from) * labels + static_cast<size_t>(to);
      lone[at] = border_units(producer, from, to);
      prices[at] = 0;
      any = true;
    }
  }
  if (!any) return;
  const int32_t table = table_of(std::move(lone));
  const std::set<int32_t> consumers(consumers_[producer].begin(), consumers_[producer].end());
  for (const int32_t consumer : consumers) {
    if (is_call(consumer)) problem_.pairs.push_back({static_cast<int32_t>(producer), consumer, table});
  }
}

// A call costs less where its producers have its label. Costs are not negative, so it costs that little, and the rest
// where one of them has another label.
void CostProblem::add_joins() {
  const auto labels = static_cast<size_t>(num_labels());
  for (const auto& [key, join] : joins_) {
    const auto& [node, label] = key;
    const int64_t saved = units_saved(node, label, join);
    problem_.costs[static_cast<size_t>(node) * labels + static_cast<size_t>(label)] -= saved;
    add_condition(node, label, join, saved);
  }
}

// With one producer a pair of both calls has the cost. With several, a node of the problem's own pays with those that
// have another label, or, by a label that is not the join's, once with the call itself: the cheaper of the two.
void CostProblem::add_condition(int32_t node, int32_t label, const Join& join, int64_t saved) {
  const auto labels = static_cast<size_t>(num_labels()), own = static_cast<size_t>(label);
  std::vector<graph::LabelCost> others(labels * labels, 0);  // the producer has another label, the payer this one
  for (size_t from = 0; from < labels; ++from) {
    if (from != own) others[from * labels + own] = saved;
  }
  const int32_t others_table = table_of(std::move(others));
  int32_t payer = node;
  if (join.producers.size() > 1) {
    payer = problem_.num_nodes++;
    problem_.costs.insert(problem_.costs.end(), labels, graph::kForbidden);
    graph::LabelCost* costs = &problem_.costs[static_cast<size_t>(payer) * labels];
    costs[own] = costs[kNativeLabel] = 0;
    problem_.pairs.push_back({payer, node, others_table});
  }
  for (const CallNode* producer : join.producers)
    problem_.pairs.push_back({flow_.find(ref(producer)), payer, others_table});
}

int64_t CostProblem::units(int32_t node, int32_t label) const {
  return std::llround(seconds(node, label) * per_second_);
}

int64_t CostProblem::units_saved(int32_t node, int32_t label, const Join& join) const {
  return std::min<int64_t>(std::llround(join.seconds_saved * per_second_), units(node, label));
}

graph::Labelling CostProblem::solve() const {
  graph::Labelling found = graph::find_labels(problem_);
  found.labels.resize(flow_.nodes.size());
  return found;
}

std::vector<int32_t> CostProblem::undecided_calls() const {
  std::vector<int32_t> calls;
  for (int32_t node = 0; node < flow_.num_nodes(); ++node) {
    int32_t allowed = 0;
    for (int32_t label = 0; label < num_labels(); ++label) allowed += may_have(node, label) ? 1 : 0;
    if (flow_.node(node).is<CallNode>() && allowed > 1) calls.push_back(node);
  }
  return calls;
}

int64_t CostProblem::num_plans(int64_t most) const {
  int64_t plans = 1;
  for (const int32_t node : undecided_calls()) {
    int64_t allowed = 0;
    for (int32_t label = 0; label < num_labels(); ++label) allowed += may_have(node, label) ? 1 : 0;
    if (plans > most / allowed) return most;
    plans *= allowed;
  }
  return std::min(plans, most);
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

// Calls `on_call` with each call and its label, `on_join` with each call, its label and its join, if the plan joins it,
// and `on_border` with each value that is handed over, and the labels from and to which.
template <typename OnCall, typename OnJoin, typename OnBorder>
void CostProblem::for_each_part(const std::vector<int32_t>& labels, OnCall&& on_call, OnJoin&& on_join,
                                OnBorder&& on_border) const {
  const Regions regions = regions_of(labels);
  for (int32_t node = 0; node < flow_.num_nodes(); ++node) {
    const int32_t label = labels[static_cast<size_t>(node)];
    HEADRACE_CHECK(seconds(node, label) >= 0, "node {} has a label that it must not have", node);
    if (flow_.node(node).is<CallNode>()) on_call(node, label);
  }
  for (const auto& [key, join] : joins_) {
    const auto& [node, label] = key;
    const auto own = static_cast<size_t>(node);
    const bool are_joined = std::all_of(join.producers.begin(), join.producers.end(), [&](const CallNode* producer) {
      const auto other = static_cast<size_t>(flow_.find(ref(producer)));
      return labels[other] == label && regions.region[own] == regions.region[other];
    });
    if (labels[own] == label && are_joined) on_join(node, label, join);
  }
  for (const Border& border : borders_of(regions)) on_border(border.producer, border.from, border.to);
}

int32_t CostProblem::label_of(const Regions& regions, int32_t region) const {
  const std::string& backend = regions.backend[static_cast<size_t>(region)];
  return static_cast<int32_t>(std::find(names_.begin(), names_.end(), backend) - names_.begin());
}

// Outside of regions all is native, also a tuple with another label.
std::vector<CostProblem::Border> CostProblem::borders_of(const Regions& regions) const {
  const auto region = [&](size_t node) { return node < flow_.nodes.size() ? regions.region[node] : kNone; };
  const auto label = [&](int32_t at) { return at == kNone ? kNativeLabel : label_of(regions, at); };
  std::vector<Border> borders;
  for (size_t producer = 0; producer < consumers_.size(); ++producer) {
    std::set<int32_t> taking;
    if (producer < flow_.nodes.size() && is_result_[producer]) taking.insert(kNone);
    for (const int32_t consumer : consumers_[producer]) taking.insert(region(static_cast<size_t>(consumer)));
    const int32_t own = region(producer);
    taking.erase(own);
    for (const int32_t one : taking) borders.push_back({producer, own, one, label(own), label(one)});
  }
  return borders;
}

std::vector<double> CostProblem::seconds_by_label(const std::vector<int32_t>& labels) const {
  std::vector<double> sums(names_.size(), 0);
  const auto of = [&](int32_t label) -> double& { return sums[static_cast<size_t>(label)]; };
  for_each_part(
      labels, [&](int32_t node, int32_t label) { of(label) += seconds(node, label); },
      [&](int32_t, int32_t label, const Join& join) { of(label) -= join.seconds_saved; },
      [&](size_t producer, int32_t from, int32_t to) {
        const size_t first = producer * names_.size();
        of(from) += leaving_[first + static_cast<size_t>(from)];
        of(to) += entering_[first + static_cast<size_t>(to)] + region_call_[static_cast<size_t>(to)];
      });
  return sums;
}

int64_t CostProblem::cost_of(const std::vector<int32_t>& labels) const {
  if (const auto whole = measured_.find(names_of(labels)); whole != measured_.end())
    return std::llround(whole->second * per_second_);
  int64_t cost = 0;
  for_each_part(
      labels, [&](int32_t node, int32_t label) { cost += units(node, label); },
      [&](int32_t node, int32_t label, const Join& join) { cost -= units_saved(node, label, join); },
      [&](size_t producer, int32_t from, int32_t to) { cost += border_units(producer, from, to); });
  return cost;
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
      const int32_t own = label(consumer);
      if (is_lone(i, label(producer), own) && is_call(consumer)) continue;  // the problem has it
      const int64_t border = border_units(i, label(producer), own);
      if (own == label(producer)) {
        std::vector<graph::LabelCost> table(names_.size() * names_.size(), 0);
        table[static_cast<size_t>(own) * names_.size() + static_cast<size_t>(own)] = border;
        problem_.pairs.push_back({producer, consumer, table_of(std::move(table))});
        any = true;
      } else if (!first.insert(own).second) {
        problem_.costs[static_cast<size_t>(consumer) * names_.size() + static_cast<size_t>(own)] += border;
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
