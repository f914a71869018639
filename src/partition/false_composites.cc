#include "partition/false_composites.h"

#include <algorithm>

#include "partition/break_up.h"
#include "partition/regions.h"
#include "relay/composites.h"
#include "relay/patterns/groups.h"
#include "relay/visit.h"

namespace headrace::partition {

namespace {

using relay::CallNode;
using relay::FunctionNode;

bool is_call(const Expr& expr) { return expr.is<CallNode>(); }

bool matches_whole(const relay::DFPattern& pattern, const Expr& body) {
  std::ptrdiff_t num_calls = 0;
  relay::post_order(body, [&](const Expr& expr) { num_calls += is_call(expr) ? 1 : 0; });
  const auto is_whole = [&](const relay::PatternGroup& group, const Expr&) {
    return group.root == body && std::count_if(group.parts.begin(), group.parts.end(), &is_call) == num_calls;
  };
  return !relay::find_groups(relay::PatternIndex(pattern), relay::ExprIndex(body), {.accepts = is_whole}).empty();
}

bool is_false(const FunctionNode& composite, std::span<const CompositePattern> patterns) {
  const std::string name = relay::composite_name(composite);
  bool is_known = false;
  for (const CompositePattern& entry : patterns) {
    if (entry.name != name) continue;
    if (matches_whole(entry.pattern, composite.body)) return false;
    is_known = true;
  }
  return is_known;
}

}  // namespace

relay::Function without_false_composites(const relay::Function& function, std::span<const CompositePattern> patterns) {
  if (patterns.empty()) return function;
  const auto is_outside = [](const Expr& expr) { return !expr.is<FunctionNode>(); };
  const Expr body =
      relay::rewrite_post_order(function->body, is_outside, [&](const Expr& before, const Expr& after) -> Expr {
        const auto* call = before.as<CallNode>();
        const FunctionNode* composite = call == nullptr ? nullptr : relay::called_composite(*call);
        if (composite == nullptr || !is_false(*composite, patterns)) return retyped(before, after);
        return body_with(*composite, after.as<CallNode>()->args);
      });
  if (body == function->body) return function;
  return retyped(function, copy_with(*function, [&](FunctionNode& copy) { copy.body = body; })).cast<FunctionNode>();
}

}  // namespace headrace::partition
