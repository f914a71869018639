#include "partition/decider.h"

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

Labels OrderDecider::decide(const IRModule& module) {
  Labels labels;
  if (backends_.empty()) return labels;
  for_each_placeable(module, [&](const CallNode& call) {
    for (const auto& backend : backends_) {
      if (!verdict_of(*backend, call).ok()) continue;
      labels.emplace(&call, std::string(backend->name()));
      return;
    }
  });
  return labels;
}

Verdict OrderDecider::why(const PlacedCall& call, const std::string& backend) const {
  if (backend != kNative)
    return {.reason = HR_REASON_PLACE_BY_ORDER,
            .message = call.now.as_op() != nullptr
                           ? "it is the first backend of the list that takes the op"
                           : fmt::format("it is the first backend of the list that takes what its pattern {} matches",
                                         kind_of(call.now))};
  if (backends_.empty()) return {.reason = HR_REASON_PLACE_ONLY_NATIVE, .message = "no other backend was asked for"};
  return why_native(backends_, call.now, refusals.of(call.own));
}

}  // namespace headrace::partition
