#include "passes/fold_constant.h"

#include "interp/interp.h"
#include "ops/op_keys.h"
#include "passes/for_each_function.h"
#include "relay/visit.h"

namespace headrace::passes {

using relay::CallNode;
using relay::ConstantNode;
using relay::TupleGetItemNode;
using relay::TupleNode;

namespace {

constexpr size_t kMaxInterpretedBytes = size_t{1} << 20;

bool is_constant(const Expr& expr) {
  if (expr.is<ConstantNode>()) return true;
  const auto* tuple = expr.as<TupleNode>();
  if (tuple == nullptr) return false;
  for (const Expr& item : tuple->items) {
    if (!item.is<ConstantNode>()) return false;
  }
  return true;
}

// A constant for a tensor, a tuple of constants for a tuple of tensors.
Expr to_expr(const Value& value, const Span& span) {
  const auto* tuple = value.as_node<ADTObj>();
  if (tuple == nullptr) return relay::make_constant(value.as<NDArray>(), span);
  Array<Expr> items;
  for (const Value& item : tuple->items) items.push_back(to_expr(item, span));
  return relay::make_tuple(items, span);
}

// Bytes of the result where its type is known and static; 0 otherwise.
size_t result_bytes(const Expr& expr) {
  const auto* tensor = expr->has_checked_type() ? expr->checked_type().as<TensorTypeNode>() : nullptr;
  const auto shape = tensor == nullptr ? std::nullopt : as_shape(tensor->shape);
  return shape ? static_cast<size_t>(num_elements(*shape)) * tensor->dtype.bytes() : 0;
}

Expr fold_shape_of(const Expr& before, const CallNode& call) {
  const auto* data = before.as<CallNode>();
  if (data == nullptr || data->args.empty() || !data->args[0]->has_checked_type()) return {};
  const auto* type = data->args[0]->checked_type().as<TensorTypeNode>();
  const auto* result = before->has_checked_type() ? before->checked_type().as<TensorTypeNode>() : nullptr;
  const auto shape = type == nullptr ? std::nullopt : as_shape(type->shape);
  if (!shape || result == nullptr) return {};
  NDArray value = NDArray::empty({static_cast<int64_t>(shape->size())}, result->dtype);
  for (size_t i = 0; i < shape->size(); ++i) set_element_int(value.tensor(), static_cast<int64_t>(i), (*shape)[i]);
  return relay::make_constant(value, call.span);
}

Expr fold_call(const Expr& before, const Expr& after, const CallNode& call, const pass::PassContext& context) {
  const OpNode* op = call.as_op();
  if (op == nullptr) return after;
  if (op->name == "shape_of") {
    if (Expr folded = fold_shape_of(before, call)) return folded;
  }
  const bool* stateful = op->find(ops::kStateful);
  if ((stateful != nullptr && *stateful) || op->find(ops::kEval) == nullptr) return after;
  for (const Expr& arg : call.args) {
    if (!is_constant(arg)) return after;
  }
  if (result_bytes(before) > kMaxInterpretedBytes && context.evaluator != nullptr)
    return relay::make_constant(context.evaluator->evaluate(after), call.span);
  return to_expr(interp::run_expr(after), call.span);
}

}  // namespace

Expr fold_constant(const Expr& expr, const pass::PassContext& context) {
  return relay::rewrite_post_order(expr, [&](const Expr& before, const Expr& after) -> Expr {
    if (const auto* call = after.as<CallNode>()) return fold_call(before, after, *call, context);
    const auto* item = after.as<TupleGetItemNode>();
    const auto* tuple = item == nullptr ? nullptr : item->tuple.as<TupleNode>();
    const bool inside = tuple != nullptr && item->index >= 0 && static_cast<size_t>(item->index) < tuple->items.size();
    return inside ? tuple->items[static_cast<size_t>(item->index)] : after;
  });
}

IRModule fold_constant(const IRModule& module, const pass::PassContext& context) {
  return rewrite_bodies(module, [&](const Expr& body) { return fold_constant(body, context); });
}

}  // namespace headrace::passes
