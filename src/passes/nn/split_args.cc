#include "passes/nn/split_args.h"

#include "ops/op_handles.h"
#include "ops/tensor/join.h"
#include "passes/rewrite/for_each_function.h"
#include "relay/function_attrs.h"
#include "relay/match.h"
#include "relay/visit.h"

namespace headrace::passes {

using relay::CallNode;

namespace {

// Joins runs of `most` items until no more than that are left.
Array<Expr> shortened(Array<Expr> items, size_t most, int64_t axis, const Span& span) {
  while (items.size() > most) {
    Array<Expr> parts;
    for (size_t begin = 0; begin < items.size(); begin += most) {
      const auto end = static_cast<std::ptrdiff_t>(std::min(begin + most, items.size()));
      const Array<Expr> run(items.begin() + static_cast<std::ptrdiff_t>(begin), items.begin() + end);
      parts.push_back(run.size() == 1 ? run[0] : ops::concatenate(run, axis, span));
    }
    items = parts;
  }
  return items;
}

Expr split_concatenate(const CallNode& call, const Array<Expr>& items, size_t most) {
  const int64_t axis = call.attrs_as<ops::ConcatenateAttrs>().axis;
  const Array<Expr> parts = shortened(items, most, axis, call.span);
  return ops::concatenate(parts, axis, call.span);
}

// Makes a stack of many as the concatenation of stacks along the new axis.
Expr split_stack(const CallNode& call, const Array<Expr>& items, size_t most) {
  const int64_t axis = call.attrs_as<ops::StackAttrs>().axis;
  Array<Expr> stacks;
  for (size_t begin = 0; begin < items.size(); begin += most) {
    const auto end = static_cast<std::ptrdiff_t>(std::min(begin + most, items.size()));
    stacks.push_back(ops::stack(Array<Expr>(items.begin() + static_cast<std::ptrdiff_t>(begin), items.begin() + end),
                                axis, call.span));
  }
  return ops::concatenate(shortened(stacks, most, axis, call.span), axis, call.span);
}

Expr split(const Expr& expr, size_t most) {
  if (!relay::is_call_of_any(expr, {&op::kConcatenate, &op::kStack})) return expr;
  const auto* call = expr.as<CallNode>();
  const auto* tuple = call->args[0].as<relay::TupleNode>();
  if (tuple == nullptr || tuple->items.size() <= most) return expr;
  const bool stacks = relay::is_call(*call, op::kStack);
  return stacks ? split_stack(*call, tuple->items, most) : split_concatenate(*call, tuple->items, most);
}

}  // namespace

int64_t max_function_args(const pass::PassContext& context) {
  constexpr const char* kKey = "relay.SplitArgs.max_function_args";
  const auto value = context.config.get(kKey);
  if (!value) return 0;
  const bool is_good = value->is<int64_t>() && (value->as<int64_t>() == 0 || value->as<int64_t>() >= 3);
  if (!is_good) throw_user_error("{} must be 0 (no limit) or a number from 3 on, got {}", kKey, repr(*value));
  return value->as<int64_t>();
}

IRModule split_args(const IRModule& module, int64_t max_function_args) {
  if (max_function_args == 0) return module;
  HEADRACE_CHECK(max_function_args >= 3, "max_function_args is {}", max_function_args);
  const auto most = static_cast<size_t>(max_function_args) - 1;
  return rewrite_bodies(module, [&](const Expr& body) {
    return relay::rewrite_post_order(body, relay::is_entered,
                                     [&](const Expr&, const Expr& after) { return split(after, most); });
  });
}

}  // namespace headrace::passes
