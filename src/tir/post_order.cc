#include "tir/post_order.h"

#include <unordered_set>

namespace headrace::tir {

std::vector<PrimExpr> operands_of(const PrimExpr& e) {
  if (const auto* node = e.as<BinaryNode>()) return {node->a, node->b};
  if (const auto* node = e.as<NotNode>()) return {node->a};
  if (const auto* node = e.as<SelectNode>()) return {node->condition, node->true_value, node->false_value};
  if (const auto* node = e.as<CastNode>()) return {node->value};
  if (const auto* node = e.as<RampNode>()) return {node->base, node->stride};
  if (const auto* node = e.as<BroadcastNode>()) return {node->value};
  if (const auto* node = e.as<PrimLetNode>()) return {node->value, node->body};
  if (const auto* node = e.as<IntrinsicCallNode>()) return {node->args.begin(), node->args.end()};
  if (const auto* node = e.as<BufferLoadNode>()) return {node->indices.begin(), node->indices.end()};
  return {};
}

std::vector<PrimExpr> post_order(const std::vector<PrimExpr>& roots) {
  struct Frame {
    PrimExpr e;
    std::vector<PrimExpr> operands;
    size_t next = 0;
  };
  std::vector<PrimExpr> order;
  std::unordered_set<const PrimExprNode*> seen;
  std::vector<Frame> stack;
  const auto enter = [&](const PrimExpr& e) {
    if (e && seen.insert(e.get()).second) stack.push_back({e, operands_of(e), 0});
  };
  for (const PrimExpr& root : roots) {
    enter(root);
    while (!stack.empty()) {
      Frame& frame = stack.back();
      if (frame.next < frame.operands.size()) {
        const PrimExpr operand = frame.operands[frame.next++];
        enter(operand);
      } else {
        order.push_back(std::move(frame.e));
        stack.pop_back();
      }
    }
  }
  return order;
}

std::vector<PrimExpr> expressions_of(const Stmt& s) {
  if (const auto* node = s.as<BufferStoreNode>()) {
    std::vector<PrimExpr> list(node->indices.begin(), node->indices.end());
    list.push_back(node->value);
    return list;
  }
  if (const auto* node = s.as<ForNode>()) return {node->begin, node->extent};
  if (const auto* node = s.as<IfThenElseNode>()) return {node->condition};
  if (const auto* node = s.as<LetStmtNode>()) return {node->value};
  if (const auto* node = s.as<EvaluateNode>()) return {node->value};
  if (const auto* node = s.as<AssertNode>()) return {node->condition};
  return {};
}

std::vector<Stmt> statements_of(const Stmt& s) {
  if (const auto* node = s.as<ForNode>()) return {node->body};
  if (const auto* node = s.as<LetStmtNode>()) return {node->body};
  if (const auto* node = s.as<AllocateNode>()) return {node->body};
  if (const auto* node = s.as<SeqNode>()) return {node->items.begin(), node->items.end()};
  if (const auto* node = s.as<IfThenElseNode>()) {
    return node->else_case ? std::vector<Stmt>{node->then_case, node->else_case} : std::vector<Stmt>{node->then_case};
  }
  return {};
}

}  // namespace headrace::tir
