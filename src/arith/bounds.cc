#include "arith/bounds.h"

#include <algorithm>

#include "arith/canonical.h"

namespace headrace::arith {

namespace {

constexpr int64_t kLowest = INT64_MIN, kGreatest = INT64_MAX;

bool is_endless(int64_t x) { return x == kLowest || x == kGreatest; }

// Adds two ends. Where the sum exceeds int64 there is no bound, on the side of the operands.
int64_t add_ends(int64_t x, int64_t y) {
  if (is_endless(x)) return x;
  int64_t sum = 0;
  if (is_endless(y) || __builtin_add_overflow(x, y, &sum)) return y < 0 ? kLowest : kGreatest;
  return sum;
}

int64_t negate_end(int64_t x) { return x == kLowest ? kGreatest : x == kGreatest ? kLowest : -x; }

int64_t multiply_ends(int64_t x, int64_t y) {
  if (x == 0 || y == 0) return 0;
  int64_t result = 0;
  if (!is_endless(x) && !is_endless(y) && !__builtin_mul_overflow(x, y, &result)) return result;
  return (x < 0) == (y < 0) ? kGreatest : kLowest;
}

// Divides an end x by an end y > 0, rounding down or toward zero.
int64_t divide_ends(int64_t x, int64_t y, bool rounds_down) {
  if (is_endless(x)) return x;
  if (is_endless(y)) return rounds_down && x < 0 ? -1 : 0;
  return x / y - (rounds_down && x % y < 0 ? 1 : 0);
}

// Returns the bounds of an operation that is monotone in each operand, from its values at the corners.
template <typename F>
Bounds at_corners(const Bounds& a, const Bounds& b, F f) {
  const auto [least, greatest] =
      std::minmax({f(a.least, b.least), f(a.least, b.greatest), f(a.greatest, b.least), f(a.greatest, b.greatest)});
  return {least, greatest};
}

// Returns the bounds of a remainder. Its magnitude is below the divisor's and at most the dividend's; its sign is the
// divisor's for floor_mod, the dividend's for mod.
Bounds remainder(const Bounds& a, const Bounds& b, bool is_floor) {
  const int64_t most = add_ends(b.greatest, -1);
  if (a.least >= 0) return {a.greatest < b.least ? a.least : 0, std::min(a.greatest, most)};
  return {is_floor ? 0 : negate_end(most), most};
}

class Walk {
 public:
  explicit Walk(const KnownBounds& known) : known_(known) {}

  Bounds of(const PrimExpr& e) {
    if (--left_ < 0 || e->dtype != kIndexType) return {};
    if (const auto value = as_int(e)) return is_endless(*value) ? Bounds{} : Bounds{*value, *value};
    if (const auto* var = e.as<PrimVarNode>()) {
      const auto known = known_.find(var);
      return known == known_.end() ? Bounds{0, kGreatest} : known->second;
    }
    if (const auto* select = e.as<SelectNode>()) {
      const Bounds a = of(select->true_value), b = of(select->false_value);
      return {std::min(a.least, b.least), std::max(a.greatest, b.greatest)};
    }
    const auto* binary = e.as<BinaryNode>();
    if (binary == nullptr) return {};
    const Bounds a = of(binary->a), b = of(binary->b);
    const Bounds result = of_binary(binary->op, a, b);
    // A value past int64 is not a bound, because a later subtraction may bring it back into range.
    return {result.least == kGreatest ? kLowest : result.least,
            result.greatest == kLowest ? kGreatest : result.greatest};
  }

 private:
  static Bounds of_binary(BinaryOp op, const Bounds& a, const Bounds& b) {
    switch (op) {
      case BinaryOp::add:
        return {add_ends(a.least, b.least), add_ends(a.greatest, b.greatest)};
      case BinaryOp::sub:
        return {add_ends(a.least, negate_end(b.greatest)), add_ends(a.greatest, negate_end(b.least))};
      case BinaryOp::mul:
        return at_corners(a, b, multiply_ends);
      case BinaryOp::min:
        return {std::min(a.least, b.least), std::min(a.greatest, b.greatest)};
      case BinaryOp::max:
        return {std::max(a.least, b.least), std::max(a.greatest, b.greatest)};
      case BinaryOp::floor_div:
      case BinaryOp::div:
        if (b.least < 1) return {};
        return at_corners(a, b, [&](int64_t x, int64_t y) { return divide_ends(x, y, op == BinaryOp::floor_div); });
      case BinaryOp::floor_mod:
      case BinaryOp::mod:
        return b.least < 1 ? Bounds{} : remainder(a, b, op == BinaryOp::floor_mod);
      default:
        return {};
    }
  }

  const KnownBounds& known_;
  int64_t left_ = kMaxSize;  // nodes, which bound the depth too
};

}  // namespace

Bounds bounds_of(const PrimExpr& e, const KnownBounds& known) { return Walk(known).of(e); }

}  // namespace headrace::arith
