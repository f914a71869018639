#include "partition/rules.h"

#include <algorithm>

#include "partition/annotate.h"
#include "partition/extract.h"
#include "relay/function_attrs.h"
#include "relay/visit.h"

namespace headrace::partition {

using relay::CallNode;
using relay::FunctionNode;

namespace {

bool is_composite(const Expr& callee) {
  const auto* function = callee.as<FunctionNode>();
  return function != nullptr && function->attrs.contains(relay::kComposite);
}

// Returns the first backend of the list that takes a call; null when there is none.
const Backend* backend_for(const CallNode& call, const Backends& backends) {
  for (const auto& backend : backends) {
    if (verdict_of(*backend, call).ok()) return backend.get();
  }
  return nullptr;
}

}  // namespace

Verdict verdict_of(const Backend& backend, const CallNode& call) {
  const std::string name(backend.name());
  const OpNode* op = call.as_op();
  if (op != nullptr && op->find_any(target_attr(name)) == nullptr) return backend.supports(call);
  if (is_supported(call, name)) return {};
  if (op == nullptr) return {.reason = HR_REASON_OP_UNSUPPORTED, .message = "it is a composite of another backend"};
  return {.reason = HR_REASON_OP_UNSUPPORTED,
          .message = fmt::format("the op's attribute {} says no to this call", target_attr(name))};
}

Verdict why_native(const Backends& backends, const CallNode& call) {
  Verdict first;
  for (const auto& backend : backends) {
    Verdict verdict = verdict_of(*backend, call);
    if (verdict.ok()) verdict = {.reason = HR_REASON_PLACE_NO_REGION, .message = region_fault(ref(&call))};
    if (first.ok()) first.reason = verdict.reason;
    if (!first.message.empty()) first.message += "; ";
    first.message +=
        fmt::format("{}: {}", backend->name(),
                    verdict.message.empty() ? "a call without operands computes in no region" : verdict.message);
  }
  return first;
}

IRModule compose(const IRModule& module, const Backends& backends) {
  std::vector<CompositePattern> table;
  for (size_t i = 0; i < backends.size(); ++i) {
    const std::span<const std::shared_ptr<const Backend>> earlier(backends.data(), i);
    const auto is_free = [earlier](const Expr& part) {
      const auto* call = part.as<CallNode>();
      return call == nullptr || std::none_of(earlier.begin(), earlier.end(),
                                             [&](const auto& backend) { return verdict_of(*backend, *call).ok(); });
    };
    for (CompositePattern entry : backends[i]->patterns()) {
      entry.accepts = [is_free, accepts = entry.accepts](const relay::PatternGroup& group) {
        return std::all_of(group.parts.begin(), group.parts.end(), is_free) && (!accepts || accepts(group));
      };
      table.push_back(std::move(entry));
    }
  }
  return table.empty() ? module : merge_composite(module, table);
}

void for_each_placeable(const Expr& body, const std::function<void(const CallNode&)>& visit) {
  relay::post_order(
      body,
      [](const Expr& expr) {
        const auto* function = expr.as<FunctionNode>();
        return function == nullptr || relay::is_entered(expr);
      },
      [&](const Expr& expr) {
        const auto* call = expr.as<CallNode>();
        if (call == nullptr || !(call->as_op() != nullptr || is_composite(call->op))) return;
        if (!call->args.empty() && region_fault(expr).empty()) visit(*call);
      });
}

RuledModule place_by_rules(const IRModule& canonical, const Backends& backends) {
  const IRModule module = compose(canonical, backends);
  Labels labels;
  for_each_placeable(module->lookup("main").cast<FunctionNode>()->body, [&](const CallNode& call) {
    if (const Backend* backend = backend_for(call, backends)) labels.emplace(&call, std::string(backend->name()));
  });
  const Partitioned partitioned = partition_by_labels(module, labels);
  RuledModule ruled{.module = partitioned.module, .regions = {}};
  for (const ExtractedRegion& region : partitioned.regions) ruled.regions.push_back(region.name);
  return ruled;
}

}  // namespace headrace::partition
