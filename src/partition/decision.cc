#include "partition/decision.h"

#include "partition/place.h"
#include "relay/composites.h"
#include "relay/function_attrs.h"
#include "relay/visit.h"

namespace headrace::partition {

using relay::CallNode;
using relay::FunctionNode;

void for_each_decided_call(const IRModule& module, const std::function<void(const CallNode&)>& visit) {
  const auto main = module->lookup("main").cast<FunctionNode>();
  relay::post_order(
      main->body,
      [](const Expr& expr) {
        const auto* function = expr.as<FunctionNode>();
        return function == nullptr || relay::is_entered(expr);
      },
      [&](const Expr& expr) {
        const auto* call = expr.as<CallNode>();
        if (call != nullptr && (call->as_op() != nullptr || relay::called_composite(*call) != nullptr)) visit(*call);
      });
}

void for_each_placeable(const IRModule& module, const std::function<void(const CallNode&)>& visit) {
  for_each_decided_call(module, [&](const CallNode& call) {
    if (why_in_no_region(call).empty()) visit(call);
  });
}

std::string kind_of(const CallNode& call) {
  if (call.as_op() != nullptr) return call.as_op()->name;
  const FunctionNode* composite = relay::called_composite(call);
  const std::string name = composite == nullptr ? "" : relay::composite_name(*composite);
  return name.empty() ? "call" : name;
}

std::string place_of(const CallNode& call) {
  const std::string place = to_string(call.span);
  return place.empty() ? kind_of(call) : place;
}

std::string why_in_no_region(const CallNode& call) {
  if (call.args.empty()) return "a call without operands computes in no region";
  if (std::string fault = region_fault(ref(&call)); !fault.empty()) return fault;
  const bool is_open = has_open_sizes(call.checked_type()) ||
                       std::any_of(call.args.begin(), call.args.end(),
                                   [](const Expr& arg) { return has_open_sizes(arg->checked_type()); });
  return is_open ? "one of its tensors has a size that is not a number; fix the sizes of the inputs" : "";
}

std::string short_place_of(const CallNode& call) {
  if (!call.span || call.span->line == 0) return place_of(call);
  const size_t slash = call.span->source.rfind('/');
  const size_t folder = slash == std::string::npos ? 0 : slash + 1;
  return place_of(call).substr(folder);
}

std::string refusal_of(const Backend& backend, const CallNode& call) {
  if (const std::string fault = why_in_no_region(call); !fault.empty()) return fault;
  const Verdict verdict = verdict_of(backend, call);
  return verdict.ok() ? "" : verdict.message;
}

const Backend* find_in(const Backends& backends, const std::string& name) {
  const std::string own = own_name(name);
  for (const auto& backend : backends) {
    if (backend->name() == name || backend->name() == own) return backend.get();
  }
  return nullptr;
}

Verdict Decision::verdict_on(const PlacedCall& call, size_t backend) const {
  const auto known = verdicts_.find(&call.own);
  return known != verdicts_.end() && backend < known->second.size() ? known->second[backend]
                                                                    : verdict_of(*backends_[backend], call.now);
}

Verdict Decision::why_native(const PlacedCall& call) const {
  std::vector<Verdict> verdicts;
  for (size_t i = 0; i < backends_.size(); ++i) verdicts.push_back(verdict_on(call, i));
  return refused_by_all(backends_, std::move(verdicts), call.now, refusals_.of(call.own));
}

OrderDecision::OrderDecision(const IRModule& module, Backends backends, PatternRefusals refusals)
    : Decision(module, std::move(backends)) {
  refusals_ = std::move(refusals);
  if (backends_.empty()) return;
  for_each_placeable(module, [&](const CallNode& call) {
    std::vector<Verdict>& verdicts = verdicts_[&call];
    for (const auto& backend : backends_) {
      verdicts.push_back(verdict_of(*backend, call));
      if (!verdicts.back().ok()) continue;
      labels_.emplace(&call, std::string(backend->name()));
      return;
    }
  });
}

Verdict OrderDecision::why(const PlacedCall& call, const std::string& backend) const {
  if (backend != kNative)
    return {.reason = HR_REASON_PLACE_BY_ORDER,
            .message = call.now.as_op() != nullptr
                           ? "it is the first backend of the list that takes the op"
                           : fmt::format("it is the first backend of the list that takes what its pattern {} matches",
                                         kind_of(call.now))};
  if (backends_.empty()) return {.reason = HR_REASON_PLACE_ONLY_NATIVE, .message = "no other backend was asked for"};
  return why_native(call);
}

}  // namespace headrace::partition
