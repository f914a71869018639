#include "lower/loops/fit_machine.h"

#include "tir/rewrite.h"

namespace headrace::lower {

namespace {

PrimExpr without_fma(const PrimExpr& expr) {
  const auto* call = expr.as<IntrinsicCallNode>();
  if (call == nullptr || call->intrinsic != Intrinsic::fma) return expr;
  return call->args[0] * call->args[1] + call->args[2];
}

}  // namespace

tir::Stmt fit_machine(const tir::Stmt& body, const LoopWork& work, const cost::Machine& machine) {
  const auto fit_expr = [&](const PrimExpr& expr) { return machine.has_fma ? expr : without_fma(expr); };
  return tir::rewrite(body, fit_expr, [&](const tir::Stmt& stmt) -> tir::Stmt {
    const auto* loop = stmt.as<tir::ForNode>();
    if (loop == nullptr || loop->kind != tir::ForKind::parallel) return stmt;
    const auto noted = work.find(loop->var.get());
    if (noted == work.end() || noted->second >= machine.min_kernel_work) return stmt;
    return tir::make_for(loop->var, loop->begin, loop->extent, tir::ForKind::serial, loop->body);
  });
}

}  // namespace headrace::lower
