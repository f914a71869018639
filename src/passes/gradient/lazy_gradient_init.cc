#include "passes/gradient/lazy_gradient_init.h"

#include "ops/op_handles.h"
#include "ops/tensor/creation.h"
#include "passes/rewrite/effects.h"
#include "passes/rewrite/for_each_function.h"
#include "relay/function_attrs.h"
#include "relay/match.h"
#include "relay/visit.h"

namespace headrace::passes {

using relay::CallNode;

namespace {

class CellRewriter {
 public:
  explicit CellRewriter(const Effects& effects) : effects_(effects) {}

  Expr run(const Expr& body) {
    relay::post_order(body, [this](const Expr& expr) {
      if (const auto* let = expr.as<relay::LetNode>()) let_values_[let->var.object()] = let->value;
    });
    return relay::rewrite_post_order(body, relay::is_entered, [this](const Expr& before, const Expr& after) {
      return became_[before.object()] = rewritten(before, after);
    });
  }

 private:
  Expr rewritten(const Expr& before, const Expr& after) const {
    const auto* old = before.as<CallNode>();
    const CallNode* call = relay::op_call(after);
    if (old == nullptr || call == nullptr || effects_.of(before)) return after;
    const auto* type = relay::tensor_type_of(before);
    if (const auto shape = relay::known_shape_of(before)) {
      if (relay::is_call(*call, op::kZerosLike)) return ops::zeros(*shape, type->dtype, call->span);
      if (relay::is_call(*call, op::kOnesLike)) return ops::ones(*shape, type->dtype, call->span);
    }
    const bool is_product = relay::is_call(*call, op::kMultiply);
    if (!is_product && !relay::is_call(*call, op::kAdd)) return after;
    const auto left_shape = relay::known_shape_of(old->args[0]);
    if (!left_shape || left_shape != relay::known_shape_of(old->args[1])) return after;  // it broadcasts
    const Expr left = origin(call->args[0]), right = origin(call->args[1]);
    if (is_zeros(left)) return is_product ? left : call->args[1];
    if (is_zeros(right)) return is_product ? right : call->args[0];
    if (is_product && is_ones(left)) return call->args[1];
    if (is_product && is_ones(right)) return call->args[0];
    return after;
  }

  static bool is_zeros(const Expr& expr) {
    return relay::is_call(expr, op::kZeros) || relay::is_call(expr, op::kZerosLike);
  }
  static bool is_ones(const Expr& expr) {
    return relay::is_call(expr, op::kOnes) || relay::is_call(expr, op::kOnesLike);
  }

  // Returns what a rewritten expression names, through variables of lets and items of tuple literals.
  Expr origin(Expr expr) const {
    std::vector<int64_t> items;  // to take, the last one first
    while (true) {
      const auto let_value = let_values_.find(expr.object());
      if (let_value != let_values_.end()) {
        const auto became = became_.find(let_value->second.object());
        if (became == became_.end()) return expr;
        expr = became->second;
      } else if (const auto* item = expr.as<relay::TupleGetItemNode>()) {
        items.push_back(item->index);
        expr = item->tuple;
      } else if (const auto* tuple = expr.as<relay::TupleNode>(); tuple != nullptr && !items.empty()) {
        expr = tuple->items[static_cast<size_t>(items.back())];
        items.pop_back();
      } else {
        return expr;
      }
    }
  }

  const Effects& effects_;
  std::unordered_map<const Object*, Expr> let_values_;  // by variable, as they were
  std::unordered_map<const Object*, Expr> became_;
};

}  // namespace

IRModule lazy_gradient_init(const IRModule& module) {
  const InOrder ordered = in_order(module);
  return rewrite_bodies(ordered.module, [&](const Expr& body) { return CellRewriter(ordered.effects).run(body); });
}

}  // namespace headrace::passes
