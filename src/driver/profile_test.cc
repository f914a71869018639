// Measuring the calls of a model, and placing it by what was measured.
#include "driver/profile.h"

#include <gmock/gmock.h>

#include <cstdio>
#include <fstream>

#include "base/architecture.h"
#include "driver/explain.h"
#include "driver/register_all.h"
#include "kit/errors.h"
#include "plan/static_main_tables.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"

namespace headrace::driver {
namespace {

using ::testing::HasSubstr;

constexpr const char* kProfiled =
    "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(2, 3), float32], %y: Tensor[(2, 3), float32]) {\n"
    "  nn.softmax(add(add(%x, 1f), %y)) }\n";

Model profiled_model() {
  register_all();
  return make_model(relay::infer_type(relay::parse_module(kProfiled)));
}

std::string costs_file(const std::string& text) {
  const std::string path = testing::TempDir() + "/profile_test_costs.json";
  std::ofstream(path) << text;
  return path;
}

TEST(Profile, EachDifferentCallIsTimedOnce) {
  size_t calls = 0;
  const partition::CostTable table = profile(profiled_model(), {.jobs = 1, .backends = {"ccompiler"}},
                                             {.rounds = 2, .progress = [&](size_t, size_t count) { calls = count; }});
  EXPECT_EQ(calls, 3u);               // an add of a constant, an add of two tensors, a softmax
  EXPECT_EQ(table.costs.size(), 5u);  // ccompiler has no softmax
  EXPECT_EQ(table.threads, 1);
  for (const auto& [key, cost] : table.costs) {
    EXPECT_GT(cost.seconds, 0) << key.first;
    EXPECT_EQ(cost.version, key.second == "native" ? HEADRACE_VERSION : "1");
  }
}

TEST(Profile, TargetsOfOtherMachinesAreRefused) {
  const std::string other = kHostArchitecture == "x86_64" ? "aarch64" : "x86_64";
  if (plan::static_main_object(other).empty()) GTEST_SKIP() << "the build found no compiler for " << other;
  const CompileOptions options{.target = parse_target("llvm -mtriple=" + other + "-linux-gnu")};
  EXPECT_THAT(kit::user_error_of([&] { profile(profiled_model(), options, {}); }),
              HasSubstr("profile on a machine of the target's architecture"));
}

TEST(Profile, PlacementReadsTheFile) {
  CompileOptions options{.jobs = 1, .backends = {"ccompiler"}, .placement = Placement::cost};
  partition::CostTable table = profile(profiled_model(), options, {.rounds = 1});
  for (auto& [key, cost] : table.costs) cost.seconds = key.second == "native" ? 1e-3 : 1e-6;
  options.costs = costs_file(partition::to_json(table));
  const Explanation explained = explain(profiled_model(), options);
  EXPECT_EQ(explained.plan_cost->source, fmt::format("measured ({})", options.costs));
  ASSERT_EQ(explained.placement.size(), 3u);
  EXPECT_EQ(explained.placement[0].backend, "ccompiler");
  EXPECT_EQ(explained.placement[2].backend, "native");
  EXPECT_NEAR(explained.plan_cost->seconds, 1e-3 + 2e-6 + 2 * partition::kBorderSeconds, 1e-10);
  options.threads = 2;
  EXPECT_THAT(kit::user_error_of([&] { explain(profiled_model(), options); }),
              HasSubstr("the costs are of 1 thread(s) on "));
  options.costs = costs_file("{\n  oops\n}");
  EXPECT_THAT(kit::user_error_of([&] { explain(profiled_model(), options); }), HasSubstr("parse error at line 2"));
}

}  // namespace
}  // namespace headrace::driver
