// Rewriting of loop IR: one bottom-up walk that passes and schedules share.
#pragma once

#include "tir/stmt.h"

namespace headrace::tir {

// Depth is that of one kernel's nest of statements, which does not grow with the model; expressions may be of any
// depth.
//
// Rebuilds `expr` after its operands: `change` sees each node with its new operands and gives its replacement (the same
// reference to leave it). What did not change is returned as it is. A node that several others share is seen once and
// stays shared: expressions are graphs, which written out as trees may be huge.
PrimExpr rewrite(const PrimExpr& expr, const std::function<PrimExpr(const PrimExpr&)>& change);
// The expressions of `stmt` by `change_expr`, then its statements, innermost first, by `change_stmt` (may be empty).
Stmt rewrite(const Stmt& stmt, const std::function<PrimExpr(const PrimExpr&)>& change_expr,
             const std::function<Stmt(const Stmt&)>& change_stmt = {});
// Replaces variables.
Stmt substitute(const Stmt& stmt, const std::unordered_map<const PrimVarNode*, PrimExpr>& values);
// Calls `see` on every expression below `expr`, operands first; once on one that is shared.
void for_each(const PrimExpr& expr, const std::function<void(const PrimExpr&)>& see);

}  // namespace headrace::tir
