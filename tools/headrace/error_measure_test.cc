#include "tools/headrace/error_measure.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"

namespace headrace::tools {
namespace {

NDArray vector_of(const std::vector<double>& values) {
  NDArray array = NDArray::empty({static_cast<int64_t>(values.size())}, DataType::float_(64));
  for (size_t i = 0; i < values.size(); ++i) set_element(array.tensor(), static_cast<int64_t>(i), values[i]);
  return array;
}

double error(const std::vector<double>& reference, const std::vector<double>& actual) {
  return relative_error(std::vector<NDArray>{vector_of(reference)}, {vector_of(actual)});
}

constexpr double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(RelativeError, IsOfTheLargestElementOfTheOutput) {
  EXPECT_EQ(error({1, 2}, {1, 2}), 0);
  // The element that is right says how large the output is.
  EXPECT_DOUBLE_EQ(error({8, 1}, {8, 2}), 0.125);
  EXPECT_DOUBLE_EQ(error({1, -8}, {2, -8}), 0.125);
  EXPECT_DOUBLE_EQ(error({0, 0}, {0, 0.5}), 0.5);
}

TEST(RelativeError, WhatIsNotFiniteMustBeTheSame) {
  EXPECT_THROW(error({kNaN}, {kNaN}), UserError);  // nothing is compared
  EXPECT_THROW(error({}, {}), UserError);
  EXPECT_EQ(error({kNaN, kInf, -kInf, 1}, {kNaN, kInf, -kInf, 1}), 0);
  EXPECT_EQ(error({kInf, 1}, {1, 1}), kInf);
  EXPECT_EQ(error({1, 1}, {kInf, 1}), kInf);
  EXPECT_EQ(error({kInf}, {-kInf}), kInf);
  EXPECT_EQ(error({kInf}, {kNaN}), kInf);
  EXPECT_EQ(error({1}, {kNaN}), kInf);
  // An infinity that is right hides nothing.
  EXPECT_DOUBLE_EQ(error({kInf, 4}, {kInf, 5}), 0.25);
}

TEST(RelativeError, EveryOutputCounts) {
  const std::vector<NDArray> reference{vector_of({1}), vector_of({4})};
  EXPECT_DOUBLE_EQ(relative_error(reference, {vector_of({1}), vector_of({5})}), 0.25);
  EXPECT_THROW(relative_error(reference, {vector_of({1})}), UserError);
  EXPECT_THROW(relative_error(reference, {vector_of({1}), vector_of({4, 4})}), UserError);
}

}  // namespace
}  // namespace headrace::tools
