// Emits loops that sort.
#pragma once

#include "lower/kernel_rule.h"

namespace headrace::lower {

using IsBefore = std::function<PrimExpr(const PrimExpr& i, const PrimExpr& j)>;

// Sorts the numbers 0 .. n - 1 by the strict order `is_before`, with a stable merge sort of O(n log n) steps in scratch
// memory. `body` makes the statement that reads the sorted numbers from the line it receives.
tir::Stmt with_order(int64_t n, const IsBefore& is_before, const std::function<tir::Stmt(const Line&)>& body);
// Sorts the numbers 0 .. count - 1. `count` is known only when the kernel runs, and is at most n.
tir::Stmt with_order(int64_t n, const PrimExpr& count, const IsBefore& is_before,
                     const std::function<tir::Stmt(const Line&)>& body);

// Returns a < b, where NaN is greater than every number.
PrimExpr is_less(const PrimExpr& a, const PrimExpr& b);

}  // namespace headrace::lower
