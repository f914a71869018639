#include "ir/intrinsics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace headrace {
namespace {

const IntrinsicRow& named(std::string_view name) { return row_of(find_intrinsic(name).value()); }

float of_floats(std::string_view name, std::vector<float> args) { return named(name).evaluation.floats(args.data()); }
uint64_t of_integers(std::string_view name, std::vector<uint64_t> args, DataType dtype) {
  return named(name).evaluation.integers(args.data(), dtype);
}

TEST(Intrinsics, EachHasOneName) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < kIntrinsicCount; ++i) {
    const IntrinsicRow& row = row_of(static_cast<Intrinsic>(i));
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(find_intrinsic(row.name), row.intrinsic);
    EXPECT_TRUE(row.arity >= 1 && row.arity <= 3) << row.name;
  }
  EXPECT_EQ(find_intrinsic("sine"), std::nullopt);
}

// Numbers have an evaluation for each kind of operand they take, the others none.
TEST(Intrinsics, EvaluationsFitTheOperands) {
  for (size_t i = 0; i < kIntrinsicCount; ++i) {
    const IntrinsicRow& row = row_of(static_cast<Intrinsic>(i));
    const IntrinsicEvaluation& run = row.evaluation;
    const bool takes_floats = row.operands == OperandRule::real || row.operands == OperandRule::number;
    const bool takes_integers = row.operands == OperandRule::integer || row.operands == OperandRule::number;
    if (!row.is_lanewise || row.operands == OperandRule::bits || row.operands == OperandRule::choice) {
      EXPECT_TRUE(run.floats == nullptr && run.integers == nullptr && run.tests == nullptr) << row.name;
      continue;
    }
    EXPECT_EQ(run.floats != nullptr || run.tests != nullptr, takes_floats) << row.name;
    EXPECT_EQ(run.floats != nullptr, run.doubles != nullptr) << row.name;
    EXPECT_EQ(run.integers != nullptr, takes_integers) << row.name;
    EXPECT_EQ(run.tests != nullptr, row.result == ResultRule::truth) << row.name;
  }
}

TEST(Intrinsics, KnownValues) {
  EXPECT_EQ(of_floats("rsqrt", {4}), 0.5F);
  EXPECT_EQ(of_floats("round", {2.5F}), 3.0F);
  EXPECT_EQ(of_floats("nearbyint", {2.5F}), 2.0F);
  EXPECT_EQ(of_floats("pow", {2, 10}), 1024.0F);
  EXPECT_EQ(of_floats("fma", {2, 3, 4}), 10.0F);
  EXPECT_TRUE(named("isnan").evaluation.tests(NAN));
  EXPECT_FALSE(named("isinf").evaluation.tests(NAN));
  const DataType i8 = DataType::int_(8), u8 = DataType::uint(8);
  EXPECT_EQ(of_integers("pow", {3, 4}, i8), 81u);
  EXPECT_EQ(of_integers("pow", {2, ~uint64_t{0}}, i8), 0u) << "the truncated quotient 1 / 2";
  EXPECT_EQ(of_integers("abs", {~uint64_t{4}}, i8), 5u);
  EXPECT_EQ(of_integers("shift_right", {~uint64_t{0}, 9}, i8), ~uint64_t{0}) << "by the width or more";
  EXPECT_EQ(of_integers("shift_right", {255, 9}, u8), 0u);
  EXPECT_EQ(of_integers("shift_left", {1, 8}, u8), 0u);
}

// Squares of these overflow or vanish.
TEST(Intrinsics, HypotNeitherOverflowsNorVanishes) {
  EXPECT_EQ(of_floats("hypot", {3, 4}), 5.0F);
  EXPECT_NEAR(of_floats("hypot", {3e30F, 4e30F}) / 5e30F, 1, 1e-6);
  EXPECT_NEAR(of_floats("hypot", {3e-30F, 4e-30F}) / 5e-30F, 1, 1e-6);
  const double wide[] = {3e200, -4e200};
  EXPECT_NEAR(named("hypot").evaluation.doubles(wide) / 5e200, 1, 1e-12);
}

}  // namespace
}  // namespace headrace
