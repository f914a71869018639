#include "partition/placement/cost_problem.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "artifact/trailer.h"
#include "ops/call_fusion.h"
#include "ops/work.h"
#include "partition/placement/by_cost.h"
#include "partition/decision.h"
#include "partition/place.h"

namespace headrace::partition {

using relay::CallNode;

namespace {

constexpr double kNotAllowed = -1;

// So many calls that keep a layout are looked through for a convolution: a bias, a sum, an activation.
constexpr int kMaxKeepingLayout = 4;

std::vector<std::string> names_of(const Backends& backends) {
  std::vector<std::string> names{""};
  for (const auto& backend : backends) names.emplace_back(backend->name());
  return names;
}

// So many bodies with instances as calls are kept.
constexpr size_t kKeptViews = 256;

bool is_conv(const Expr& expr) {
  const auto* call = expr.as<CallNode>();
  return call != nullptr && call->as_op() != nullptr && ops::work_of(*call).kernel != ops::KernelKind::plain;
}

}  // namespace

CostProblem::CostProblem(InstanceSet instances, const OpCosts& costs)
    : instances_(std::move(instances)),
      flow_(make_flow(module()->lookup("main").cast<relay::FunctionNode>()->body)),
      backends_(costs.backends()),
      num_backends_(backends_.size() + 1),
      names_(names_of(backends_)),
      pieces_(instances_, flow_, costs, names_) {
  for (size_t label = names_.size(); label < pieces_.backends().size(); ++label)
    names_.push_back(names_[static_cast<size_t>(pieces_.backends()[label])]);
  region_call_.assign(num_backends_, kBorderSeconds);
  region_call_[kNativeLabel] = 0;
  one_call_ = one_call_backends(backends_);
  read_costs(costs);
  read_variables();
  BodyView plain;
  plain.base.resize(flow_.nodes.size());
  std::iota(plain.base.begin(), plain.base.end(), 0);
  plain.flow = flow_;
  read_uses(plain);
  plain_ = std::make_shared<const BodyView>(std::move(plain));
  read_joins(costs);
  read_borders(costs);
}

CostProblem::CostProblem(const IRModule& module, const OpCosts& costs)
    : CostProblem(InstanceSet{.module = module, .all = {}, .of_list = {}, .of_backend = {}}, costs) {}

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
    for (size_t label = 1; label < num_backends_ && is_free(node); ++label) at(node, label) = 0;
  }
  for_each_placeable(module(), [&](const CallNode& call) {
    const int32_t node = flow_.find(ref(&call));
    if (node == kNone) return;
    for (const LabelSeconds& one : costs.of(call)) {
      const auto label = one.label == kNative ? names_.begin() : std::find(names_.begin() + 1, names_.end(), one.label);
      at(node, static_cast<size_t>(label - names_.begin())) = one.seconds;
    }
  });
  for (const Piece& piece : pieces_.all()) {
    if (piece.label == kNone) continue;
    for (const int32_t node : piece.nodes) at(node, static_cast<size_t>(piece.label)) = 0;
    at(piece.lead, static_cast<size_t>(piece.label)) = piece.seconds;
  }
}

// A variable is a producer of its own; constants are part of the region that uses them.
void CostProblem::read_variables() {
  for (const Flow::Use& use : flow_.uses) {
    if (use.to == kNone || use.from != kNone || !use.value.is<relay::VarNode>()) continue;
    const auto* call = flow_.node(use.to).as<CallNode>();
    if (call != nullptr && call->op == use.value) continue;
    const size_t number = flow_.nodes.size() + variables_.size();
    if (variable_at_.try_emplace(use.value.object(), number).second) variables_.push_back(use.value);
  }
}

void CostProblem::read_uses(BodyView& view) const {
  view.consumers.resize(flow_.nodes.size() + variables_.size());
  view.is_result.resize(flow_.nodes.size());
  view.is_there.resize(flow_.nodes.size());
  const auto base = [&](int32_t node) { return node == kNone ? kNone : view.base[static_cast<size_t>(node)]; };
  for (const int32_t node : view.base) {
    if (node != kNone) view.is_there[static_cast<size_t>(node)] = true;
  }
  for (const Flow::Use& use : view.flow.uses) {
    if (use.to == kNone) {
      if (base(use.from) != kNone) view.is_result[static_cast<size_t>(base(use.from))] = true;
      continue;
    }
    const auto* call = view.flow.node(use.to).as<CallNode>();
    if ((call != nullptr && call->op == use.value) || base(use.to) == kNone) continue;
    const size_t* variable = variable_at_.find(use.value.object());
    if (base(use.from) != kNone) {
      view.consumers[static_cast<size_t>(base(use.from))].push_back(base(use.to));
    } else if (use.from == kNone && variable != nullptr) {
      view.consumers[*variable].push_back(base(use.to));
    }
  }
}

std::shared_ptr<const BodyView> CostProblem::make_view(const std::vector<int32_t>& taken) const {
  const Composed composed = compose_instances(module(), pieces_.instances(taken));
  BodyView view;
  view.flow = make_flow(composed.body);
  for (const Expr& node : view.flow.nodes) {
    const Expr* before = composed.before.find(node.object());
    view.base.push_back(flow_.find(before == nullptr ? node : *before));
  }
  read_uses(view);
  return std::make_shared<const BodyView>(std::move(view));
}

std::shared_ptr<const BodyView> CostProblem::view_of(const std::vector<int32_t>& labels) const {
  if (pieces_.all().empty()) return plain_;
  std::vector<int32_t> taken = pieces_.taken(labels);
  if (taken.empty()) return plain_;
  if (const auto known = views_.find(taken); known != views_.end()) return known->second;
  if (views_.size() >= kKeptViews) views_.clear();
  return views_[taken] = make_view(taken);
}

// Returns by node whether a native convolution makes its value, perhaps with what its kernel computes as well: then it
// is made in blocks of channels.
std::vector<bool> CostProblem::nodes_of_native_convs() const {
  std::vector<bool> is_of_conv(flow_.nodes.size());
  for (int32_t node = 0; node < flow_.num_nodes(); ++node) {
    const auto join = joins_.find({node, kNativeLabel});
    const bool is_joined = join != joins_.end() && is_of_conv[static_cast<size_t>(join->second.front().operand)];
    is_of_conv[static_cast<size_t>(node)] = is_joined || is_conv(flow_.node(node));
  }
  return is_of_conv;
}

// Returns whether a convolution reads the value, perhaps behind a few calls that keep its layout.
bool CostProblem::is_read_by_conv(size_t producer) const {
  std::vector<int32_t> users = plain_->consumers[producer];
  for (int distance = 0; distance < kMaxKeepingLayout && !users.empty(); ++distance) {
    std::vector<int32_t> next;
    for (const int32_t user : users) {
      if (is_conv(flow_.node(user))) return true;
      const auto* call = flow_.node(user).as<CallNode>();
      if (call == nullptr || call->as_op() == nullptr) continue;
      if (ops::fusion_kind_of(*call) > ops::FusionKind::broadcast) continue;
      const std::vector<int32_t>& more = plain_->consumers[static_cast<size_t>(user)];
      next.insert(next.end(), more.begin(), more.end());
    }
    users = std::move(next);
  }
  return false;
}

const Expr& CostProblem::value_of(size_t producer) const {
  return producer < flow_.nodes.size() ? flow_.nodes[producer] : variables_[producer - flow_.nodes.size()];
}

size_t CostProblem::producer_of(const Expr& value) const {
  const size_t* variable = variable_at_.find(value.object());
  return variable != nullptr ? *variable : static_cast<size_t>(flow_.find(value));
}

// Variables and results are in the caller's layout, which native code reads and writes.
void CostProblem::read_borders(const OpCosts& costs) {
  leaving_.assign(plain_->consumers.size() * num_backends_, 0);
  entering_ = leaving_;
  const std::vector<bool> is_of_conv = nodes_of_native_convs();
  for (size_t producer = 0; producer < plain_->consumers.size(); ++producer) {
    const bool is_result = producer < flow_.nodes.size() && plain_->is_result[producer];
    if (plain_->consumers[producer].empty() && !is_result) continue;
    const Type& type = value_of(producer)->checked_type();
    const size_t first = producer * num_backends_;
    if (producer < is_of_conv.size() && is_of_conv[producer]) leaving_[first] = costs.native_border(type);
    if (is_read_by_conv(producer)) entering_[first] = costs.native_border(type);
  }
  for (size_t backend = 1; backend < num_backends_; ++backend) read_borders_of_backend(costs, backend);
}

// A backend is asked about values that one of its regions may have at its border.
void CostProblem::read_borders_of_backend(const OpCosts& costs, size_t backend) {
  const auto label = static_cast<int32_t>(backend);
  std::vector<bool> may_leave(plain_->consumers.size(), false), may_enter = may_leave;
  for (size_t producer = 0; producer < may_leave.size(); ++producer) {
    const std::vector<int32_t>& consumers = plain_->consumers[producer];
    may_leave[producer] = producer < flow_.nodes.size() && may_have(static_cast<int32_t>(producer), label);
    may_enter[producer] =
        std::any_of(consumers.begin(), consumers.end(), [&](int32_t consumer) { return may_have(consumer, label); });
  }
  for (size_t i = 0; i < pieces_.all().size(); ++i) {
    const Piece& piece = pieces_.all()[i];
    if (piece.label == kNone || piece.backend != label) continue;
    may_leave[static_cast<size_t>(piece.root)] = true;
    for (const Expr& input : pieces_.instance(i).inputs) {
      if (variable_at_.contains(input.object()) || flow_.find(input) != kNone) may_enter[producer_of(input)] = true;
    }
  }
  for (size_t producer = 0; producer < may_leave.size(); ++producer) {
    const bool is_result = producer < flow_.nodes.size() && plain_->is_result[producer];
    if (plain_->consumers[producer].empty() && !is_result) continue;
    if (!may_leave[producer] && !may_enter[producer]) continue;
    const double border = costs.border(*backends_[backend - 1], value_of(producer)->checked_type());
    if (may_leave[producer]) leaving_[producer * num_backends_ + backend] = border;
    if (may_enter[producer]) entering_[producer * num_backends_ + backend] = border;
  }
}

int64_t CostProblem::border_units(size_t producer, int32_t from, int32_t to) const {
  const double layouts = leaving_[border_at(producer, from)] + entering_[border_at(producer, to)];
  return std::llround((region_call_[backend_index(to)] + layouts) * per_second_);
}

double CostProblem::most_seconds() const {
  const double region_call = *std::max_element(region_call_.begin(), region_call_.end());
  double sum = 0, native = 0;
  for (int32_t node = 0; node < flow_.num_nodes(); ++node) {
    double most = 0;
    for (int32_t label = 0; label < num_labels(); ++label) most = std::max(most, seconds(node, label));
    sum += most + region_call;
    native += seconds(node, kNativeLabel);
  }
  for (const auto& [labels, seconds] : measured_) native = std::max(native, seconds);
  for (const Piece& piece : pieces_.all()) sum += native * static_cast<double>(piece.nodes.size());
  for (const auto& [key, joins] : joins_) {
    for (const Join& join : joins) sum += join.seconds_saved * static_cast<double>(join.producers.size() + 1);
  }
  // The label problem counts a border for each class and each consumer when it checks that sums stay in range, and
  // rounds may add some more.
  for (size_t producer = 0; producer < plain_->consumers.size(); ++producer) {
    double layouts = 0;
    for (size_t i = producer * num_backends_; i < (producer + 1) * num_backends_; ++i)
      layouts += leaving_[i] + entering_[i];
    sum += (region_call + layouts) * static_cast<double>(names_.size() + 9) *
           static_cast<double>(plain_->consumers[producer].size() + 1);
  }
  return sum;
}

void CostProblem::scale(const std::vector<double>& factors) {
  HEADRACE_CHECK(per_second_ == 0, "the label problem was made of costs that are not scaled");
  const size_t labels = names_.size();
  for (size_t i = 0; i < seconds_.size(); ++i) {
    if (seconds_[i] != kNotAllowed) seconds_[i] *= factors[backend_index(static_cast<int32_t>(i % labels))];
  }
  for (auto& [key, joins] : joins_) {
    for (Join& join : joins) join.seconds_saved *= factors[backend_index(key.second)];
  }
  for (size_t i = 0; i < leaving_.size(); ++i) {
    leaving_[i] *= factors[i % num_backends_];
    entering_[i] *= factors[i % num_backends_];
  }
  for (size_t backend = 0; backend < num_backends_; ++backend) region_call_[backend] *= factors[backend];
}

void CostProblem::set_measured(const std::vector<int32_t>& labels, double seconds) {
  measured_[labels_of_calls(labels)] = seconds;
}

std::string CostProblem::hash_of(const std::vector<int32_t>& labels) const {
  const std::vector<int32_t> of_calls = labels_of_calls(labels);
  std::string text;
  for (size_t node = 0; node < of_calls.size(); ++node) text += fmt::format("{} ", of_calls[node]);
  return artifact::content_hash({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

int64_t CostProblem::units(int32_t node, int32_t label) const {
  return std::llround(seconds(node, label) * per_second_);
}

int64_t CostProblem::units_saved(int32_t node, int32_t label, const Join& join) const {
  return std::min<int64_t>(std::llround(join.seconds_saved * per_second_), units(node, label));
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

// An instance counts at one of its calls, at which the plan chooses it.
int64_t CostProblem::num_plans(int64_t most) const {
  int64_t plans = 1;
  for (const int32_t node : undecided_calls()) {
    int64_t allowed = 0;
    for (int32_t label = 0; label < num_labels(); ++label) {
      const int32_t piece = pieces_.at(node, label);
      const bool is_elsewhere = piece != kNone && pieces_.all()[static_cast<size_t>(piece)].lead != node;
      allowed += may_have(node, label) && !is_elsewhere ? 1 : 0;
    }
    if (plans > most / allowed) return most;
    plans *= allowed;
  }
  return std::min(plans, most);
}

std::vector<int32_t> CostProblem::labels_of_calls(const std::vector<int32_t>& labels) const {
  std::vector<int32_t> of_calls(flow_.nodes.size(), kNativeLabel);
  for (int32_t node = 0; node < flow_.num_nodes(); ++node) {
    if (flow_.node(node).is<CallNode>()) of_calls[static_cast<size_t>(node)] = labels[static_cast<size_t>(node)];
  }
  return of_calls;
}

// Nodes of an instance are in the region of its call.
Regions CostProblem::regions_of(const std::vector<int32_t>& labels) const {
  const std::shared_ptr<const BodyView> view = view_of(labels);
  std::vector<std::string> names(view->flow.nodes.size());
  for (size_t node = 0; node < names.size(); ++node) {
    const int32_t base = view->base[node];
    if (base != kNone && view->flow.nodes[node].is<CallNode>())
      names[node] = names_[static_cast<size_t>(labels[static_cast<size_t>(base)])];
  }
  Regions regions = choose_regions(view->flow, std::move(names), one_call_);
  if (view == plain_) return regions;
  std::vector<int32_t> region(flow_.nodes.size(), kNone);
  for (size_t node = 0; node < view->base.size(); ++node) {
    if (view->base[node] != kNone) region[static_cast<size_t>(view->base[node])] = regions.region[node];
  }
  for (const int32_t taken : pieces_.taken(labels)) {
    const Piece& piece = pieces_.all()[static_cast<size_t>(taken)];
    for (const int32_t node : piece.nodes) region[static_cast<size_t>(node)] = region[static_cast<size_t>(piece.root)];
  }
  regions.region = std::move(region);
  return regions;
}

// Calls `on_call` with each call and its label, `on_join` with each call, its label and its join, if the plan joins it,
// and `on_border` with each value that is handed over, and the labels from and to which.
template <typename OnCall, typename OnJoin, typename OnBorder>
void CostProblem::for_each_part(const std::vector<int32_t>& labels, OnCall&& on_call, OnJoin&& on_join,
                                OnBorder&& on_border) const {
  HEADRACE_CHECK(is_plan(labels), "the labels of an instance differ");
  const Regions regions = regions_of(labels);
  const std::shared_ptr<const BodyView> view = view_of(labels);
  for (int32_t node = 0; node < flow_.num_nodes(); ++node) {
    const int32_t label = labels[static_cast<size_t>(node)];
    HEADRACE_CHECK(seconds(node, label) >= 0, "node {} has a label that it must not have", node);
    const bool is_computed = label >= static_cast<int32_t>(num_backends_) || view->is_there[static_cast<size_t>(node)];
    if (flow_.node(node).is<CallNode>() && is_computed) on_call(node, label);
  }
  for (const auto& [key, joins] : joins_) {
    if (const Join* join = join_in(*view, regions, key, joins, labels)) on_join(key.first, key.second, *join);
  }
  for (const Border& border : borders_of(labels, regions)) on_border(border.producer, border.from, border.to);
}

int32_t CostProblem::label_of(const Regions& regions, int32_t region) const {
  const std::string& backend = regions.backend[static_cast<size_t>(region)];
  return static_cast<int32_t>(std::find(names_.begin(), names_.end(), backend) - names_.begin());
}

// Outside of regions all is native, also a tuple with another label.
std::vector<CostProblem::Border> CostProblem::borders_of(const std::vector<int32_t>& labels,
                                                         const Regions& regions) const {
  const std::shared_ptr<const BodyView> view = view_of(labels);
  const auto region = [&](size_t node) { return node < flow_.nodes.size() ? regions.region[node] : kNone; };
  const auto label = [&](int32_t at) { return at == kNone ? kNativeLabel : label_of(regions, at); };
  std::vector<Border> borders;
  for (size_t producer = 0; producer < view->consumers.size(); ++producer) {
    std::set<int32_t> taking;
    if (producer < flow_.nodes.size() && view->is_result[producer]) taking.insert(kNone);
    for (const int32_t consumer : view->consumers[producer]) taking.insert(region(static_cast<size_t>(consumer)));
    const int32_t own = region(producer);
    taking.erase(own);
    for (const int32_t one : taking) borders.push_back({producer, own, one, label(own), label(one)});
  }
  return borders;
}

std::vector<double> CostProblem::seconds_by_backend(const std::vector<int32_t>& labels) const {
  std::vector<double> sums(num_backends_, 0);
  const auto of = [&](int32_t label) -> double& { return sums[backend_index(label)]; };
  for_each_part(
      labels, [&](int32_t node, int32_t label) { of(label) += seconds(node, label); },
      [&](int32_t, int32_t label, const Join& join) { of(label) -= join.seconds_saved; },
      [&](size_t producer, int32_t from, int32_t to) {
        of(from) += leaving_[border_at(producer, from)];
        of(to) += entering_[border_at(producer, to)] + region_call_[backend_index(to)];
      });
  return sums;
}

int64_t CostProblem::cost_of(const std::vector<int32_t>& labels) const {
  if (!measured_.empty()) {
    const auto whole = measured_.find(labels_of_calls(labels));
    if (whole != measured_.end()) return std::llround(whole->second * per_second_);
  }
  int64_t cost = 0;
  for_each_part(
      labels, [&](int32_t node, int32_t label) { cost += units(node, label); },
      [&](int32_t node, int32_t label, const Join& join) { cost -= units_saved(node, label, join); },
      [&](size_t producer, int32_t from, int32_t to) { cost += border_units(producer, from, to); });
  return cost;
}

std::vector<int32_t> CostProblem::first_of(const std::vector<int32_t>& wanted,
                                           const std::vector<int32_t>& instances) const {
  std::vector<int32_t> labels(flow_.nodes.size(), kNativeLabel);
  std::vector<bool> is_decided(flow_.nodes.size(), false);
  for (const int32_t i : instances) {
    const Piece& piece = pieces_.all()[static_cast<size_t>(i)];
    const bool is_wanted = std::find(wanted.begin(), wanted.end(), piece.backend) != wanted.end();
    for (const int32_t node : piece.nodes) {
      is_decided[static_cast<size_t>(node)] = true;
      if (is_wanted && piece.label != kNone) labels[static_cast<size_t>(node)] = piece.label;
    }
  }
  for (int32_t node = 0; node < flow_.num_nodes(); ++node) {
    if (!flow_.node(node).is<CallNode>() || is_decided[static_cast<size_t>(node)]) continue;
    for (const int32_t label : wanted) {
      if (seconds(node, label) < 0) continue;
      labels[static_cast<size_t>(node)] = label;
      break;
    }
  }
  return labels;
}

void CostProblem::repair(std::vector<int32_t>& labels) const {
  pieces_.repair(labels, [&](int32_t node, int32_t label) { return may_have(node, label); });
}

// Inference keeps the order of nodes.
CostProblem::Split CostProblem::split_of(const std::vector<int32_t>& labels) const {
  const std::shared_ptr<const BodyView> view = view_of(labels);
  if (view == plain_) return {module(), flow_, view->base, {}};
  Split split{.module = {}, .flow = {}, .base = view->base, .taken = pieces_.taken(labels)};
  split.module = with_instances(module(), pieces_.instances(split.taken));
  split.flow = make_flow(split.module->lookup("main").cast<relay::FunctionNode>()->body);
  HEADRACE_CHECK(split.base.size() == split.flow.nodes.size(), "inference changed the number of nodes");
  return split;
}

Labels CostProblem::backends_of(const Split& split, const std::vector<int32_t>& labels) const {
  Labels backends;
  for (size_t node = 0; node < split.base.size(); ++node) {
    if (split.base[node] == kNone || !split.flow.nodes[node].is<CallNode>()) continue;
    const std::string& name = names_[static_cast<size_t>(labels[static_cast<size_t>(split.base[node])])];
    if (!name.empty()) backends.emplace(split.flow.nodes[node].object(), name);
  }
  return backends;
}

std::vector<int32_t> CostProblem::labels_of(const Split& split, const Labels& backends) const {
  std::vector<int32_t> labels(flow_.nodes.size(), kNativeLabel);
  for (size_t node = 0; node < split.base.size(); ++node) {
    const auto backend = backends.find(split.flow.nodes[node].object());
    if (split.base[node] == kNone || backend == backends.end()) continue;
    const auto name = std::find(names_.begin(), names_.end(), backend->second);
    HEADRACE_CHECK(name != names_.end(), "there is no backend '{}'", backend->second);
    labels[static_cast<size_t>(split.base[node])] = static_cast<int32_t>(name - names_.begin());
  }
  for (const int32_t taken : split.taken) {
    const Piece& piece = pieces_.all()[static_cast<size_t>(taken)];
    const bool is_there = labels[static_cast<size_t>(piece.root)] == piece.backend;
    for (const int32_t node : piece.nodes) labels[static_cast<size_t>(node)] = is_there ? piece.label : kNativeLabel;
  }
  return labels;
}

}  // namespace headrace::partition
