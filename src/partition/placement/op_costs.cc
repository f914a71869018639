#include "partition/placement/op_costs.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "cost/op_work.h"
#include "ops/work.h"
#include "partition/decision.h"
#include "partition/place.h"

namespace headrace::partition {

namespace {

// The greatest share of a measured time that estimates of its borders take off: a bound, so that no call is free.
constexpr double kMaxBordersShare = 0.9;

// The share of the bandwidth that native code reaches where it changes a layout (on Zen 4, steps of `headrace profile`:
// 0.18 in MobileNetV2, 96 channels of 56x56; 0.33 in SqueezeNet, 1000 of 13x13).
constexpr double kConversionShare = 0.25;

std::string callee_name(const relay::CallNode& call) {
  return call.as_op() != nullptr ? call.as_op()->name : "a composite function";
}

// Measured times of single calls do not add up to a network: on Zen 4, sums for SqueezeNet are 5 % above native code by
// the clock and 17 % above onednn, and plans of least cost took 2 to 11 % longer than the fastest plan made without
// costs (SqueezeNet, DenseNet, Inception v3). The estimates were fitted to whole networks; their plans took at most 3 %
// longer.
constexpr double kLeastSavingOfMeasured = 0.1;
// Twice that where costs are scaled to whole plans, the fastest of them known. A plan that mixes places is made of
// the calls that were measured too fast: of SqueezeNet, Inception v3, DenseNet-121 and MobileNetV2 on Zen 4, plans of
// least cost promised to save 6 to 14 % of the fastest whole plan, and took 4 to 9 % longer.
constexpr double kLeastSavingOfScaled = 0.2;

constexpr const char* kEstimates = "estimated by the backends and by the sizes of tensors";

}  // namespace

std::vector<Backends> simple_plans(const Backends& backends) {
  std::vector<Backends> plans{{}};
  for (const auto& backend : backends) plans.push_back({backend});
  if (backends.size() > 1) plans.push_back(backends);
  return plans;
}

std::string plan_name(const Backends& list) {
  std::string name;
  for (const auto& backend : list) name += fmt::format("{}{}", name.empty() ? "" : ",", backend->name());
  return list.empty() ? kNative : name;
}

std::string plan_version(const Backends& list) {
  std::vector<std::string> versions;
  for (const auto& backend : list) versions.push_back(backend->version());
  return list.empty() ? HEADRACE_VERSION : fmt::format("{}", fmt::join(versions, ","));
}

// Returns the version of native code and of each backend, by the label.
static std::map<std::string, std::string> versions_of(const Backends& backends) {
  std::map<std::string, std::string> versions{{kNative, HEADRACE_VERSION}};
  for (const auto& backend : backends) versions.emplace(backend->name(), backend->version());
  return versions;
}

// Returns the version that a plan of a table has now: one of simple_plans(), or one that was tried. Nothing for a plan
// of another list.
static std::optional<std::string> plan_version_now(const std::string& plan, const Backends& backends) {
  const std::vector<Backends> lists = simple_plans(backends);
  const auto list = std::find_if(lists.begin(), lists.end(), [&](const Backends& one) {
    return plan == plan_name(one) || plan.starts_with(tried_plan_name(one, ""));
  });
  return list == lists.end() ? std::nullopt : std::optional(plan_version(*list));
}

std::string tried_plan_name(const Backends& list, const std::string& hash) {
  return fmt::format("{}{}{}", plan_name(list), kByCost, hash);
}

void drop_other_versions(CostTable& table, const Backends& backends) {
  const std::map<std::string, std::string> versions = versions_of(backends);
  std::erase_if(table.costs, [&](const auto& cost) {
    const auto now = versions.find(cost.first.second);
    return now != versions.end() && now->second != cost.second.version;
  });
  std::erase_if(table.plans, [&](const auto& plan) {
    return plan_version_now(plan.first.second, backends).value_or(plan.second.version) != plan.second.version;
  });
}

OpCosts::OpCosts(Backends backends, CostModel model) : backends_(std::move(backends)), model_(std::move(model)) {
  if (model_.measured) check_versions();
}

void OpCosts::check_versions() const {
  const auto check = [&](const std::string& what, const std::string& measured, const std::string& now) {
    if (measured == now) return;
    throw_user_error(
        "{}: {} was measured with version '{}', and this is version '{}'; measure again with headrace profile",
        model_.measured->source, what, measured, now);
  };
  const std::map<std::string, std::string> versions = versions_of(backends_);
  size_t index = 0;
  for (const auto& [key, cost] : model_.measured->costs) {
    if (const auto now = versions.find(key.second); now != versions.end())
      check(fmt::format("the cost {} of '{}'", index, key.second), cost.version, now->second);
    ++index;
  }
  for (const auto& [key, plan] : model_.measured->plans) {
    if (model_.model.empty() || key.first != model_.model) continue;
    if (const auto now = plan_version_now(key.second, backends_))
      check(fmt::format("the plan '{}'", key.second), plan.version, *now);
  }
}

const MeasuredCost* OpCosts::find_plan(const std::string& plan) const {
  if (!model_.measured || model_.model.empty()) return nullptr;
  return model_.measured->find_plan(model_.model, plan);
}

std::optional<double> OpCosts::whole(const Backends& list) const {
  const MeasuredCost* plan = find_plan(plan_name(list));
  return plan == nullptr ? std::nullopt : std::optional(plan->seconds);
}

std::optional<double> OpCosts::tried(const std::string& plan) const {
  const MeasuredCost* found = model_.is_trial ? nullptr : find_plan(plan);
  return found == nullptr ? std::nullopt : std::optional(found->seconds);
}

bool OpCosts::has_whole_plans() const {
  return whole({}).has_value() && std::all_of(backends_.begin(), backends_.end(),
                                              [&](const auto& backend) { return whole({backend}).has_value(); });
}

std::optional<double> OpCosts::measured(const relay::CallNode& call, const std::string& label) const {
  return model_.measured ? model_.measured->find(cost_key(call), label) : std::nullopt;
}

double OpCosts::native(const relay::CallNode& call) const {
  if (call.as_op() == nullptr) {
    double sum = 0;
    const auto& function = *call.op.as<relay::FunctionNode>();
    cost::for_each_op(function, [&](const relay::CallNode& inner) { sum += native(inner); });
    cost::for_each_pair(function, [&](const relay::CallNode& producer, const relay::CallNode& inner) {
      const double seconds = saved(producer, inner);
      sum -= seconds;
      return seconds > 0;
    });
    return std::max(sum, 0.0);
  }
  const auto seconds = measured(call, kNative);
  if (!seconds) return std::min(cost::native_seconds(call, model_.machine, model_.threads), kMaxCostSeconds);
  // By itself a convolution reads the caller's layout, in a network mostly blocks of channels.
  const bool is_slower_alone = ops::work_of(call).kernel == ops::KernelKind::conv;
  return is_slower_alone ? *seconds * model_.machine.packing_conv_share / model_.machine.network_conv_share : *seconds;
}

// Returns what native code takes by what it is estimated to take; 1 where it was not measured.
double OpCosts::native_by_estimate(const relay::CallNode& call) const {
  if (!model_.measured) return 1;
  OpCosts estimates = *this;
  estimates.model_.measured.reset();
  const double estimated = estimates.native(call);
  return estimated > 0 ? native(call) / estimated : 1;
}

double OpCosts::saved(const relay::CallNode& producer, const relay::CallNode& call) const {
  const double seconds = cost::seconds_saved(producer, call, model_.machine, model_.threads);
  const auto alone = measured(call, kNative);
  if (!alone || seconds == 0) return seconds;
  return *alone * seconds / cost::native_seconds(call, model_.machine, model_.threads);
}

double OpCosts::saved(const partition::Backend& backend, const relay::CallNode& call,
                      const std::vector<const relay::CallNode*>& producers) const {
  const double seconds = backend.saved(call, producers, model_.machine, model_.threads);
  if (!std::isfinite(seconds) || seconds <= 0) return 0;
  const double estimate = backend.cost(call, model_.machine, model_.threads);
  return estimate > 0 ? on_backend(backend, call) * std::min(seconds / estimate, 1.0) : 0;
}

double OpCosts::border(const partition::Backend& backend, const Type& type) const {
  const double seconds = backend.border(type, model_.machine, model_.threads);
  return seconds > 0 ? std::min(seconds, kMaxCostSeconds) : 0;  // 0 for what is not a number, too
}

double OpCosts::native_border(const Type& type) const {
  const auto* tensor = type.as<TensorTypeNode>();
  const auto shape = tensor == nullptr || tensor->shape.size() < 4 ? std::nullopt : as_shape(tensor->shape);
  if (!shape) return 0;
  double bytes = static_cast<double>(tensor->dtype.bytes());
  for (const int64_t size : *shape) bytes *= static_cast<double>(size);
  const cost::StepWork pass{.bytes_read = bytes, .bytes_written = bytes};
  return std::min(cost::seconds_of(pass, model_.machine, model_.threads) / kConversionShare, kMaxCostSeconds);
}

// A program of the one call has a border at each operand that is not a constant, and at the result. A value that is an
// operand twice is two parameters there. Borders take off their share by the estimates, but never more than themselves,
// and never all of the time that was measured.
double OpCosts::on_backend(const partition::Backend& backend, const relay::CallNode& call) const {
  const double estimate = backend.cost(call, model_.machine, model_.threads);
  const auto seconds = measured(call, std::string(backend.name()));
  if (!seconds) return estimate * native_by_estimate(call);
  double borders = border(backend, call.checked_type());
  for (const Expr& arg : call.args) {
    if (!arg.is<relay::ConstantNode>()) borders += border(backend, arg->checked_type());
  }
  if (borders == 0 || !(estimate >= 0)) return *seconds;
  const double share = std::min(borders / (estimate + borders), kMaxBordersShare);
  return *seconds - std::min(*seconds * share, borders);
}

double OpCosts::least_saving() const {
  if (!model_.measured || model_.is_trial) return 0;
  return has_whole_plans() ? kLeastSavingOfScaled : kLeastSavingOfMeasured;
}

std::string OpCosts::source(const IRModule& module, const std::vector<const relay::CallNode*>& matches) const {
  if (!model_.measured) return kEstimates;
  size_t known = 0, all = 0;
  const auto count = [&](const relay::CallNode& call) {
    for (const LabelSeconds& one : of(call)) {
      if (call.as_op() == nullptr && one.label == kNative) continue;  // the sum of its ops
      ++all;
      known += measured(call, one.label) ? 1 : 0;
    }
  };
  for_each_placeable(module, count);
  for (const relay::CallNode* match : matches) count(*match);
  const std::string& table = model_.measured->source;
  if (known == all) return fmt::format("measured ({})", table);
  return fmt::format("measured for {} of {} ({}), the others {}", known, all, table, kEstimates);
}

std::vector<LabelSeconds> OpCosts::of(const relay::CallNode& call) const {
  std::vector<LabelSeconds> costs{{kNative, native(call)}};
  for (const auto& backend : backends_) {
    if (!verdict_of(*backend, call).ok()) continue;
    const std::string label(backend->name());
    const double seconds = on_backend(*backend, call);
    if (!std::isfinite(seconds) || seconds < 0 || seconds > kMaxCostSeconds)
      throw_at(call.span, "compile",
               fmt::format("the backend '{}' says that {} costs {} seconds; a cost must be from 0 to {}",
                           backend->name(), callee_name(call), seconds, kMaxCostSeconds));
    costs.push_back({std::string(backend->name()), seconds});
  }
  return costs;
}

std::string show_cost(double seconds) {
  if (seconds >= 1) return fmt::format("{:.3g} s", seconds);
  return seconds >= 1e-3 ? fmt::format("{:.3g} ms", seconds * 1e3) : fmt::format("{:.3g} us", seconds * 1e6);
}

}  // namespace headrace::partition
