#include "tools/headrace/comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"

namespace headrace::tools {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity(),
                 kNotANumber = std::numeric_limits<double>::quiet_NaN();
const DataType kF32 = DataType::float_(32);

NDArray tensor_of(const std::vector<double>& values, DataType dtype = DataType::float_(64)) {
  NDArray array = NDArray::empty({static_cast<int64_t>(values.size())}, dtype);
  for (size_t i = 0; i < values.size(); ++i) set_element(array.tensor(), static_cast<int64_t>(i), values[i]);
  return array;
}

// One float64 output; the reference is 1. A peer of NaN: none.
OutputComparison compare(double ours, double peer = kNotANumber, std::optional<double> limit = std::nullopt) {
  OutputSets sets{.names = {"y"}, .ours = {tensor_of({ours})}, .reference = {tensor_of({1})}, .peer = std::nullopt};
  if (!std::isnan(peer)) sets.peer = {tensor_of({peer})};
  return compare_outputs(sets, {.limit = limit}).front();
}

TEST(Comparison, TheLimitIsTwiceThePeersErrorWithinBounds) {
  EXPECT_DOUBLE_EQ(error_limit(kF32, std::nullopt), 1e-5);
  EXPECT_DOUBLE_EQ(error_limit(kF32, 1e-7), 1e-5);
  EXPECT_DOUBLE_EQ(error_limit(kF32, 2e-5), 4e-5);
  EXPECT_DOUBLE_EQ(error_limit(kF32, 0.3), 1e-3);
  EXPECT_DOUBLE_EQ(error_limit(kF32, kInfinite), 1e-5);
  EXPECT_DOUBLE_EQ(error_limit(DataType::float_(64), 0), 1e-12);
  EXPECT_DOUBLE_EQ(error_limit(DataType::float_(16), std::nullopt), 0.001953125);
  EXPECT_DOUBLE_EQ(error_limit(DataType::float_(16), 1), 0.02);
  EXPECT_DOUBLE_EQ(error_limit(DataType::bfloat16(), std::nullopt), 0.015625);
  EXPECT_DOUBLE_EQ(error_limit(DataType::bfloat16(), 1), 0.1);
  for (const DataType exact : {DataType::int_(64), DataType::uint(8), DataType::bool_()}) {
    EXPECT_EQ(error_limit(exact, 0.5), 0);
    EXPECT_EQ(difference_limit(exact, 0.5, 1), 0);
  }
}

TEST(Comparison, TheDifferenceIsLimitedByOurError) {
  EXPECT_DOUBLE_EQ(difference_limit(kF32, 0, 1), 1e-5);
  EXPECT_DOUBLE_EQ(difference_limit(kF32, 1e-6, 1), 1.1e-5);
  EXPECT_DOUBLE_EQ(difference_limit(kF32, 1e-5, 1), 5e-5);
  EXPECT_DOUBLE_EQ(difference_limit(kF32, 0.1, 1), 1e-3);
  EXPECT_DOUBLE_EQ(difference_limit(kF32, kInfinite, 1), 1e-5);
}

TEST(Comparison, SmallOutputsOfFunctionsHaveAbsoluteErrors) {
  EXPECT_DOUBLE_EQ(difference_limit(kF32, 0, 0x1p-7), 0x1p-14);
  EXPECT_DOUBLE_EQ(difference_limit(DataType::float_(64), 0, 0x1p-5), 1e-12);
  EXPECT_DOUBLE_EQ(difference_limit(DataType::float_(64), 0, 0x1p-12), 0x1p-38);
  EXPECT_DOUBLE_EQ(difference_limit(DataType::float_(16), 0, 0.5), 0x1p-7);
}

// However small the elements are, a wrong import of them must show.
TEST(Comparison, TheAbsoluteErrorIsBounded) {
  EXPECT_DOUBLE_EQ(difference_limit(kF32, 0, 0x1p-10), 1e-4);
  EXPECT_DOUBLE_EQ(difference_limit(kF32, 0, 1e-9), 1e-4);
  EXPECT_DOUBLE_EQ(difference_limit(kF32, 2e-5, 1e-9), 1.2e-4);
  EXPECT_DOUBLE_EQ(difference_limit(DataType::float_(64), 0, 0x1p-30), 1e-11);
  EXPECT_DOUBLE_EQ(difference_limit(DataType::float_(16), 0, 1e-6), 0.01953125);
}

TEST(Comparison, APeerThatIsFarMakesTheImportSuspect) {
  const OutputComparison wrong = compare(1, 1 + 1e-9);
  EXPECT_TRUE(wrong.is_near_float64());
  EXPECT_FALSE(wrong.ok());
  EXPECT_GT(wrong.share_of_limit(), 1);
  EXPECT_NE(explain_mismatch(wrong, "onnxruntime").find("The import is suspect"), std::string::npos);
  EXPECT_FALSE(compare(1, kInfinite).ok());
  EXPECT_TRUE(compare(1 + 1e-13, 1 - 1e-13).ok());
}

TEST(Comparison, AMiscompilationIsToldFromAWrongImport) {
  EXPECT_NE(explain_mismatch(compare(1.5), "").find("The compiled code is suspect"), std::string::npos);
  EXPECT_NE(explain_mismatch(compare(1.5, 1), "p").find("The compiled code is suspect"), std::string::npos);
  EXPECT_NE(explain_mismatch(compare(1.5, 1.5), "p").find("p is as far from float64 as our code"), std::string::npos);
  EXPECT_NE(explain_mismatch(compare(1.5, 3), "p").find("All three differ"), std::string::npos);
}

TEST(Comparison, AGivenLimitIsUsedAsItIs) {
  EXPECT_TRUE(compare(1.25, 1, 0.25).ok());
  EXPECT_FALSE(compare(1.25, 1, 0.2).ok());
  EXPECT_FALSE(compare(1, 1.25, 0.2).ok());  // the peer's error does not raise it
  EXPECT_EQ(compare(1, 1.25, 0.2).limit, 0.2);
  EXPECT_EQ(compare(1, 1.25, 0.2).difference_limit, 0.2);
  EXPECT_TRUE(compare(1, 1, 0).ok());
}

TEST(Comparison, EveryOutputHasItsLimit) {
  const DataType i32 = DataType::int_(32);
  OutputSets sets{.names = {"a", "b"},
                  .ours = {tensor_of({1 + 1e-6}, kF32), tensor_of({7, 8}, i32)},
                  .reference = {tensor_of({1}), tensor_of({7, 8}, i32)},
                  .peer = std::nullopt};
  std::vector<OutputComparison> outputs = compare_outputs(sets);
  EXPECT_TRUE(outputs[0].ok() && outputs[1].ok());
  EXPECT_EQ(worst_of(outputs).name, "a");
  sets.ours[1] = tensor_of({7, 9}, i32);
  outputs = compare_outputs(sets);
  EXPECT_TRUE(outputs[0].ok());
  EXPECT_FALSE(outputs[1].ok());
  EXPECT_EQ(worst_of(outputs).name, "b");
  EXPECT_DOUBLE_EQ(outputs[1].error, 1.0 / 8);
}

TEST(Comparison, AGivenLimitDoesNotLoosenIntegers) {
  for (const DataType dtype : {DataType::int_(64), DataType::uint(8), DataType::bool_()}) {
    OutputSets sets{.names = {"a"}, .ours = {}, .reference = {tensor_of({1, 0}, dtype)}, .peer = std::nullopt};
    sets.ours = {tensor_of({1, 1}, dtype)};
    const OutputComparison wrong = compare_outputs(sets, {.limit = 10})[0];
    EXPECT_FALSE(wrong.ok()) << dtype.to_string();
    EXPECT_EQ(wrong.limit, 0);
    sets.ours = sets.reference;
    sets.peer = {tensor_of({1, 1}, dtype)};
    EXPECT_FALSE(compare_outputs(sets, {.limit = 10})[0].ok()) << dtype.to_string();
    sets.peer = sets.reference;
    EXPECT_TRUE(compare_outputs(sets, {.limit = 10})[0].ok()) << dtype.to_string();
  }
}

TEST(Comparison, ElementsHaveTolerancesOfTheirOwn) {
  const DataType i32 = DataType::int_(32);
  OutputSets sets{.names = {"a", "b"},
                  .ours = {tensor_of({1000, 1.5}), tensor_of({7, 8}, i32)},
                  .reference = {tensor_of({1000, 1}), tensor_of({7, 8}, i32)},
                  .peer = {{tensor_of({1000, 2}), tensor_of({7, 8}, i32)}}};
  // 0.5 is little beside 1000 and much beside 1.
  EXPECT_TRUE(compare_outputs(sets, {.limit = 1e-3})[0].ok());
  const Tolerance tolerance{.elementwise = ElementTolerance{.relative = 0.125, .absolute = 0.125}};
  const OutputComparison floats = compare_outputs(sets, tolerance)[0];
  EXPECT_DOUBLE_EQ(floats.error, 2);
  EXPECT_EQ(floats.limit, 1);
  EXPECT_DOUBLE_EQ(*floats.peer_error, 4);
  EXPECT_DOUBLE_EQ(floats.difference, 0.5 / 0.375);
  EXPECT_EQ(floats.difference_limit, 1);
  EXPECT_TRUE(compare_outputs(sets, tolerance)[1].ok());
  sets.ours[1] = tensor_of({7, 9}, i32);
  EXPECT_FALSE(compare_outputs(sets, {.elementwise = ElementTolerance{.relative = 9, .absolute = 9}})[1].ok());
}

TEST(Comparison, AnotherDtypeOfThePeerIsAMismatch) {
  OutputSets sets{.names = {"a"}, .ours = {tensor_of({2})}, .reference = {tensor_of({2})}, .peer = std::nullopt};
  sets.peer = {tensor_of({2}, kF32)};
  EXPECT_EQ(compare_outputs(sets)[0].difference, kInfinite);
}

TEST(Comparison, TheLargestDifferenceIsOfAllOutputs) {
  const NDArray one = tensor_of({1}), four = tensor_of({4}), five = tensor_of({5});
  EXPECT_EQ(largest_difference({one, four}, {one, four}), 0);
  EXPECT_DOUBLE_EQ(largest_difference({one, five}, {one, four}), 0.25);
  EXPECT_EQ(largest_difference({one}, {one, four}), kInfinite);
  EXPECT_EQ(largest_difference({tensor_of({1}, kF32)}, {one}), kInfinite);
  const NDArray none = tensor_of({kNotANumber});
  EXPECT_TRUE(std::isnan(largest_difference({none}, {none}))) << "nothing is compared";
  EXPECT_EQ(largest_difference({none, one}, {none, one}), 0);
}

TEST(Comparison, RefusesWhatComparesNothing) {
  OutputSets sets{.names = {"a"}, .ours = {tensor_of({})}, .reference = {tensor_of({})}, .peer = std::nullopt};
  EXPECT_THROW(compare_outputs(sets), UserError);
  sets.ours = sets.reference = {tensor_of({kNotANumber})};
  EXPECT_THROW(compare_outputs(sets), UserError);
  sets.ours.clear();
  EXPECT_THROW(compare_outputs(sets), UserError);
}

}  // namespace
}  // namespace headrace::tools
