#include "tools/headrace/error_measure.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace headrace::tools {
namespace {

NDArray vector_of(const std::vector<double>& values) {
  NDArray array = NDArray::empty({static_cast<int64_t>(values.size())}, DataType::float_(64));
  for (size_t i = 0; i < values.size(); ++i) set_element(array.tensor(), static_cast<int64_t>(i), values[i]);
  return array;
}

double error(const std::vector<double>& want, const std::vector<double>& got) {
  const NDArray reference = vector_of(want);
  return relative_error(reference, vector_of(got), magnitude_of(reference)).error;
}

NDArray integers_of(DataType dtype, const std::vector<int64_t>& values) {
  NDArray array = NDArray::empty({static_cast<int64_t>(values.size())}, dtype);
  for (size_t i = 0; i < values.size(); ++i) set_element_int(array.tensor(), static_cast<int64_t>(i), values[i]);
  return array;
}

constexpr double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(RelativeError, IsOfTheLargestElementOfTheOutput) {
  EXPECT_EQ(error({1, 2}, {1, 2}), 0);
  // The element that is right says how large the output is.
  EXPECT_DOUBLE_EQ(error({8, 1}, {8, 2}), 0.125);
  EXPECT_DOUBLE_EQ(error({1, -8}, {2, -8}), 0.125);
  EXPECT_DOUBLE_EQ(error({0, 0}, {0, 0.5}), 0.5);
}

TEST(RelativeError, ValuesThatAreNotFiniteMustBeEqual) {
  EXPECT_EQ(error({kNaN, kInf, -kInf, 1}, {kNaN, kInf, -kInf, 1}), 0);
  EXPECT_EQ(error({kInf, 1}, {1, 1}), kInf);
  EXPECT_EQ(error({1, 1}, {kInf, 1}), kInf);
  EXPECT_EQ(error({kInf}, {-kInf}), kInf);
  EXPECT_EQ(error({kInf}, {kNaN}), kInf);
  EXPECT_EQ(error({1}, {kNaN}), kInf);
  // An infinity that is right hides nothing.
  EXPECT_DOUBLE_EQ(error({kInf, 4}, {kInf, 5}), 0.25);
}

TEST(ErrorInTolerances, IsOfEachElement) {
  const auto in_tolerances = [](double want, double got, ElementTolerance tolerance) {
    return error_in_tolerances(vector_of({want, 1000}), vector_of({got, 1000}), tolerance).error;
  };
  EXPECT_DOUBLE_EQ(in_tolerances(8, 8.5, {.relative = 0.0625, .absolute = 0}), 1);
  EXPECT_DOUBLE_EQ(in_tolerances(-8, -9, {.relative = 0.0625, .absolute = 0}), 2);
  EXPECT_DOUBLE_EQ(in_tolerances(8, 8.5, {.relative = 0.0625, .absolute = 0.5}), 0.5);
  EXPECT_DOUBLE_EQ(in_tolerances(0, 0.5, {.relative = 0.0625, .absolute = 0.25}), 2);
  EXPECT_EQ(in_tolerances(0, 0.5, {.relative = 0.0625, .absolute = 0}), kInf);
  EXPECT_EQ(in_tolerances(0, 0, {.relative = 0, .absolute = 0}), 0);
  EXPECT_EQ(in_tolerances(1, kNaN, {.relative = 1, .absolute = 1}), kInf);
}

TEST(RelativeError, CountsWhatIsCompared) {
  const auto compared = [](const std::vector<double>& values) {
    return relative_error(vector_of(values), vector_of(values), 1).compared;
  };
  EXPECT_EQ(compared({}), 0);
  EXPECT_EQ(compared({kNaN, kInf}), 0);
  EXPECT_EQ(compared({kNaN, 1, 2}), 2);
}

TEST(RelativeError, AnotherShapeIsAnInfiniteError) {
  EXPECT_EQ(error({1, 2}, {1}), kInf);
  EXPECT_EQ(error({}, {1}), kInf);
}

TEST(RelativeError, IntegersAreExact) {
  const DataType i64 = DataType::int_(64);
  const int64_t large = int64_t{1} << 60;  // as double it is its successor too
  EXPECT_EQ(relative_error(integers_of(i64, {large}), integers_of(i64, {large}), 1).error, 0);
  EXPECT_EQ(relative_error(integers_of(i64, {large}), integers_of(i64, {large + 1}), 1).error, 1);
  const DataType u8 = DataType::uint(8);
  EXPECT_DOUBLE_EQ(relative_error(integers_of(u8, {200, 3}), integers_of(u8, {200, 5}), 200).error, 0.01);
  EXPECT_EQ(relative_error(integers_of(DataType::bool_(), {1}), integers_of(DataType::bool_(), {0}), 1).error, 1);
}

}  // namespace
}  // namespace headrace::tools
