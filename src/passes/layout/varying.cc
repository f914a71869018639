#include "passes/layout/varying.h"

#include <algorithm>

#include "relay/function_attrs.h"
#include "relay/match.h"
#include "relay/op_keys.h"
#include "relay/visit.h"

namespace headrace::passes {

std::unordered_set<const Object*> varying_values(const Expr& body) {
  std::unordered_set<const Object*> varying;
  relay::post_order(body, relay::is_entered, [&](const Expr& expr) {
    if (expr.is<relay::ConstantNode>() || expr.is<OpNode>()) return;
    const auto* call = relay::op_call(expr);
    const bool is_made = expr.is<relay::TupleNode>() || (call != nullptr && !relay::is_stateful(*call->as_op()));
    const std::vector<Expr> children = relay::children_of(expr);
    const auto varies = [&](const Expr& child) { return varying.contains(child.object()); };
    if (!is_made || std::any_of(children.begin(), children.end(), varies)) varying.insert(expr.object());
  });
  return varying;
}

}  // namespace headrace::passes
