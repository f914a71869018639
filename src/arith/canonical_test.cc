#include "arith/canonical.h"

#include <gtest/gtest.h>

#include "kit/errors.h"

namespace headrace::arith {
namespace {

const PrimVar n = make_prim_var("n"), m = make_prim_var("m");

PrimExpr operator/(const PrimExpr& a, int64_t b) { return floor_div(a, make_int(b)); }
std::string text(const PrimExpr& e) { return to_string(simplify_dim(e)); }

TEST(Canonical, OneFormForEqualExpressions) {
  EXPECT_EQ(text(PrimExpr(n) + m), text(PrimExpr(m) + n));
  EXPECT_EQ(text((PrimExpr(n) + 1) * 2 - n), "n + 2");
  EXPECT_EQ(text(PrimExpr(n) - n), "0");
  EXPECT_EQ(text((PrimExpr(n) * 4 + 6) / 2), "(n * 2) + 3");
  EXPECT_EQ(text((PrimExpr(n) * 2 + 1) / 2), "n");
  EXPECT_EQ(text(floor_mod(PrimExpr(n) * 4 + 3, make_int(4))), "3");
  EXPECT_EQ(text(make_binary(BinaryOp::max, PrimExpr(n) + 1, n)), "n + 1");
}

TEST(Canonical, Equality) {
  EXPECT_TRUE(is_equal((PrimExpr(n) + m) * (PrimExpr(n) - m), PrimExpr(n) * n - PrimExpr(m) * m));
  EXPECT_FALSE(is_equal(n, m));
  EXPECT_FALSE(is_unequal(n, m));
  EXPECT_TRUE(is_unequal(PrimExpr(n) + 1, n));
  EXPECT_FALSE(is_equal(make_any(), make_any()));
  EXPECT_TRUE(is_equal((PrimExpr(n) - 1) / 2 + 1, (PrimExpr(n) + 1) / 2));
  EXPECT_FALSE(is_equal(n, make_prim_var("n")));
  EXPECT_TRUE(is_unequal(PrimExpr(n) + m + 1, n)) << "m is no less than 0";
  EXPECT_FALSE(is_unequal(PrimExpr(n) + m, n));
  EXPECT_FALSE(is_unequal(make_any(), make_int(1)));
}

TEST(Canonical, EqualityOfExpressionsWithoutAForm) {
  const auto condition = [] { return make_binary(BinaryOp::lt, PrimExpr(n) + 1, m); };
  EXPECT_TRUE(is_equal(condition(), condition()));
  EXPECT_FALSE(is_equal(condition(), make_binary(BinaryOp::lt, n, m)));
}

TEST(Canonical, ExactDivision) {
  EXPECT_EQ(to_string(*divide_exactly(PrimExpr(n) * 24, make_int(6))), "n * 4");
  EXPECT_EQ(to_string(*divide_exactly(PrimExpr(n) * m * 3, PrimExpr(m) * 3)), "n");
  EXPECT_EQ(to_string(*divide_exactly(PrimExpr(n) * 4 + 4, PrimExpr(n) + 1)), "4");
  EXPECT_FALSE(divide_exactly(PrimExpr(n) * 3, make_int(2)));
  EXPECT_FALSE(divide_exactly(n, make_int(0)));
  EXPECT_FALSE(divide_exactly(make_any(), make_int(1)));
}

TEST(Canonical, SolutionOfAnEquation) {
  const auto solve = [](const PrimExpr& a, const PrimExpr& b) {
    const Solution solution = solve_for(n.get(), a, b);
    return solution.is_none ? "none" : solution.value ? to_string(solution.value) : "unknown";
  };
  EXPECT_EQ(solve(PrimExpr(n) + 1, make_int(3)), "2");
  EXPECT_EQ(solve(make_int(0), n), "0");
  EXPECT_EQ(solve(PrimExpr(n) * 2, PrimExpr(n) + 3), "3");
  EXPECT_EQ(solve(make_int(10) - n, make_int(4)), "6");
  EXPECT_EQ(solve(PrimExpr(n) * 3 - 6, PrimExpr(m) * 6), "(m * 2) + 2");
  EXPECT_EQ(solve(PrimExpr(n) * 2, make_int(3)), "none");
  EXPECT_EQ(solve(PrimExpr(n) + 5, make_int(3)), "none");
  EXPECT_EQ(solve(PrimExpr(n) + 1, n), "none");
  EXPECT_EQ(solve(PrimExpr(n) / 2 + 5, make_int(3)), "none");
  EXPECT_EQ(solve(PrimExpr(n) * 2, PrimExpr(m) * 3), "unknown");
  EXPECT_EQ(solve(PrimExpr(n) * m, make_int(6)), "unknown");
  EXPECT_EQ(solve(PrimExpr(n) * n, make_int(4)), "unknown");
  EXPECT_EQ(solve(PrimExpr(n) + PrimExpr(n) / 2, make_int(3)), "unknown");
  EXPECT_EQ(solve(m, make_int(3)), "unknown");
  EXPECT_EQ(solve(n, make_any()), "unknown");
}

// Against all n that there could be.
TEST(Canonical, SolutionsAreTheOnlyOnes) {
  for (int64_t c = -3; c <= 3; ++c) {
    for (int64_t d = -9; d <= 9; ++d) {
      if (c == 0) continue;
      std::string expected = "none";
      for (int64_t x = 0; x <= 9; ++x) {
        if (c * x + d == 0) expected = std::to_string(x);
      }
      const Solution solution = solve_for(n.get(), PrimExpr(n) * c, make_int(-d));
      EXPECT_EQ(solution.is_none ? "none" : to_string(solution.value), expected) << c << " * n + " << d;
    }
  }
}

TEST(Canonical, TheSizeOfATensorIsTheProductOfItsShape) {
  const auto size = [](const Array<PrimExpr>& shape) {
    return to_string(size_of(make_tensor_type(shape, DataType::float_(32))));
  };
  EXPECT_EQ(size({}), "1");
  EXPECT_EQ(size({make_int(3), PrimExpr(n), make_int(2)}), "n * 6");
  EXPECT_EQ(size({make_int(3), make_any()}), "?");
  const PrimExpr much = make_int(INT64_C(1) << 40);
  EXPECT_EQ(kit::user_error_of([&] { size({much, much}); }),
            "Tensor[(1099511627776, 1099511627776), float32] has more elements than a 64-bit integer counts");
}

TEST(Canonical, HugeExpressionsAndOverflowProveNothing) {
  PrimExpr e = n;
  for (int i = 0; i < 100000; ++i) e = e / 2 + m;
  EXPECT_FALSE(canonical(e));
  EXPECT_TRUE(is_any(simplify_dim(e)));
  EXPECT_FALSE(canonical(PrimExpr(n) * INT64_C(4611686018427387904) * 4));
  PrimExpr power = n;
  for (int i = 0; i < 8; ++i) power = power * (PrimExpr(m) + power);
  EXPECT_FALSE(canonical(power));
}

}  // namespace
}  // namespace headrace::arith
