#include "partition/rules.h"

#include "partition/annotate.h"
#include "partition/regions.h"

namespace headrace::partition {

using relay::CallNode;

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
