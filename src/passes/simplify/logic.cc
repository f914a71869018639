#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "passes/simplify/law.h"

namespace headrace::passes::simplify {

using relay::CallNode;

namespace {

// not not x == x; bitwise_not(bitwise_not(x)) == x
Expr drop_double_not(const Site& s) {
  const auto* inner = as_call_of(s.arg(0), s.op());
  return inner == nullptr ? Expr() : inner->args[0];
}

// The comparison that is true where `op` is false, of numbers that are never NaN.
std::string_view opposite(std::string_view op) {
  static constexpr std::pair<std::string_view, std::string_view> kPairs[] = {
      {"equal", "not_equal"}, {"less", "greater_equal"}, {"greater", "less_equal"}};
  for (const auto& [a, b] : kPairs) {
    if (op == a) return b;
    if (op == b) return a;
  }
  return {};
}

// not (x < y) == x >= y, and so for each comparison; of floats for equal and not_equal alone, since NaN is not ordered
Expr push_not(const Site& s) {
  const auto* inner = s.arg(0).as<CallNode>();
  if (inner == nullptr || inner->as_op() == nullptr) return {};
  const std::string_view op = inner->as_op()->name, other = opposite(op);
  const bool orders = op != "equal" && op != "not_equal";
  if (other.empty() || (orders && !is_exact(dtype_of(inner->args[0])))) return {};
  return ops::binary(other, inner->args[0], inner->args[1], s.span());
}

// x and x == x or x == x; the same of bits
Expr drop_repeated(const Site& s) { return s.arg(0) == s.arg(1) ? s.operand(0) : Expr(); }

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
  const auto* condition = as_call_of(s.arg(0), "logical_not");
  return condition == nullptr ? Expr() : ops::where(condition->args[0], s.arg(2), s.arg(1), s.span());
}

constexpr Law kLogicLaws[] = {
    {"logical_not", drop_double_not},
    {"logical_not", push_not},
    {"logical_and", drop_repeated},
    {"logical_and", drop_true},
    {"logical_and", and_false, LawDtypes::all, LawShape::known},
    {"logical_or", drop_repeated},
    {"logical_or", drop_false},
    {"logical_or", or_true, LawDtypes::all, LawShape::known},
    {"logical_xor", drop_false},
    {"logical_xor", xor_itself, LawDtypes::all, LawShape::known},
    {"bitwise_not", drop_double_not},
    {"bitwise_and", drop_repeated},
    {"bitwise_and", and_false, LawDtypes::all, LawShape::known},
    {"bitwise_or", drop_repeated},
    {"bitwise_or", drop_false},
    {"bitwise_xor", drop_false},
    {"bitwise_xor", xor_itself, LawDtypes::all, LawShape::known},
    {"left_shift", drop_shift},
    {"right_shift", drop_shift},
    {"equal", compare_equal, LawDtypes::exact, LawShape::known},
    {"less_equal", compare_equal, LawDtypes::exact, LawShape::known},
    {"greater_equal", compare_equal, LawDtypes::exact, LawShape::known},
    {"not_equal", compare_unequal, LawDtypes::exact, LawShape::known},
    {"less", compare_unequal, LawDtypes::exact, LawShape::known},
    {"greater", compare_unequal, LawDtypes::exact, LawShape::known},
    {"where", where_both_same},
    {"where", where_known},
    {"where", where_not},
};

}  // namespace

std::span<const Law> logic_laws() { return kLogicLaws; }

}  // namespace headrace::passes::simplify
