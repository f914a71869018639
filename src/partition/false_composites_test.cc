#include "partition/false_composites.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver/register_all.h"
#include "partition/tests/region_testing.h"
#include "relay/composites.h"
#include "relay/infer/infer_type.h"
#include "relay/visit.h"

namespace headrace::partition {
namespace {

using ::testing::ElementsAre;

// Returns the calls of a function, operands first: ops, and composite functions by their names.
std::vector<std::string> calls_of(const relay::Function& function) {
  std::vector<std::string> calls;
  relay::post_order(
      function->body, [](const Expr& expr) { return !expr.is<relay::FunctionNode>(); },
      [&](const Expr& expr) {
        const auto* call = expr.as<relay::CallNode>();
        if (call == nullptr) return;
        EXPECT_TRUE(expr->has_checked_type());
        const auto* composite = relay::called_composite(*call);
        calls.push_back(composite == nullptr ? call->as_op()->name : relay::composite_name(*composite));
      });
  return calls;
}

std::vector<std::string> calls_with(const std::string& body, const std::string& name = "a.sum") {
  driver::register_all();
  const std::string type = "Tensor[(2, 3), float32]";
  const IRModule module =
      relay::infer_type(read_program(fmt::format("def @main(%x: {0}, %y: {0}) {{\n"
                                                 "  %0 = fn (%p: {0}, %q: {0}, Composite=\"{2}\") {{ {1} }};\n"
                                                 "  subtract(%0(%x, %y), %0(%y, tanh(%x)))\n}}\n",
                                                 type, body, name)));
  const PatternTable table(Value(std::string("{ a.sum: add(exp(_), _) }")));
  return calls_of(without_false_composites(module->lookup("main").cast<relay::FunctionNode>(), table.entries()));
}

TEST(FalseComposites, ThePatternOfTheNameStays) {
  EXPECT_THAT(calls_with("add(exp(%p), %q)"), ElementsAre("a.sum", "tanh", "a.sum", "subtract"));
  EXPECT_THAT(calls_with("tanh(%p)", "a.other"), ElementsAre("a.other", "tanh", "a.other", "subtract"));
}

TEST(FalseComposites, AnotherBodyTakesThePlaceOfEachCall) {
  EXPECT_THAT(calls_with("add(abs(%p), %q)"), ElementsAre("abs", "add", "abs", "tanh", "add", "subtract"));
  EXPECT_THAT(calls_with("exp(%p)"), ElementsAre("exp", "exp", "subtract"));
  EXPECT_THAT(calls_with("add(exp(exp(%p)), %q)"),
              ElementsAre("exp", "exp", "add", "exp", "exp", "tanh", "add", "subtract"));
  EXPECT_THAT(calls_with("tanh(add(exp(%p), %q))"),
              ElementsAre("exp", "add", "tanh", "exp", "tanh", "add", "tanh", "subtract"));
  EXPECT_THAT(calls_with("%q"), ElementsAre("tanh", "subtract"));
}

}  // namespace
}  // namespace headrace::partition
