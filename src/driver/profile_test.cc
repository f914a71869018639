// Measuring the calls of a model, and placing it by what was measured.
#include "driver/profile.h"

#include <gmock/gmock.h>

#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/architecture.h"
#include "driver/cost_cache.h"
#include "driver/explain.h"
#include "driver/register_all.h"
#include "kit/backends.h"
#include "kit/errors.h"
#include "plan/static_main_tables.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"

namespace headrace::driver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kProfiled =
    "def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(2, 3), float32]) {\n"
    "  nn.softmax(add(add(%x, 1f), %y)) }\n";

Model model_of(const std::string& text) {
  register_all();
  return make_model(relay::infer_type(relay::parse_module("#[version = \"0.0.5\"]\n" + text)));
}

Model profiled_model() { return model_of(kProfiled); }

// Plans of least cost are tried only where they are other ones than these, which depends on the machine.
void drop_tried_plans(partition::CostTable& table) {
  std::erase_if(table.plans,
                [](const auto& plan) { return plan.first.second.find(partition::kByCost) != std::string::npos; });
}

// Returns the names of the whole plans, which are all of one model.
std::vector<std::string> plans_of(const partition::CostTable& table) {
  std::vector<std::string> names;
  for (const auto& [key, cost] : table.plans) {
    EXPECT_EQ(key.first.size(), 32u);
    EXPECT_EQ(key.first, table.plans.begin()->first.first);
    EXPECT_GT(cost.seconds, 0) << key.second;
    names.push_back(key.second);
  }
  return names;
}

// Returns a variable of the environment; empty where it is not set.
std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string costs_file(const std::string& text) {
  const std::string path = testing::TempDir() + "/profile_test_costs.json";
  std::ofstream(path) << text;
  return path;
}

TEST(Profile, EachDifferentCallIsTimedOnce) {
  if (const std::string why = kit::why_without("ccompiler"); !why.empty()) GTEST_SKIP() << why;
  size_t calls = 0;
  const partition::CostTable table =
      profile(profiled_model(), {.jobs = 1, .backends = {"ccompiler"}},
              {.rounds = 2, .progress = [&](std::string_view, size_t, size_t count) { calls = count; }});
  EXPECT_EQ(calls, 5u);  // whole plans, an add of a constant, an add of two tensors, a softmax, the plan of least cost
  EXPECT_EQ(table.costs.size(), 5u);  // ccompiler has no softmax
  EXPECT_EQ(table.threads, 1);
  for (const auto& [key, cost] : table.costs) {
    EXPECT_GT(cost.seconds, 0) << key.first;
    EXPECT_EQ(cost.version, key.second == "native" ? HEADRACE_VERSION : "1");
  }
}

TEST(Profile, WholePlansAreTimed) {
  const auto plans_with = [](const std::vector<std::string>& backends) {
    partition::CostTable table = profile(profiled_model(), {.jobs = 1, .backends = backends}, {.rounds = 2});
    drop_tried_plans(table);
    return plans_of(table);
  };
  EXPECT_THAT(plans_with({}), ElementsAre("native"));
  EXPECT_THAT(plans_with({"ccompiler"}), ElementsAre("ccompiler", "native"));
  // ccompiler takes all calls that examplejson takes, and one more.
  EXPECT_THAT(plans_with({"ccompiler", "examplejson"}),
              ElementsAre("ccompiler", "ccompiler,examplejson", "examplejson", "native"));
  EXPECT_THAT(plans_with({"examplejson", "ccompiler"}),
              ElementsAre("ccompiler", "examplejson", "examplejson,ccompiler", "native"));
}

TEST(Profile, AnIdleBackendHasTheTimeOfNativeCode) {
  const partition::CostTable table = profile(model_of("def @main(%x: Tensor[(2, 3), float32]) { nn.softmax(%x) }"),
                                             {.jobs = 1, .backends = {"ccompiler"}}, {.rounds = 2});
  ASSERT_THAT(plans_of(table), ElementsAre("ccompiler", "native"));
  const std::string& model = table.plans.begin()->first.first;
  EXPECT_EQ(table.find_plan(model, "ccompiler")->seconds, table.find_plan(model, "native")->seconds);
  EXPECT_EQ(table.find_plan(model, "ccompiler")->version, "1");
  EXPECT_EQ(table.find_plan(model, "native")->version, HEADRACE_VERSION);
}

// Placement does not know what such a region takes, so the sums of calls cannot be scaled to the whole.
TEST(Profile, ProgramsThatMarkRegionsHaveNoWholePlans) {
  const Model model = model_of(
      "def @f(%a: Tensor[(4), float32], Compiler=\"ccompiler\", global_symbol=\"f\") { add(%a, %a) }\n"
      "def @main(%x: Tensor[(4), float32]) { nn.relu(@f(%x)) }");
  const partition::CostTable table = profile(model, {.jobs = 1, .backends = {"ccompiler"}}, {.rounds = 1});
  EXPECT_THAT(plans_of(table), IsEmpty());
  EXPECT_EQ(table.costs.size(), 2u) << "nn.relu natively and by ccompiler";
}

// Native code is compiled without the backends, however they are named, and without their options.
TEST(Profile, BackendsOfTheTargetAndTheirOptions) {
  CompileOptions options{.target = parse_target("llvm -extern=ccompiler"), .jobs = 1};
  options.backend_options["ccompiler"].set("cc", Value(std::string("cc")));
  partition::CostTable table = profile(profiled_model(), options, {.rounds = 1});
  drop_tried_plans(table);
  EXPECT_THAT(plans_of(table), ElementsAre("ccompiler", "native"));
  EXPECT_EQ(table.costs.size(), 5u);
}

TEST(Profile, TargetsOfOtherMachinesAreRefused) {
  const std::string other = kHostArchitecture == "x86_64" ? "aarch64" : "x86_64";
  if (plan::static_main_object(other).empty()) GTEST_SKIP() << "the build found no compiler for " << other;
  const CompileOptions options{.target = parse_target("llvm -mtriple=" + other + "-linux-gnu")};
  EXPECT_THAT(kit::user_error_of([&] { profile(profiled_model(), options, {}); }),
              HasSubstr("profile on a machine of the target's architecture"));
}

// The add of a constant is slow by ccompiler, the other one fast, so a plan that no list of backends makes costs least.
TEST(Profile, ThePlanOfLeastCostIsTriedOnce) {
  if (const std::string why = kit::why_without("ccompiler"); !why.empty()) GTEST_SKIP() << why;
  CompileOptions options{.jobs = 1, .backends = {"ccompiler"}, .placement = Placement::cost};
  partition::CostTable known = profile(profiled_model(), options, {.rounds = 1});
  drop_tried_plans(known);
  for (auto& [key, cost] : known.costs) {
    const bool is_of_constant = key.first.find("%c") != std::string::npos;
    cost.seconds = key.second == "native" ? 1e-3 : (is_of_constant ? 5e-3 : 1e-6);
  }
  for (auto& [key, cost] : known.plans) cost.seconds = key.second == "native" ? 3e-3 : 4e-3;
  const partition::CostTable tried = profile(profiled_model(), options, {.rounds = 1, .known = &known});
  EXPECT_TRUE(tried.costs.empty());
  ASSERT_THAT(plans_of(tried), ElementsAre(::testing::StartsWith("ccompiler by cost ")));
  EXPECT_EQ(tried.plans.begin()->second.version, "1");
  known.plans.insert(tried.plans.begin(), tried.plans.end());
  EXPECT_THAT(plans_of(profile(profiled_model(), options, {.rounds = 1, .known = &known})), IsEmpty());
  options.costs = costs_file(partition::to_json(known));
  EXPECT_NEAR(explain(profiled_model(), options).plan_cost->tried.value_or(0), tried.plans.begin()->second.seconds,
              1e-9);
}

TEST(Profile, PlacementReadsTheFile) {
  if (const std::string why = kit::why_without("ccompiler"); !why.empty()) GTEST_SKIP() << why;
  CompileOptions options{.jobs = 1, .backends = {"ccompiler"}, .placement = Placement::cost};
  partition::CostTable table = profile(profiled_model(), options, {.rounds = 1});
  for (auto& [key, cost] : table.costs) cost.seconds = key.second == "native" ? 1e-3 : 1e-6;
  table.plans.clear();
  options.costs = costs_file(partition::to_json(table));
  const Explanation explained = explain(profiled_model(), options);
  EXPECT_EQ(explained.plan_cost->source, fmt::format("measured ({})", options.costs));
  ASSERT_EQ(explained.placement.size(), 3u);
  EXPECT_EQ(explained.placement[0].backend, "ccompiler");
  EXPECT_EQ(explained.placement[2].backend, "native");
  EXPECT_NEAR(explained.plan_cost->seconds, 1e-3 + 2e-6 + 2 * partition::kBorderSeconds, 1e-10);
  options.threads = 2;
  EXPECT_THAT(kit::user_error_of([&] { explain(profiled_model(), options); }),
              HasSubstr("the costs are of 1 thread on "));
  options.costs = costs_file("{\n  oops\n}");
  EXPECT_THAT(kit::user_error_of([&] { explain(profiled_model(), options); }),
              HasSubstr("costs.json:2:3: a key in quotes should be here"));
}

// Counts how often a file is opened, by the kernel's events.
class OpenCounter {
 public:
  explicit OpenCounter(const std::string& path) : events_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    EXPECT_GE(inotify_add_watch(events_, path.c_str(), IN_OPEN | IN_CLOSE), 0);
  }
  ~OpenCounter() { ::close(events_); }
  OpenCounter(const OpenCounter&) = delete;
  OpenCounter& operator=(const OpenCounter&) = delete;

  // The kernel joins equal events that follow each other unread; the close between two opens is watched, too.
  int count() const {
    alignas(inotify_event) char buffer[4096];
    int opened = 0;
    for (ssize_t size; (size = ::read(events_, buffer, sizeof buffer)) > 0;) {
      for (ssize_t at = 0; at < size; at += static_cast<ssize_t>(sizeof(inotify_event))) {
        const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
        opened += (event->mask & IN_OPEN) != 0 ? 1 : 0;
      }
    }
    return opened;
  }

 private:
  int events_;
};

// The file may be replaced during a compile: its costs and the hash that the plan names must be those of one text.
TEST(Profile, PlacementReadsTheFileOnce) {
  if (const std::string why = kit::why_without("ccompiler"); !why.empty()) GTEST_SKIP() << why;
  CompileOptions options{.jobs = 1, .backends = {"ccompiler"}, .placement = Placement::cost};
  options.costs = costs_file(partition::to_json(profile(profiled_model(), options, {.rounds = 1})));
  const OpenCounter opened(options.costs);
  const Explanation explained = explain(profiled_model(), options, true);
  EXPECT_FALSE(explained.plan->costs_hash.empty());
  EXPECT_EQ(opened.count(), 1);
  std::ifstream again(options.costs);
  again.close();
  std::ifstream(options.costs).close();
  EXPECT_EQ(opened.count(), 2) << "the counter counts";
}

// Costs are kept in a folder of its own, as long as the test runs.
class KeptCostsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = kit::why_without("ccompiler"); !why.empty()) GTEST_SKIP() << why;
    std::filesystem::remove_all(folder_);
    ::setenv("HEADRACE_CACHE", folder_.c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("HEADRACE_CACHE");
    std::filesystem::remove_all(folder_);
  }
  static KeptCosts keep(const Model& model, bool again = false) {
    return profile_into_cache(model, {.jobs = 1, .backends = {"ccompiler"}}, {.rounds = 1}, again);
  }
  static Explanation explain_by_cache(int threads = 0) {
    return explain(
        profiled_model(),
        {.threads = threads, .jobs = 1, .backends = {"ccompiler"}, .placement = Placement::cost, .costs = "cache"});
  }
  static partition::CostTable read(const std::string& path) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return partition::parse_cost_table({.text = text.str(), .name = path});
  }

  const std::filesystem::path folder_ = std::filesystem::path(testing::TempDir()) / "kept_costs_test";
};

TEST_F(KeptCostsTest, ACallOfSeveralModelsIsMeasuredOnce) {
  const KeptCosts first = keep(profiled_model());
  EXPECT_EQ(first.num_measured, 5u);
  EXPECT_EQ(first.num_kept, 5u);
  EXPECT_EQ(std::filesystem::path(first.path).parent_path(), folder_ / "costs");
  EXPECT_EQ(std::filesystem::status(folder_ / "costs").permissions(), std::filesystem::perms::owner_all);
  EXPECT_EQ(keep(profiled_model()).num_measured, 0u);
  // The softmax is known; the multiply is measured natively and by ccompiler.
  const KeptCosts other = keep(model_of("def @main(%x: Tensor[(2, 3), float32]) { nn.softmax(multiply(%x, %x)) }"));
  EXPECT_EQ(other.num_measured, 2u);
  EXPECT_EQ(other.num_kept, 7u);
  partition::CostTable kept = read(first.path);
  drop_tried_plans(kept);
  EXPECT_EQ(kept.plans.size(), 4u) << "native code and ccompiler, of each model";
}

TEST_F(KeptCostsTest, AreMeasuredAgainWhereItIsAskedFor) {
  partition::CostTable table = read(keep(profiled_model()).path);
  for (auto& [key, cost] : table.costs) cost.seconds = 100;
  std::ofstream(keep(profiled_model()).path) << partition::to_json(table);
  EXPECT_EQ(keep(profiled_model()).num_measured, 0u);
  const KeptCosts again = keep(profiled_model(), true);
  EXPECT_EQ(again.num_measured, 5u);
  for (const auto& [key, cost] : read(again.path).costs) EXPECT_LT(cost.seconds, 100) << key.first;
}

// Other backends may be measured by a process that knows them.
TEST_F(KeptCostsTest, OfOtherVersionsAreDropped) {
  const std::string path = keep(profiled_model()).path;
  partition::CostTable table = read(path);
  for (auto& [key, cost] : table.costs) cost.version = key.second == "ccompiler" ? "an older one" : cost.version;
  for (auto& [key, cost] : table.plans) cost.version = key.second == "ccompiler" ? "an older one" : cost.version;
  table.costs[{"some call", "some_chip"}] = {"7", 1e-6};
  std::ofstream(path) << partition::to_json(table);
  EXPECT_THAT(explain_by_cache().plan_cost->source, HasSubstr("measured")) << "what is left of them";
  EXPECT_EQ(keep(profiled_model()).num_measured, 4u) << "two adds, each natively and by ccompiler";
  EXPECT_EQ(read(path).costs.count({"some call", "some_chip"}), 1u);
  for (const auto& [key, cost] : read(path).costs) EXPECT_NE(cost.version, "an older one") << key.first;
  for (const auto& [key, cost] : read(path).plans) EXPECT_NE(cost.version, "an older one") << key.second;
}

TEST_F(KeptCostsTest, PlacementReadsThem) {
  EXPECT_THAT(kit::user_error_of([&] { explain_by_cache(); }), HasSubstr("measure some by headrace profile MODEL"));
  const std::string path = keep(profiled_model()).path;
  partition::CostTable table = read(path);
  for (auto& [key, cost] : table.costs) cost.seconds = key.second == "native" ? 1e-3 : 1e-6;
  table.plans.clear();
  std::ofstream(path) << partition::to_json(table);
  const Explanation explained = explain_by_cache();
  EXPECT_EQ(explained.plan_cost->source, fmt::format("measured ({})", path));
  EXPECT_EQ(explained.placement[0].backend, "ccompiler");
  EXPECT_THAT(kit::user_error_of([&] { explain_by_cache(2); }), HasSubstr("2 threads"));
}

// Nothing that was measured is lost where the file cannot be read, and nothing is measured before that is known.
TEST_F(KeptCostsTest, FilesThatAreNotTablesStay) {
  const std::string path = keep(profiled_model()).path;
  const auto refusal = [&] { return kit::user_error_of([&] { keep(profiled_model()); }); };
  for (const char* text : {"{ oops", "{\"headrace_costs\": 4}"}) {
    std::ofstream(path) << text;
    EXPECT_THAT(refusal(), HasSubstr("; remove the file to keep costs anew")) << text;
    std::stringstream left;
    left << std::ifstream(path).rdbuf();
    EXPECT_EQ(left.str(), text);
  }
  EXPECT_THAT(kit::user_error_of([&] { explain_by_cache(); }), HasSubstr("costs"));
  std::filesystem::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(refusal(), HasSubstr("is not a file; costs are kept there"));
  std::filesystem::remove(path);
  std::filesystem::create_symlink(path, path);
  EXPECT_THAT(refusal(), HasSubstr("Too many levels of symbolic links"));
  std::filesystem::remove(path);
  EXPECT_EQ(keep(profiled_model()).num_measured, 5u);
}

TEST_F(KeptCostsTest, OfTheThreadsThatTheTargetNames) {
  CompileOptions options{.target = parse_target("llvm -num-cores=2"), .jobs = 1, .backends = {"ccompiler"}};
  const KeptCosts kept = profile_into_cache(profiled_model(), options, {.rounds = 1}, false);
  EXPECT_THAT(kept.path, ::testing::EndsWith("-2.json"));
  options.placement = Placement::cost;
  options.costs = kCachedCosts;
  EXPECT_EQ(explain(profiled_model(), options).plan_cost->source, fmt::format("measured ({})", kept.path));
}

TEST_F(KeptCostsTest, AFolderThatCannotBeMadeIsAnError) {
  std::ofstream(folder_) << "a file";
  EXPECT_THAT(kit::user_error_of([&] { keep(profiled_model()); }), HasSubstr("cannot make the folder for costs"));
  ::unsetenv("HEADRACE_CACHE");
  const std::map<std::string, std::string> homes{{"XDG_CACHE_HOME", variable("XDG_CACHE_HOME")},
                                                 {"HOME", variable("HOME")}};
  for (const auto& [name, value] : homes) ::unsetenv(name.c_str());
  EXPECT_THAT(kit::user_error_of([&] { cost_cache_path("x", 1); }), HasSubstr("there is no folder for costs"));
  ::setenv("HOME", "/home/somebody", 1);
  EXPECT_EQ(cost_cache_path("x", 1), "/home/somebody/.cache/headrace/costs/x-1.json");
  ::setenv("XDG_CACHE_HOME", "/caches", 1);
  EXPECT_EQ(cost_cache_path("x", 2), "/caches/headrace/costs/x-2.json");
  for (const auto& [name, value] : homes)
    value.empty() ? ::unsetenv(name.c_str()) : ::setenv(name.c_str(), value.c_str(), 1);
}

// The plans of the table are for one model, with any weights of the same shapes.
TEST(Profile, PlacementScalesCostsToWholePlans) {
  register_all();
  const auto model_with = [](const std::string& op, float last) {
    std::vector<float> weights(32, 1);
    weights.back() = last;
    const relay::Constant weight = relay::make_constant(NDArray::from_vector({32}, DataType::float_(32), weights));
    const relay::Var x = relay::make_var("x", make_tensor_type({32}, DataType::float_(32)));
    return make_model(relay::infer_type(make_module(relay::make_function({x}, relay::make_call(op, {x, weight})))));
  };
  CompileOptions options{.jobs = 1, .backends = {"ccompiler"}, .placement = Placement::cost};
  partition::CostTable table = profile(model_with("add", 1), options, {.rounds = 1});
  ASSERT_EQ(table.costs.size(), 2u);
  for (auto& [key, cost] : table.costs) cost.seconds = key.second == "native" ? 1e-3 : 1.1e-3;
  for (auto& [key, cost] : table.plans) cost.seconds = key.second == "native" ? 0.8e-3 : 0.7e-3;
  options.costs = costs_file(partition::to_json(table));
  for (const float last : {1.0F, 2.0F}) {
    const Explanation explained = explain(model_with("add", last), options);
    ASSERT_EQ(explained.plan_cost->scales.size(), 2u);
    EXPECT_DOUBLE_EQ(explained.plan_cost->scales[0].factor, 0.8);
    EXPECT_NEAR(explained.plan_cost->scales[1].factor, 0.7e-3 / (1.1e-3 + partition::kBorderSeconds), 1e-9);
    EXPECT_EQ(explained.placement[0].backend, "ccompiler");
    EXPECT_NEAR(explained.plan_cost->seconds, 0.7e-3, 1e-10);
  }
  const Explanation other = explain(model_with("subtract", 1), options);
  EXPECT_TRUE(other.plan_cost->scales.empty());
}

}  // namespace
}  // namespace headrace::driver
