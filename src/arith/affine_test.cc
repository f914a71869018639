#include "arith/affine.h"

#include <gtest/gtest.h>

#include "kit/random.h"

namespace headrace::arith {
namespace {

// Indices of three variables of known extents.
class AffineSums : public testing::Test {
 protected:
  std::string text(const PrimExpr& e) const { return to_string(to_affine(e, extents_).to_expr()); }

  // The value of an integer expression.
  int64_t value_of(const PrimExpr& e, int64_t i, int64_t j, int64_t k) const {
    return as_int(substitute(e, {{i_.get(), make_int(i)}, {j_.get(), make_int(j)}, {k_.get(), make_int(k)}})).value();
  }

  PrimExpr random_index(kit::Random& random, int depth) const {
    const PrimExpr leaves[] = {i_, j_, k_, make_int(random.integer(-9, 9))};
    if (depth == 0) return leaves[random.index(4)];
    const PrimExpr a = random_index(random, depth - 1), b = random_index(random, depth - 1);
    switch (random.index(5)) {
      case 0:
        return a + b;
      case 1:
        return a - b;
      case 2:
        return a * random.integer(-4, 4);
      case 3:
        return floor_div(a, make_int(random.integer(1, 8)));
      default:
        return floor_mod(a, make_int(random.integer(1, 8)));
    }
  }

  const PrimVar i_ = make_prim_var("i"), j_ = make_prim_var("j"), k_ = make_prim_var("k");
  const Extents extents_{{i_.get(), 6}, {j_.get(), 7}, {k_.get(), 5}};
};

TEST_F(AffineSums, GathersTerms) {
  EXPECT_EQ(text((i_ + 2) * 3 + j_ - i_), "((i * 2) + j) + 6");
  EXPECT_EQ(text(i_ - i_), "0");
}

TEST_F(AffineSums, TakesQuotientsApart) {
  const PrimExpr f = i_ * 7 + j_;
  EXPECT_EQ(text(floor_div(f, make_int(7))), "i");
  EXPECT_EQ(text(floor_mod(f, make_int(7))), "j");
  // j + 3 may be past 7: the quotient stays.
  EXPECT_EQ(to_affine(floor_div(f + 3, make_int(7)), extents_).coefficient(i_.get()), 1);
  EXPECT_TRUE(to_affine(floor_div(f + 3, make_int(7)), extents_).hides(j_.get()));
}

TEST_F(AffineSums, JoinsQuotientAndRemainder) {
  const PrimVar f = make_prim_var("f");
  const PrimExpr six = make_int(6), five = make_int(5);
  const PrimExpr rows = floor_div(f, six),
                 again = floor_div(rows, five) * 30 + floor_mod(rows, five) * 6 + floor_mod(f, six);
  EXPECT_EQ(to_string(to_affine(again, {}).to_expr()), "f");
}

TEST_F(AffineSums, KeepsTheValue) {
  kit::Random random(7);
  for (int round = 0; round < 3000; ++round) {
    const PrimExpr e = random_index(random, 4);
    const PrimExpr sum = to_affine(e, extents_).to_expr();
    for (int sample = 0; sample < 8; ++sample) {
      const int64_t i = random.integer(0, 5), j = random.integer(0, 6), k = random.integer(0, 4);
      ASSERT_EQ(value_of(sum, i, j, k), value_of(e, i, j, k)) << to_string(e) << " as " << to_string(sum);
    }
  }
}

}  // namespace
}  // namespace headrace::arith
