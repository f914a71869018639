#include "tools/headrace/cpu_needs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/architecture.h"

namespace headrace::tools {
namespace {

using FeatureList = std::vector<std::string>;

const FeatureList kBase{"64bit", "cmov", "cx8", "fxsr", "mmx", "sse", "sse2", "x87"};
const FeatureList kLevel2{"crc32", "cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3"};
const FeatureList kLevel3{"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"};

artifact::Target x86(std::initializer_list<FeatureList> parts) {
  artifact::Target target{.triple = "x86_64-unknown-linux-gnu", .cpu = "some", .features = {}};
  for (const FeatureList& part : parts) target.features.insert(target.features.end(), part.begin(), part.end());
  return target;
}

artifact::Target arm(FeatureList features) {
  return {.triple = "aarch64-unknown-linux-gnu", .cpu = "some", .features = std::move(features)};
}

TEST(CpuNeeds, LevelsOfX86) {
  EXPECT_EQ(cpu_needs(x86({kBase}), 9), "any x86_64 processor");
  EXPECT_EQ(cpu_needs(x86({kBase, kLevel2}), 9), "an x86_64 processor of level x86-64-v2");
  EXPECT_EQ(cpu_needs(x86({kBase, kLevel2, kLevel3}), 9), "an x86_64 processor of level x86-64-v3");
  EXPECT_EQ(cpu_needs(x86({kBase, kLevel2, kLevel3, {"adx", "aes"}}), 9),
            "an x86_64 processor of level x86-64-v3 with adx, aes");
}

// A level that the code does not need as a whole is not named.
TEST(CpuNeeds, PartsOfALevelAreListed) {
  EXPECT_EQ(cpu_needs(x86({kBase, kLevel2, {"avx", "avx2"}}), 9),
            "an x86_64 processor of level x86-64-v2 with avx, avx2");
  EXPECT_EQ(cpu_needs(x86({kBase, {"sse3"}}), 9), "an x86_64 processor with sse3");
  EXPECT_EQ(cpu_needs(x86({{"sse", "sse2"}}), 9), "any x86_64 processor");
}

TEST(CpuNeeds, AArch64) {
  EXPECT_EQ(cpu_needs(arm({"fp-armv8", "neon"}), 9), "any aarch64 processor");
  EXPECT_EQ(cpu_needs(arm({"dotprod", "fp-armv8", "lse", "neon"}), 9), "an aarch64 processor with dotprod, lse");
}

TEST(CpuNeeds, LongListsAreCut) {
  EXPECT_EQ(cpu_needs(arm({"aes", "crc", "dotprod", "lse", "neon"}), 2),
            "an aarch64 processor with aes, crc and 2 more features");
  EXPECT_EQ(cpu_needs(arm({"aes", "crc"}), 2), "an aarch64 processor with aes, crc");
}

TEST(CpuNeeds, MissingFeaturesOfTheProcessor) {
  const bool is_x86 = kHostArchitecture == "x86_64";
  EXPECT_EQ(why_not_here(is_x86 ? x86({kBase}) : arm({"fp-armv8", "neon"})), "");
  EXPECT_THAT(why_not_here(is_x86 ? arm({"neon"}) : x86({kBase})),
              ::testing::AllOf(::testing::StartsWith("its code is for "),
                               ::testing::EndsWith(fmt::format("this machine is {}", kHostArchitecture))));
  EXPECT_EQ(why_not_here(is_x86 ? x86({{"frob"}}) : arm({"frob"})), "this processor lacks frob");
}

}  // namespace
}  // namespace headrace::tools
