// Tests EliminateCommonSubexpr: attributes, branches, and its option.
#include "kit/errors.h"
#include "object/function.h"
#include "passes/tests/pass_testing.h"

namespace headrace::passes {
namespace {

TEST(EliminateCommonSubexpr, DifferentAttributesStay) {
  const IRModule before = read("def @main(%x: Tensor[(2, 2), float32]) { (sum(%x, axis=[0]), sum(%x, axis=[1])) }");
  EXPECT_EQ(run_pass("EliminateCommonSubexpr", before)->lookup("main"), before->lookup("main"));
}

// Keeps one of the equal calls in a block and in the branches inside it, earlier ones included. Calls in two branches
// stay two. One run is enough.
TEST(EliminateCommonSubexpr, CallsInAndAroundBranches) {
  const auto left = [](const std::string& body) {
    const IRModule before = read("def @main(%c: bool, %d: bool, %x: Tensor[(3), float32]) {\n" + body + "\n}");
    const IRModule after = run_pass("EliminateCommonSubexpr", before);
    for (const bool c : {false, true}) {
      for (const bool d : {false, true}) {
        const std::vector<NDArray> args{NDArray::from_vector<uint8_t>({}, DataType::bool_(), {uint8_t{c}}),
                                        NDArray::from_vector<uint8_t>({}, DataType::bool_(), {uint8_t{d}}),
                                        ramp({3}, 1)};
        expect_same_results(before, after, args, 0);
      }
    }
    EXPECT_EQ(run_pass("EliminateCommonSubexpr", after), after) << body;
    return count_calls(after, "exp");
  };
  const std::string four =
      "if (%c) { if (%d) { exp(%x) } else { abs(exp(%x)) } }"
      " else { if (%d) { tanh(exp(%x)) } else { negative(exp(%x)) } }";
  EXPECT_EQ(left(four), 4);
  EXPECT_EQ(left("(" + four + ", exp(%x))"), 1);
  EXPECT_EQ(left("(exp(%x), " + four + ")"), 1);
  EXPECT_EQ(left("if (%c) { (" + four + ", exp(%x)).0 } else { exp(%x) }"), 2);
  EXPECT_EQ(left("(" + four + ", if (%d) { exp(%x) } else { exp(%x) })"), 6);
  EXPECT_EQ(left("if (%c) { add(if (%d) { exp(%x) } else { abs(exp(%x)) }, exp(%x)) }"
                 " else { if (%d) { exp(%x) } else { abs(%x) } }"),
            2);
  // Calls of merged values, and items of ops with several results, are found equal in the same run.
  EXPECT_EQ(left("(if (%c) { exp(abs(exp(%x))) } else { negative(exp(abs(exp(%x)))) }, exp(abs(exp(%x))))"), 2);
  EXPECT_EQ(left("(if (%c) { exp(split(%x, indices_or_sections=3).0) } else { exp(split(%x, "
                 "indices_or_sections=3).0) }, exp(split(%x, indices_or_sections=3).0))"),
            1);
}

// Operands that are tuples are equal by their fields; a field more or another order makes another call.
TEST(EliminateCommonSubexpr, CallsOfEqualTuples) {
  const auto left = [](const std::string& results) {
    const IRModule before = read("def @main(%x: Tensor[(2), float32], %y: Tensor[(2), float32]) { (" + results + ") }");
    const IRModule after = run_pass("EliminateCommonSubexpr", before);
    expect_same_results(before, after, {ramp({2}, 1), ramp({2}, 2)}, 0);
    return count_calls(after, "concatenate");
  };
  EXPECT_EQ(left("concatenate((exp(%x), %y)), concatenate((exp(%x), %y))"), 1);
  EXPECT_EQ(left("concatenate((%x, %y)), concatenate((%y, %x))"), 2);
  EXPECT_EQ(left("concatenate((%x, %y)), concatenate((%x, %y, %y))"), 2);
  EXPECT_EQ(left("concatenate((%x, %y)), concatenate((%x, %y), axis=-1)"), 2);
}

TEST(EliminateCommonSubexpr, LeavesWhatItsOptionSkips) {
  const std::string text = "def @main(%x: float32) { (exp(%x), exp(%x), abs(%x), abs(%x)) }";
  const auto count = [&](const Value& skip) {
    const IRModule after =
        run_pass("EliminateCommonSubexpr", read(text), with_option("relay.EliminateCommonSubexpr.fskip", skip));
    int64_t calls = 0;
    relay::post_order(after->lookup("main"), [&](const Expr& e) { calls += e.is<relay::CallNode>(); });
    return calls;
  };
  const auto is_exp = [](const Expr& e) { return e.as<relay::CallNode>()->as_op()->name == "exp"; };
  EXPECT_EQ(count(Value(make_packed(is_exp))), 3);
  EXPECT_EQ(count(Value(make_packed([](const Expr&) { return false; }))), 2);
  EXPECT_TRUE(kit::user_error_of([&] {
                count(Value(make_packed([](const Expr&) { return "maybe"; })));
              }).starts_with("fskip gives \"maybe\", which is not a bool\n"));
}

}  // namespace
}  // namespace headrace::passes
