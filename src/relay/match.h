// Questions that nearly every pass asks of an expression: which op it calls, and which tensor it gives.
#pragma once

#include <initializer_list>
#include <optional>

#include "ir/op_handle.h"
#include "relay/expr.h"

namespace headrace::relay {

// Returns `expr` as a call of an op, whichever; null for anything else, also for a null expression.
inline const CallNode* op_call(const Expr& expr) {
  const auto* call = expr.as<CallNode>();
  return call != nullptr && call->as_op() != nullptr ? call : nullptr;
}

// Returns whether the call is one of `op`.
inline bool is_call(const CallNode& call, const OpHandle& op) { return op.is(call.as_op()); }

// Returns `expr` as a call of `op`; null for anything else.
inline const CallNode* call_of(const Expr& expr, const OpHandle& op) {
  const auto* call = expr.as<CallNode>();
  return call != nullptr && is_call(*call, op) ? call : nullptr;
}

// Returns `expr` as a call of `op`, which another call names; null for anything else.
inline const CallNode* call_of(const Expr& expr, const OpNode& op) {
  const auto* call = expr.as<CallNode>();
  return call != nullptr && call->as_op() == &op ? call : nullptr;
}

inline bool is_call(const Expr& expr, const OpHandle& op) { return call_of(expr, op) != nullptr; }

// Returns whether the call is one of any of the ops: {&op::kAdd, &op::kSubtract}.
inline bool is_call_of_any(const CallNode& call, std::initializer_list<const OpHandle*> ops) {
  for (const OpHandle* op : ops) {
    if (is_call(call, *op)) return true;
  }
  return false;
}

inline bool is_call_of_any(const Expr& expr, std::initializer_list<const OpHandle*> ops) {
  const auto* call = expr.as<CallNode>();
  return call != nullptr && is_call_of_any(*call, ops);
}

// Returns the type of a tensor; null for an expression that has no type yet or is not a tensor.
inline const TensorTypeNode* tensor_type_of(const Expr& expr) {
  return expr->has_checked_type() ? expr->checked_type().as<TensorTypeNode>() : nullptr;
}

// Returns the dtype of a tensor; DataType() for an expression that has no type yet or is not a tensor.
inline DataType dtype_of(const Expr& expr) {
  const auto* type = tensor_type_of(expr);
  return type == nullptr ? DataType() : type->dtype;
}

// Returns the number of dimensions of a tensor; 0 for an expression that has no type yet or is not a tensor.
inline size_t rank_of(const Expr& expr) {
  const auto* type = tensor_type_of(expr);
  return type == nullptr ? 0 : type->shape.size();
}

// Returns the sizes of a tensor that has only known ones; nothing for anything else.
inline std::optional<Shape> known_shape_of(const Expr& expr) {
  const auto* type = tensor_type_of(expr);
  return type == nullptr ? std::nullopt : as_shape(type->shape);
}

}  // namespace headrace::relay
