#include "partition/rules.h"

#include "partition/annotate.h"
#include "partition/regions.h"

namespace headrace::partition {

using relay::CallNode;

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

std::set<std::string> one_call_backends(const Backends& backends) {
  std::set<std::string> names;
  for (const auto& backend : backends) {
    if (backend->one_call_per_region()) names.emplace(backend->name());
  }
  return names;
}

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

}  // namespace headrace::partition
