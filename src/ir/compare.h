// Evaluates comparisons of two numbers, for constant folding.
#pragma once

#include "ir/prim_expr.h"

namespace headrace {

// Compares two numbers; `op` is one of eq .. ge (is_comparison).
template <typename T>
bool compare(BinaryOp op, T a, T b) {
  switch (op) {
    case BinaryOp::eq:
      return a == b;
    case BinaryOp::ne:
      return a != b;
    case BinaryOp::lt:
      return a < b;
    case BinaryOp::le:
      return a <= b;
    case BinaryOp::gt:
      return a > b;
    case BinaryOp::ge:
      return a >= b;
    default:
      throw InternalError("no comparison");
  }
}

}  // namespace headrace
