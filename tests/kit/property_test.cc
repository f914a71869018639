#include "kit/property.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>

namespace headrace::kit {
namespace {

Property<std::vector<int64_t>> lists(std::function<std::optional<std::string>(const std::vector<int64_t>&)> check) {
  return {.seed = 3,
          .generate =
              [](Random& random) {
                std::vector<int64_t> list(static_cast<size_t>(random.integer(0, 40)));
                for (int64_t& element : list) element = random.integer(-50, 50);
                return list;
              },
          .shrink = shrink_list<int64_t>,
          .show = [](const std::vector<int64_t>& list) { return testing::PrintToString(list); },
          .check = std::move(check)};
}

TEST(Property, HoldsForTruth) {
  int runs = 0;
  EXPECT_TRUE(holds(lists([&](const std::vector<int64_t>&) -> std::optional<std::string> {
    ++runs;
    return std::nullopt;
  })));
  EXPECT_EQ(runs, options().seed ? 1 : options().size == TestSize::kFew ? 13 : by_size(100, 1000));
}

TEST(Property, FailureIsShrunkAndNamesItsSeed) {
  testing::AssertionResult result = holds(lists([](const std::vector<int64_t>& list) -> std::optional<std::string> {
    if (std::accumulate(list.begin(), list.end(), int64_t{0}, [](int64_t a, int64_t b) { return std::max(a, b); }) > 40)
      return "it has an element above 40";
    return std::nullopt;
  }));
  ASSERT_FALSE(result);
  std::string message = result.message();
  EXPECT_NE(message.find("it has an element above 40"), std::string::npos) << message;
  EXPECT_THAT(message, testing::ContainsRegex("for: . (4[1-9]|50) .\nto")) << "one element is left";
  EXPECT_NE(message.find("--seed="), std::string::npos) << message;
}

TEST(Property, AnExceptionIsAFailure) {
  testing::AssertionResult result = holds(lists([](const std::vector<int64_t>& list) -> std::optional<std::string> {
    if (list.size() > 3) throw std::runtime_error("too long");
    return std::nullopt;
  }));
  ASSERT_FALSE(result);
  EXPECT_NE(std::string(result.message()).find("it threw: too long"), std::string::npos);
}

TEST(Random, IsTheSameEverywhere) {
  // The reference values of SplitMix64 for seed 1234567.
  Random random(1234567);
  EXPECT_EQ(random.next(), 6457827717110365317ULL);
  EXPECT_EQ(random.next(), 3203168211198807973ULL);
}

TEST(Random, FillHasTheDeviation) {
  Random random(1);
  std::vector<float> values(100000);
  random.fill(values, 2.0F, 0.5F);
  double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  double square = 0;
  for (float value : values) square += (value - mean) * (value - mean);
  EXPECT_NEAR(mean, 2.0, 0.01);  // 6 standard errors
  EXPECT_NEAR(square / static_cast<double>(values.size()), 0.25, 0.005);
}

}  // namespace
}  // namespace headrace::kit
