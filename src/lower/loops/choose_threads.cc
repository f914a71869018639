#include "lower/loops/choose_threads.h"

#include "tir/rewrite.h"

namespace headrace::lower {

tir::Stmt choose_threads(const tir::Stmt& body, const LoopWork& work, const cost::Machine& machine) {
  const auto keep = [](const PrimExpr& expr) { return expr; };
  return tir::rewrite(body, keep, [&](const tir::Stmt& stmt) -> tir::Stmt {
    const auto* loop = stmt.as<tir::ForNode>();
    if (loop == nullptr || loop->kind != tir::ForKind::parallel) return stmt;
    const auto noted = work.find(loop->var.get());
    if (noted == work.end() || noted->second >= machine.min_kernel_work) return stmt;
    return tir::make_for(loop->var, loop->begin, loop->extent, tir::ForKind::serial, loop->body);
  });
}

}  // namespace headrace::lower
