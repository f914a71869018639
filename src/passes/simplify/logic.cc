#include "ops/tensor/broadcast.h"
#include "ops/op_handles.h"
#include "ops/tensor/elementwise.h"
#include "passes/simplify/law.h"

namespace headrace::passes::simplify {

using relay::CallNode;

namespace {

// not not x == x; bitwise_not(bitwise_not(x)) == x
Expr drop_double_not(const Site& s) {
  const auto* inner = relay::call_of(s.arg(0), s.op());
  return inner == nullptr ? Expr() : inner->args[0];
}

// The comparison that is true where `comparison` is false, of numbers that are never NaN; null for other calls.
const OpHandle* opposite(const CallNode& comparison) {
  static constexpr std::pair<const OpHandle*, const OpHandle*> kPairs[] = {
      {&op::kEqual, &op::kNotEqual}, {&op::kLess, &op::kGreaterEqual}, {&op::kGreater, &op::kLessEqual}};
  for (const auto& [a, b] : kPairs) {
    if (relay::is_call(comparison, *a)) return b;
    if (relay::is_call(comparison, *b)) return a;
  }
  return nullptr;
}

// not (x < y) == x >= y, and so for each comparison; of floats for equal and not_equal alone, since NaN is not ordered
Expr push_not(const Site& s) {
  const auto* inner = s.arg(0).as<CallNode>();
  const OpHandle* other = inner == nullptr ? nullptr : opposite(*inner);
  if (other == nullptr) return {};
  const bool orders = !relay::is_call_of_any(*inner, {&op::kEqual, &op::kNotEqual});
  if (orders && !is_exact(dtype_of(inner->args[0]))) return {};
  return ops::binary(*other, inner->args[0], inner->args[1], s.span());
}

// x and x == x or x == x; the same of bits
Expr drop_equal_operand(const Site& s) { return s.arg(0) == s.arg(1) ? s.operand(0) : Expr(); }

// x and True == x
Expr drop_true(const Site& s) {
  if (all_elements_are(s.arg(1), 1)) return s.operand(0);
  return all_elements_are(s.arg(0), 1) ? s.operand(1) : Expr();
}

// x or False == x xor False == x; the same of bits and 0
Expr drop_false(const Site& s) {
  if (all_elements_are(s.arg(1), 0)) return s.operand(0);
  return all_elements_are(s.arg(0), 0) ? s.operand(1) : Expr();
}

// x and False == False; x & 0 == 0
Expr and_false(const Site& s) {
  const bool is_false = all_elements_are(s.arg(0), 0) || all_elements_are(s.arg(1), 0);
  return is_false ? filled(s, 0) : Expr();
}

// x or True == True
Expr or_true(const Site& s) {
  const bool is_true = all_elements_are(s.arg(0), 1) || all_elements_are(s.arg(1), 1);
  return is_true ? filled(s, 1) : Expr();
}

// x xor x == 0, of bool and of bits
Expr xor_itself(const Site& s) { return s.arg(0) == s.arg(1) ? filled(s, 0) : Expr(); }

// x << 0 == x >> 0 == x
Expr drop_shift(const Site& s) { return all_elements_are(s.arg(1), 0) ? s.operand(0) : Expr(); }

// x == x, x <= x, x >= x are True, of integers and bool
Expr compare_equal(const Site& s) { return s.arg(0) == s.arg(1) ? filled(s, 1) : Expr(); }

// x != x, x < x, x > x are False, of integers and bool
Expr compare_unequal(const Site& s) { return s.arg(0) == s.arg(1) ? filled(s, 0) : Expr(); }

// where(c, x, x) == x
Expr where_both_same(const Site& s) { return s.arg(1) == s.arg(2) ? s.operand(1) : Expr(); }

// where(True, x, y) == x; where(False, x, y) == y
Expr where_known(const Site& s) {
  if (all_elements_are(s.arg(0), 1)) return s.operand(1);
  return all_elements_are(s.arg(0), 0) ? s.operand(2) : Expr();
}

// where(not c, x, y) == where(c, y, x)
Expr where_not(const Site& s) {
  const auto* condition = relay::call_of(s.arg(0), op::kLogicalNot);
  return condition == nullptr ? Expr() : ops::where(condition->args[0], s.arg(2), s.arg(1), s.span());
}

constexpr Law kLogicLaws[] = {
    {op::kLogicalNot, drop_double_not},
    {op::kLogicalNot, push_not},
    {op::kLogicalAnd, drop_equal_operand},
    {op::kLogicalAnd, drop_true},
    {op::kLogicalAnd, and_false, LawDtypes::all, LawShape::known},
    {op::kLogicalOr, drop_equal_operand},
    {op::kLogicalOr, drop_false},
    {op::kLogicalOr, or_true, LawDtypes::all, LawShape::known},
    {op::kLogicalXor, drop_false},
    {op::kLogicalXor, xor_itself, LawDtypes::all, LawShape::known},
    {op::kBitwiseNot, drop_double_not},
    {op::kBitwiseAnd, drop_equal_operand},
    {op::kBitwiseAnd, and_false, LawDtypes::all, LawShape::known},
    {op::kBitwiseOr, drop_equal_operand},
    {op::kBitwiseOr, drop_false},
    {op::kBitwiseXor, drop_false},
    {op::kBitwiseXor, xor_itself, LawDtypes::all, LawShape::known},
    {op::kLeftShift, drop_shift},
    {op::kRightShift, drop_shift},
    {op::kEqual, compare_equal, LawDtypes::exact, LawShape::known},
    {op::kLessEqual, compare_equal, LawDtypes::exact, LawShape::known},
    {op::kGreaterEqual, compare_equal, LawDtypes::exact, LawShape::known},
    {op::kNotEqual, compare_unequal, LawDtypes::exact, LawShape::known},
    {op::kLess, compare_unequal, LawDtypes::exact, LawShape::known},
    {op::kGreater, compare_unequal, LawDtypes::exact, LawShape::known},
    {op::kWhere, where_both_same},
    {op::kWhere, where_known},
    {op::kWhere, where_not},
};

}  // namespace

std::span<const Law> logic_laws() { return kLogicLaws; }

}  // namespace headrace::passes::simplify
