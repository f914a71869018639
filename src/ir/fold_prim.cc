// The builder of binary expressions: folds constants and the laws that need no analysis.
#include <cmath>

#include "ir/compare.h"

namespace headrace {

namespace {

// Returns the integer result, or nothing where it would trap or overflow.
std::optional<int64_t> fold_int(BinaryOp op, int64_t a, int64_t b) {
  if (is_comparison(op)) return compare(op, a, b);
  int64_t result = 0;
  switch (op) {
    case BinaryOp::add:
      return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    case BinaryOp::sub:
      return __builtin_sub_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    case BinaryOp::mul:
      return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    case BinaryOp::div:
    case BinaryOp::mod:
    case BinaryOp::floor_div:
    case BinaryOp::floor_mod: {
      if (b == 0 || (b == -1 && a == INT64_MIN)) return std::nullopt;
      const int64_t quotient = a / b, remainder = a % b;
      const bool down = remainder != 0 && (remainder < 0) != (b < 0);
      if (op == BinaryOp::div) return quotient;
      if (op == BinaryOp::mod) return remainder;
      return op == BinaryOp::floor_div ? quotient - (down ? 1 : 0) : remainder + (down ? b : 0);
    }
    case BinaryOp::min:
      return std::min(a, b);
    case BinaryOp::max:
      return std::max(a, b);
    case BinaryOp::logical_and:
      return a != 0 && b != 0;
    case BinaryOp::logical_or:
      return a != 0 || b != 0;
    default:
      break;
  }
  return std::nullopt;
}

// Applies laws of int64 and bool with one constant operand; returns null when none applies.
PrimExpr fold_one_side(BinaryOp op, const PrimExpr& a, const PrimExpr& b) {
  const auto x = as_int(a), y = as_int(b);
  switch (op) {
    case BinaryOp::add:
      if (x == 0) return b;
      if (y == 0) return a;
      break;
    case BinaryOp::sub:
      if (y == 0) return a;
      break;
    case BinaryOp::mul:
      if (x == 1) return b;
      if (y == 1) return a;
      if (x == 0) return a;
      if (y == 0) return b;
      break;
    case BinaryOp::div:
    case BinaryOp::floor_div:
      if (y == 1) return a;
      break;
    case BinaryOp::mod:
    case BinaryOp::floor_mod:
      if (y == 1) return make_int(0, a->dtype);
      break;
    case BinaryOp::logical_and:
      if (x) return *x != 0 ? b : a;
      if (y) return *y != 0 ? a : b;
      break;
    case BinaryOp::logical_or:
      if (x) return *x != 0 ? a : b;
      if (y) return *y != 0 ? b : a;
      break;
    default:
      break;
  }
  return {};
}

DataType result_type(BinaryOp op, DataType operand) {
  return is_comparison(op) || is_logical(op) ? DataType::bool_(operand.lanes()) : operand;
}

}  // namespace

PrimExpr make_binary(BinaryOp op, PrimExpr a, PrimExpr b) {
  HEADRACE_CHECK(a->dtype == b->dtype, "{} of {} and {}", name_of(op), a->dtype, b->dtype);
  const DataType dtype = result_type(op, a->dtype);
  // `?` absorbs arithmetic: nothing is known of the result either.
  if (!is_comparison(op) && (is_any(a) || is_any(b))) return make_any();
  // Narrow integers would need wrapping; indices and dimensions are int64.
  const bool foldable = a->dtype == kIndexType || a->dtype == DataType::bool_() || a->dtype == DataType::int_(32);
  if (foldable) {
    const auto x = as_int(a), y = as_int(b);
    if (x && y) {
      const auto folded = fold_int(op, *x, *y);
      if (folded && (dtype.bits() == 64 || static_cast<int64_t>(static_cast<int32_t>(*folded)) == *folded))
        return make_int(*folded, dtype);
    }
    if (PrimExpr folded = fold_one_side(op, a, b)) return folded;
  }
  auto node = make_object<BinaryNode>();
  node->op = op;
  node->dtype = dtype;
  node->a = std::move(a);
  node->b = std::move(b);
  return node;
}

std::string_view name_of(BinaryOp op) {
  static constexpr std::string_view kNames[] = {"add",       "sub", "mul", "div", "mod", "floor_div",
                                                "floor_mod", "min", "max", "eq",  "ne",  "lt",
                                                "le",        "gt",  "ge",  "and", "or"};
  return kNames[static_cast<size_t>(op)];
}

}  // namespace headrace
