#include "passes/simplify/fast_math.h"

#include "passes/rewrite/for_each_function.h"
#include "relay/function_attrs.h"
#include "relay/visit.h"

namespace headrace::passes {

using relay::CallNode;

namespace {

constexpr std::pair<std::string_view, std::string_view> kFastForms[] = {
    {"exp", "fast_exp"}, {"tanh", "fast_tanh"}, {"erf", "fast_erf"}, {"nn.softmax", "nn.fast_softmax"}};

}  // namespace

IRModule fast_math(const IRModule& module) {
  std::unordered_map<const Object*, Op> fast;
  for (const auto& [plain, form] : kFastForms) fast.emplace(get_op(plain).object(), get_op(form));
  return rewrite_bodies(module, [&](const Expr& body) {
    return relay::rewrite_post_order(body, relay::is_entered, [&](const Expr&, const Expr& after) {
      const auto* call = after.as<CallNode>();
      const auto form = call == nullptr ? fast.end() : fast.find(call->op.object());
      return form == fast.end() ? after : copy_with(*call, [&](CallNode& copy) { copy.op = form->second; });
    });
  });
}

}  // namespace headrace::passes
