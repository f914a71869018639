// Rewriting of loop IR: one bottom-up walk that passes and schedules share.
#pragma once

#include "tir/stmt.h"

namespace headrace::tir {

// Statements are rewritten recursively, because the nest of one kernel does not grow with the model; expressions may
// have any depth.
//
// Rebuilds `expr` after its operands: `change` gets each node with its new operands and returns its replacement (the
// same reference to leave it). Unchanged nodes are returned as they are. A shared node is visited once and stays
// shared, since expressions are graphs that may be huge when written out as trees.
PrimExpr rewrite(const PrimExpr& expr, const std::function<PrimExpr(const PrimExpr&)>& change);
// Rewrites the expressions of `stmt` by `change_expr`, then its statements, innermost first, by `change_stmt` (may be
// empty).
Stmt rewrite(const Stmt& stmt, const std::function<PrimExpr(const PrimExpr&)>& change_expr,
             const std::function<Stmt(const Stmt&)>& change_stmt = {});
// Replaces variables.
Stmt substitute(const Stmt& stmt, const std::unordered_map<const PrimVarNode*, PrimExpr>& values);
// Calls `see` on every expression below `expr`, operands first; once on one that is shared.
void for_each(const PrimExpr& expr, const std::function<void(const PrimExpr&)>& see);

}  // namespace headrace::tir
