#include "tir/rewrite.h"

#include "base/stack.h"
#include "ir/map_operands.h"
#include "tir/post_order.h"

namespace headrace::tir {

namespace {

using ExprFn = std::function<PrimExpr(const PrimExpr&)>;

// One walk over an expression: a part that stands in several places is seen and rebuilt once.
struct Walk {
  const ExprFn& change;
  std::unordered_map<const PrimExprNode*, PrimExpr> done;
  int depth = 0;
};
constexpr int kMostRecursion = 300;

PrimExpr walk(const PrimExpr& expr, Walk& state);

PrimExpr step(const PrimExpr& expr, Walk& state) {
  ++state.depth;
  PrimExpr result = state.change(map_operands(expr, [&](const PrimExpr& operand) { return walk(operand, state); }));
  --state.depth;
  state.done[expr.get()] = result;
  return result;
}

// Recurses while the expression is shallow, as nearly all are; deeper ones are first walked in post order, so that each
// node finds its operands done.
PrimExpr walk(const PrimExpr& expr, Walk& state) {
  if (auto it = state.done.find(expr.get()); it != state.done.end()) return it->second;
  if (state.depth < kMostRecursion && !is_stack_low()) return step(expr, state);
  for (const PrimExpr& part : post_order({expr})) {
    if (!state.done.contains(part.get())) step(part, state);
  }
  return state.done.at(expr.get());
}

Array<PrimExpr> rewrite_all(const Array<PrimExpr>& list, const ExprFn& change) {
  Walk state{change, {}, 0};
  return map_items(list, [&](const PrimExpr& item) { return walk(item, state); });
}

}  // namespace

PrimExpr rewrite(const PrimExpr& expr, const ExprFn& change) {
  Walk state{change, {}, 0};
  return walk(expr, state);
}

// Rebuilds a statement that contains no others.
static Stmt rebuild_leaf(const Stmt& stmt, const ExprFn& change_expr) {
  if (const auto* node = stmt.as<BufferStoreNode>()) {
    PrimExpr value = rewrite(node->value, change_expr);
    Array<PrimExpr> indices = rewrite_all(node->indices, change_expr);
    return value == node->value && indices.same_as(node->indices) ? stmt : make_store(node->buffer, value, indices);
  }
  if (const auto* node = stmt.as<EvaluateNode>()) {
    PrimExpr value = rewrite(node->value, change_expr);
    return value == node->value ? stmt : make_evaluate(value);
  }
  if (const auto* node = stmt.as<AssertNode>()) {
    PrimExpr condition = rewrite(node->condition, change_expr);
    return condition == node->condition ? stmt : make_assert(condition, node->message);
  }
  return stmt;
}

static Stmt rebuild(const Stmt& stmt, const ExprFn& change_expr, const std::function<Stmt(const Stmt&)>& change_stmt) {
  auto sub = [&](const Stmt& inner) { return inner ? rewrite(inner, change_expr, change_stmt) : inner; };
  auto expr = [&](const PrimExpr& inner) { return rewrite(inner, change_expr); };
  if (const auto* node = stmt.as<ForNode>()) {
    PrimExpr begin = expr(node->begin), extent = expr(node->extent);
    Stmt body = sub(node->body);
    const bool same = begin == node->begin && extent == node->extent && body == node->body;
    return same ? stmt : make_for(node->var, begin, extent, node->kind, body);
  }
  if (const auto* node = stmt.as<IfThenElseNode>()) {
    PrimExpr condition = expr(node->condition);
    Stmt then_case = sub(node->then_case), else_case = sub(node->else_case);
    const bool same = condition == node->condition && then_case == node->then_case && else_case == node->else_case;
    return same ? stmt : make_if(condition, then_case, else_case);
  }
  if (const auto* node = stmt.as<LetStmtNode>()) {
    PrimExpr value = expr(node->value);
    Stmt body = sub(node->body);
    return value == node->value && body == node->body ? stmt : make_let(node->var, value, body);
  }
  if (const auto* node = stmt.as<SeqNode>()) {
    std::vector<Stmt> items;
    bool changed = false;
    for (const Stmt& item : node->items) {
      items.push_back(sub(item));
      changed = changed || items.back() != item;
    }
    return changed ? make_seq(items) : stmt;
  }
  if (const auto* node = stmt.as<AllocateNode>()) {
    Stmt body = sub(node->body);
    return body == node->body ? stmt : make_allocate(node->buffer, node->scope, body);
  }
  return rebuild_leaf(stmt, change_expr);
}

Stmt rewrite(const Stmt& stmt, const ExprFn& change_expr, const std::function<Stmt(const Stmt&)>& change_stmt) {
  if (is_stack_low()) throw_user_error("the statements of a loop program nest too deeply for the stack");
  Stmt result = rebuild(stmt, change_expr, change_stmt);
  return change_stmt ? change_stmt(result) : result;
}

Stmt substitute(const Stmt& stmt, const std::unordered_map<const PrimVarNode*, PrimExpr>& values) {
  return rewrite(stmt, [&](const PrimExpr& expr) {
    const auto* var = expr.as<PrimVarNode>();
    if (var == nullptr) return expr;
    auto it = values.find(var);
    return it == values.end() ? expr : it->second;
  });
}

void for_each(const PrimExpr& expr, const std::function<void(const PrimExpr&)>& see) {
  for (const PrimExpr& inner : post_order({expr})) see(inner);
}

}  // namespace headrace::tir
