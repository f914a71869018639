#include "tools/headrace/bisection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace headrace::tools {
namespace {

using ::testing::HasSubstr;

// A plan of ops 0, 1, ...; every third is native.
partition::Plan plan_of(int num_ops) {
  partition::Plan plan;
  for (int i = 0; i < num_ops; ++i)
    plan.ops.push_back({.name = fmt::format("op{}", i), .kind = "add", .backend = i % 3 == 2 ? "native" : "chip"});
  return plan;
}

// Whether all of some ops are on the backend.
bool are_on_chip(const partition::Plan& plan, const std::set<std::string>& names) {
  size_t count = 0;
  for (const partition::PlannedOp& op : plan.ops) count += op.backend == "chip" && names.contains(op.name) ? 1 : 0;
  return count == names.size();
}

Bisection find(const partition::Plan& plan, const std::set<std::string>& wrong_together) {
  return bisect(plan, [&](const partition::Plan& tried) { return !are_on_chip(tried, wrong_together); });
}

TEST(Bisection, EveryOpIsFound) {
  const partition::Plan plan = plan_of(100);
  for (const partition::PlannedOp& op : plan.ops) {
    if (op.backend == "native") continue;
    const Bisection found = find(plan, {op.name});
    ASSERT_TRUE(found.guilty) << op.name;
    EXPECT_EQ(found.guilty->name, op.name);
    EXPECT_EQ(found.guilty->kind, "add");
    EXPECT_EQ(found.guilty->backend, "chip");
    EXPECT_TRUE(found.guilty->is_guilty_alone);
    EXPECT_LE(found.num_compiles, 10);  // log2(67) is 6.07, and three
  }
}

TEST(Bisection, AnOpThatIsWrongInCompanyAlone) {
  const Bisection found = find(plan_of(40), {"op4", "op30"});
  ASSERT_TRUE(found.guilty);
  EXPECT_EQ(found.guilty->name, "op30");
  EXPECT_FALSE(found.guilty->is_guilty_alone);
  EXPECT_THAT(explain(found),
              HasSubstr("the error is caused by add at op30, computed by chip: with this op and those before it"));
}

TEST(Bisection, NoBackendIsToBlameWhereNativeIsWrong) {
  const Bisection found = find(plan_of(40), {});
  EXPECT_FALSE(found.guilty);
  EXPECT_EQ(found.num_compiles, 1);
  EXPECT_EQ(explain(found), "the error is above the limit with all ops native, too, so no backend causes it");
}

TEST(Bisection, OpsWithoutANativeFormStay) {
  partition::Plan plan = plan_of(2);
  plan.ops[0].backend = "external";
  const Bisection found = bisect(plan, [](const partition::Plan& tried) {
    EXPECT_EQ(tried.ops[0].backend, "external");
    return tried.ops[1].backend == "native";
  });
  ASSERT_TRUE(found.guilty);
  EXPECT_EQ(found.guilty->name, "op1");
}

TEST(Bisection, APlanWithoutBackends) {
  const Bisection found = bisect({}, [](const partition::Plan&) { return false; });
  EXPECT_FALSE(found.guilty);
  EXPECT_THAT(explain(found), HasSubstr("cannot be found: placed by itself, none of its ops goes to a backend"));
}

// As a region that is wrong only beside another one: no op is accused that was not seen to be wrong.
TEST(Bisection, APlanThatIsRight) {
  for (const int num_ops : {1, 2, 40}) {
    const Bisection found = bisect(plan_of(num_ops), [](const partition::Plan&) { return true; });
    EXPECT_FALSE(found.guilty);
    EXPECT_THAT(explain(found), HasSubstr("cannot be found: compiled by itself it is right"));
  }
}

TEST(Bisection, AFailureIsSaid) {
  EXPECT_EQ(explain({.failure = "it has no text"}), "the op that causes the error cannot be found: it has no text");
}

}  // namespace
}  // namespace headrace::tools
