#include "passes/simplify/fast_math.h"

#include "ops/op_handles.h"
#include "passes/rewrite/for_each_function.h"
#include "relay/function_attrs.h"
#include "relay/visit.h"

namespace headrace::passes {

using relay::CallNode;

namespace {

constexpr std::pair<const OpHandle*, const OpHandle*> kFastForms[] = {{&op::kExp, &op::kFastExp},
                                                                      {&op::kTanh, &op::kFastTanh},
                                                                      {&op::kErf, &op::kFastErf},
                                                                      {&op::kSoftmax, &op::kFastSoftmax}};

}  // namespace

IRModule fast_math(const IRModule& module) {
  std::unordered_map<const Object*, Expr> fast;
  for (const auto& [plain, form] : kFastForms) fast.emplace(&plain->node(), ref(&form->node()));
  return rewrite_bodies(module, [&](const Expr& body) {
    return relay::rewrite_post_order(body, relay::is_entered, [&](const Expr&, const Expr& after) {
      const auto* call = after.as<CallNode>();
      const auto form = call == nullptr ? fast.end() : fast.find(call->op.object());
      return form == fast.end() ? after : copy_with(*call, [&](CallNode& copy) { copy.op = form->second; });
    });
  });
}

}  // namespace headrace::passes
