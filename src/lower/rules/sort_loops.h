// Sorting, as loops.
#pragma once

#include "lower/kernel_rule.h"

namespace headrace::lower {

using IsBefore = std::function<PrimExpr(const PrimExpr& i, const PrimExpr& j)>;

// Writes the numbers 0 .. n - 1 into memory of their own so that is_before(i, j) holds for no later i and earlier j;
// equal ones stay in their order (a merge sort, n * log n steps). `body` reads the order from the line it gets.
tir::Stmt with_order(int64_t n, const IsBefore& is_before, const std::function<tir::Stmt(const Line&)>& body);
// The same for 0 .. count - 1, where `count` is known when the kernel runs and at most n.
tir::Stmt with_order(int64_t n, const PrimExpr& count, const IsBefore& is_before,
                     const std::function<tir::Stmt(const Line&)>& body);

// a < b, with NaN the greatest.
PrimExpr is_less(const PrimExpr& a, const PrimExpr& b);

}  // namespace headrace::lower
