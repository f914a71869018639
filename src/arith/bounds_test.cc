// Compares bounds, and the canonical form's use of them, with every value that small expressions take.
#include "arith/bounds.h"

#include <gtest/gtest.h>

#include <random>

#include "arith/canonical.h"

namespace headrace::arith::bounds_testing {
namespace {

const PrimVar n = make_prim_var("n"), m = make_prim_var("m");

PrimExpr make_min(const PrimExpr& a, const PrimExpr& b) { return make_binary(BinaryOp::min, a, b); }
PrimExpr make_max(const PrimExpr& a, const PrimExpr& b) { return make_binary(BinaryOp::max, a, b); }
std::string text(const PrimExpr& e) { return to_string(simplify_dim(e)); }

// The value by the definition of each operation; divisors are positive.
int64_t value_of(const PrimExpr& e, int64_t n_value, int64_t m_value) {
  if (e == n) return n_value;
  if (e == m) return m_value;
  if (const auto* number = e.as<IntImmNode>()) return number->value;
  const auto* binary = e.as<BinaryNode>();
  const int64_t a = value_of(binary->a, n_value, m_value), b = value_of(binary->b, n_value, m_value);
  const auto floor_mod_of = [](int64_t x, int64_t y) { return ((x % y) + y) % y; };
  switch (binary->op) {
    case BinaryOp::add:
      return a + b;
    case BinaryOp::sub:
      return a - b;
    case BinaryOp::mul:
      return a * b;
    case BinaryOp::div:
      return a / b;
    case BinaryOp::mod:
      return a % b;
    case BinaryOp::floor_div:
      return (a - floor_mod_of(a, b)) / b;
    case BinaryOp::floor_mod:
      return floor_mod_of(a, b);
    case BinaryOp::min:
      return std::min(a, b);
    default:
      return std::max(a, b);
  }
}

constexpr BinaryOp kOps[] = {BinaryOp::add, BinaryOp::sub,       BinaryOp::mul,       BinaryOp::min, BinaryOp::max,
                             BinaryOp::min, BinaryOp::floor_div, BinaryOp::floor_mod, BinaryOp::div, BinaryOp::mod};

PrimExpr random_expr(std::mt19937& random, int depth) {
  const auto pick = [&](int64_t from, int64_t to) {
    return from + static_cast<int64_t>(random() % static_cast<uint64_t>(to - from + 1));
  };
  if (depth == 0) {
    const int64_t leaf = pick(-4, 7);
    return leaf > 5 ? PrimExpr(n) : leaf > 3 ? PrimExpr(m) : make_int(leaf);
  }
  const BinaryOp op = kOps[pick(0, std::ssize(kOps) - 1)];
  const bool divides = op >= BinaryOp::div && op <= BinaryOp::floor_mod;
  const PrimExpr a = random_expr(random, depth - 1);
  if (!divides) return make_binary(op, a, random_expr(random, depth - static_cast<int>(pick(1, depth))));
  return make_binary(op, a, pick(0, 3) == 0 ? PrimExpr(m) + 1 : make_int(pick(1, 4)));
}

bool has_extremum(const PrimExpr& e) {
  const auto* binary = e.as<BinaryNode>();
  return binary != nullptr && (binary->op == BinaryOp::min || binary->op == BinaryOp::max || has_extremum(binary->a) ||
                               has_extremum(binary->b));
}

TEST(Bounds, HoldForEveryValueOfRandomExpressions) {
  constexpr unsigned kSeed = 20;
  std::mt19937 random(kSeed);
  int with_extremum = 0, without_now = 0, with_bounds = 0;
  for (int i = 0; i < 4000; ++i) {
    const PrimExpr e = random_expr(random, 1 + i % 4), simple = simplify_dim(e);
    const Bounds bounds = bounds_of(e);
    for (int64_t a = 0; a < 6; ++a) {
      for (int64_t b = 0; b < 6; ++b) {
        const int64_t value = value_of(e, a, b);
        const std::string where = fmt::format("seed {}, expression {}: {} at n={} m={}", kSeed, i, to_string(e), a, b);
        ASSERT_LE(bounds.least, value) << where;
        ASSERT_GE(bounds.greatest, value) << where;
        ASSERT_EQ(value_of(simple, a, b), value) << where << " became " << to_string(simple);
      }
    }
    with_bounds += bounds.least != INT64_MIN || bounds.greatest != INT64_MAX;
    with_extremum += has_extremum(e);
    without_now += has_extremum(e) && !has_extremum(simple);
  }
  EXPECT_GT(with_bounds, 2000);
  EXPECT_GT(with_extremum, 1000);
  EXPECT_GT(without_now, with_extremum / 3);
}

TEST(Bounds, OfEachOperation) {
  const auto expect = [](const PrimExpr& e, int64_t least, int64_t greatest) {
    EXPECT_EQ(bounds_of(e).least, least) << to_string(e);
    EXPECT_EQ(bounds_of(e).greatest, greatest) << to_string(e);
  };
  constexpr int64_t kNone = INT64_MAX;
  const PrimExpr up_to_9 = make_min(n, make_int(9));
  expect(n, 0, kNone);
  expect(up_to_9 * -2 + 1, -17, 1);
  expect(up_to_9 * up_to_9, 0, 81);
  expect(PrimExpr(m) - n, -kNone - 1, kNone);
  expect(make_max(up_to_9, make_int(4)), 4, 9);
  expect(floor_div(up_to_9 - 4, make_int(2)), -2, 2);
  expect(floor_div(up_to_9, PrimExpr(m) + 2), 0, 4);
  expect(floor_mod(PrimExpr(n) - 5, make_int(4)), 0, 3);
  expect(floor_mod(up_to_9, make_int(20)), 0, 9);
  expect(make_binary(BinaryOp::div, up_to_9 - 3, make_int(2)), -1, 3);
  expect(make_binary(BinaryOp::mod, PrimExpr(n) - 5, make_int(4)), -3, 3);
  expect(make_select(make_binary(BinaryOp::lt, n, m), up_to_9, make_int(-1)), -1, 9);
}

TEST(Bounds, OfKnownVariables) {
  const KnownBounds known = {{n.get(), {-2, 7}}, {m.get(), {}}};
  const auto bounds = [&](const PrimExpr& e) {
    const Bounds found = bounds_of(e, known);
    return std::pair(found.least, found.greatest);
  };
  EXPECT_EQ(bounds(PrimExpr(n) * 3 + 1), std::pair(int64_t{-5}, int64_t{22}));
  EXPECT_EQ(bounds(floor_mod(n, make_int(4))), std::pair(int64_t{0}, int64_t{3}));
  EXPECT_EQ(bounds(make_min(n, m)), std::pair(INT64_MIN, int64_t{7}));
  EXPECT_EQ(bounds(make_prim_var("k")).first, 0);
}

TEST(Bounds, NothingIsKnown) {
  PrimExpr large = n;
  for (int i = 0; i < 100'000; ++i) large = large + m;
  const PrimExpr last = make_int(INT64_MAX);
  for (const PrimExpr& e : {large, make_any(), make_cast(kIndexType, make_prim_var("k", DataType::int_(32))), last,
                            (make_max(n, make_int(INT64_MAX - 1)) + 2) - 9, floor_div(n, m)}) {
    EXPECT_EQ(bounds_of(e).least, INT64_MIN);
    EXPECT_EQ(bounds_of(e).greatest, INT64_MAX);
  }
}

TEST(Bounds, DecideMinAndMax) {
  EXPECT_EQ(text(make_min(make_int(1), PrimExpr(n) + 1)), "1");
  EXPECT_EQ(text(make_max(n, make_int(0))), "n");
  EXPECT_EQ(text(make_max(make_int(0), n * (PrimExpr(m) + 2))), "(m * n) + (n * 2)");
  EXPECT_EQ(text(make_max(PrimExpr(n) + 1 - make_min(make_int(1), PrimExpr(n) + 1), make_int(0))), "n");
  EXPECT_EQ(text(make_min(n, PrimExpr(n) + m)), "n");
  EXPECT_EQ(text(make_max(floor_div(n, make_int(2)), make_int(-1))), "n // 2");
  // not decided
  EXPECT_EQ(text(make_max(PrimExpr(n) - 1, make_int(0))), "max((n - 1), 0)");
  EXPECT_EQ(text(make_min(n, m)), "min(n, m)");
}

}  // namespace
}  // namespace headrace::arith::bounds_testing
