#include "passes/fuse/fuse_ops.h"

#include "kit/errors.h"
#include "kit/options.h"
#include "object/structural_equal.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/join.h"
#include "ops/tensor/shape.h"
#include "passes/pipeline.h"
#include "passes/tests/pass_testing.h"
#include "relay/function_attrs.h"
#include "relay/visit.h"

namespace headrace::passes {
namespace {

using relay::CallNode;
using relay::FunctionNode;

// The functions of the groups, as they are met; they live as long as the module.
std::vector<const FunctionNode*> groups_of(const IRModule& module) {
  std::vector<const FunctionNode*> groups;
  relay::post_order(module->lookup("main"), [&](const Expr& e) {
    const auto* function = e.as<FunctionNode>();
    if (function != nullptr && relay::is_primitive(*function)) groups.push_back(function);
  });
  return groups;
}

size_t num_op_calls(const Expr& body) {
  size_t count = 0;
  relay::post_order(body, [&](const Expr& e) {
    const auto* call = e.as<CallNode>();
    count += call != nullptr && call->as_op() != nullptr ? 1 : 0;
  });
  return count;
}

const char* kChain =
    "def @main(%x: Tensor[(4), float32]) { nn.relu(exp(negative(tanh(concatenate((%x, abs(%x)))))))  }";

TEST(FuseOps, DepthOneGivesEveryOpItsOwnGroup) {
  const IRModule before = read(kChain);
  pass::PassContext context = typed_context();
  context.config.set("relay.FuseOps.max_depth", Value(1));
  for (int round = 0; round < 2; ++round) {
    const IRModule after = run_pass("FuseOps", before, context);
    const auto groups = groups_of(after);
    ASSERT_EQ(groups.size(), 6u);
    for (const FunctionNode* group : groups) EXPECT_EQ(num_op_calls(group->body), 1u);
    expect_same_results(before, after, {ramp({4}, -0.5f)}, 0);
    context = typed_context();
    context.opt_level = 0;  // means the same
  }
}

// The compiler's lists drop lets before FuseOps, which joins nothing across a let. The chain is long enough that work
// that is quadratic in its length, or recursion over it, would show.
TEST(FuseOps, LetsOfTheCompilersListsDoNotSeparateGroups) {
  const int count = kit::by_depth(30000);
  std::string text = "def @main(%v: Tensor[(4), float32]) {";
  for (int i = 0; i < count; ++i)
    text +=
        fmt::format("let %v{} = {}(%v{});\n", i, i % 2 == 0 ? "tanh" : "negative", i == 0 ? "" : fmt::to_string(i - 1));
  const IRModule before = read(text + fmt::format("%v{} }}", count - 1));
  IRModule after = before;
  for (const auto& list : {canonical(), native({})}) after = pass::run_passes(list, after, typed_context());
  const auto groups = groups_of(after);
  constexpr int kDepth = 256;  // FuseOptions::max_depth
  EXPECT_EQ(groups.size(), static_cast<size_t>((count + kDepth - 1) / kDepth));
  expect_same_results(before, after, {ramp({4}, -0.5f)}, 0);
}

// A value that is bound and used twice is computed once, in the group of both uses.
TEST(FuseOps, AValueThatALetSharesIsComputedOnce) {
  IRModule after =
      read("def @main(%x: Tensor[(4), float32]) { let %a = exp(%x); let %b = add(%a, %a); multiply(%a, %b) }");
  for (const auto& list : {canonical(), native({})}) after = pass::run_passes(list, after, typed_context());
  const auto groups = groups_of(after);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(num_op_calls(groups[0]->body), 3u);
}

TEST(FuseOps, DepthLimitsTheGroup) {
  pass::PassContext context = typed_context();
  context.config.set("relay.FuseOps.max_depth", Value(4));
  const IRModule after = run_pass("FuseOps", read(kChain), context);
  const auto groups = groups_of(after);
  ASSERT_EQ(groups.size(), 2u);  // a call's function comes before its arguments
  EXPECT_EQ(num_op_calls(groups[0]->body), 4u);
  EXPECT_EQ(num_op_calls(groups[1]->body), 2u);
}

TEST(FuseOps, ConfigurationIsChecked) {
  pass::PassContext context = typed_context();
  context.config.set("relay.FuseOps.max_depth", Value("deep"));
  try {
    run_pass("FuseOps", read(kChain), context);
    FAIL() << "no error";
  } catch (const UserError& e) {
    EXPECT_NE(e.message().find("configuration 'relay.FuseOps.max_depth': expected int, got str"), std::string::npos)
        << e.what();
  }
}

TEST(FuseOps, ASecondRunChangesNothing) {
  const IRModule once = run_pass("FuseOps", read(kChain));
  EXPECT_EQ(run_pass("FuseOps", once), once);
}

TEST(FuseOps, EverythingIsTypedAndTheTextReadsBack) {
  const IRModule fused = fuse_ops(read(kChain));
  relay::verify(fused);
  relay::post_order(main_of(fused).body, [](const Expr& e) {
    EXPECT_TRUE(e.is<OpNode>() || e->has_checked_type()) << relay::print_expr(e);
  });
  const IRModule again = relay::infer_type(relay::parse_module(relay::print_module(fused)));
  EXPECT_TRUE(structural_equal(Value(fused), Value(again)));
}

TEST(FuseOps, SymbolicShapesFuse) {
  const IRModule after = run_pass("FuseOps", read("def @main(%x: Tensor[(n, 3), float32], %y: Tensor[(n, 3), float32]) "
                                                  "{ nn.relu(add(exp(%x), %y)) }"));
  EXPECT_EQ(groups_of(after).size(), 1u);
  const IRModule again = relay::infer_type(relay::parse_module(relay::print_module(after)));
  EXPECT_TRUE(structural_equal(Value(after), Value(again)));
}

TEST(FuseOps, TheCallHasThePlaceOfTheAnchor) {
  const IRModule after =
      run_pass("FuseOps", read("def @main(%x: Tensor[(1, 4), float32], %w: Tensor[(2, 4), float32]) {\n"
                               "  %0 = nn.dense(%x,\n %w);\n  nn.relu(\n%0)\n}"));
  const Span& span = main_of(after).body->span;
  EXPECT_EQ(span->line, 3) << to_string(span);
}

TEST(FuseOps, LongChainsAndManySkipsAreQuick) {
  ops::register_all_ops();
  const auto x = relay::make_var("x", make_tensor_type({2}, DataType::float_(32)));
  std::vector<Expr> values{x};
  Expr last = x;
  const auto length = static_cast<size_t>(kit::by_depth(30'000));
  for (size_t i = 0; i < length; ++i) {
    last = ops::unary("negative", last);
    values.push_back(last);
  }
  // Nested skips: value i meets value length - i again.
  for (size_t i = 0; i < length; ++i) last = relay::make_call("add", {last, values[length - i]});
  const IRModule module = relay::infer_type(make_module(relay::make_function({x}, last)));
  const IRModule fused = fuse_ops(module);
  relay::verify(fused);
  EXPECT_LT(groups_of(fused).size(), length + 1000);
}

TEST(FuseOps, AGroupHasSoManyTensorsAround) {
  const IRModule module = read(
      "def @main(%x: Tensor[(4), float32], %a: Tensor[(4), float32], %b: Tensor[(4), float32],"
      " %c: Tensor[(4), float32], %d: Tensor[(4), float32], %e: Tensor[(4), float32]) {\n"
      "  nn.relu(add(add(add(add(add(%x, %a), %b), %c), %d), %e))\n}");
  EXPECT_EQ(groups_of(fuse_ops(module)).size(), 1u);
  // Six inputs and the result.
  EXPECT_EQ(groups_of(fuse_ops(module, {.max_depth = 256, .max_args = 7})).size(), 1u);
  const IRModule fused = fuse_ops(module, {.max_depth = 256, .max_args = 6});
  const auto groups = groups_of(fused);
  ASSERT_EQ(groups.size(), 2u);
  for (const FunctionNode* group : groups) EXPECT_LE(group->params.size() + 1, 6u);
}

TEST(FuseOps, WideOpsStayAlone) {
  ops::register_all_ops();
  constexpr int64_t kParts = 1000;
  const auto x = relay::make_var("x", make_tensor_type({kParts, 2}, DataType::float_(32)));
  const Expr parts = ops::split(x, kParts, 0);
  std::vector<Expr> items;
  for (int64_t i = 0; i < kParts; ++i) items.push_back(ops::relu(relay::make_tuple_get_item(parts, i)));
  const Expr all = ops::relu(ops::concatenate(Array<Expr>(items), 0));
  const IRModule fused = fuse_ops(relay::infer_type(make_module(relay::make_function({x}, all))));
  const auto groups = groups_of(fused);
  EXPECT_EQ(groups.size(), static_cast<size_t>(kParts) + 3);
  for (const FunctionNode* group : groups) EXPECT_EQ(num_op_calls(group->body), 1u);
}

// The op itself is a group that only hands its operand on; without it the three are one. Readers come first.
TEST(FuseOps, StopFusionParts) {
  const auto ops_of_groups = [](const std::string& body) {
    const IRModule after = run_pass("FuseOps", read("def @main(%x: Tensor[(4), float32]) { " + body + " }"));
    std::vector<size_t> counts;
    relay::post_order(
        after->lookup("main").as<FunctionNode>()->body, [](const Expr& e) { return !e.is<FunctionNode>(); },
        [&](const Expr& e) {
          if (!e.is<FunctionNode>()) return;
          counts.push_back(0);
          relay::post_order(e.as<FunctionNode>()->body,
                            [&](const Expr& inner) { counts.back() += inner.is<CallNode>() ? 1 : 0; });
        });
    return counts;
  };
  EXPECT_EQ(ops_of_groups("nn.relu(exp(negative(%x)))"), (std::vector<size_t>{3}));
  EXPECT_EQ(ops_of_groups("nn.relu(annotation.stop_fusion(exp(negative(%x))))"), (std::vector<size_t>{1, 1, 2}));
}

TEST(FuseOps, ItsLevelIsItsOwnOrTheContexts) {
  const auto depth = [](int32_t context_level, std::optional<int64_t> level) {
    pass::PassContext context;
    context.opt_level = context_level;
    if (level) context.config.set("relay.FuseOps.fuse_opt_level", Value(*level));
    return fuse_options(context).max_depth;
  };
  const int64_t many = FuseOptions().max_depth;
  EXPECT_EQ(depth(2, {}), many);
  EXPECT_EQ(depth(0, {}), 1);
  EXPECT_EQ(depth(2, 0), 1);
  EXPECT_EQ(depth(0, 2), many);
  EXPECT_EQ(depth(0, -1), 1);
  EXPECT_EQ(kit::user_error_of([&] { depth(0, -2); }),
            "relay.FuseOps.fuse_opt_level must be a level, or -1 for the context's, got -2");
}

}  // namespace
}  // namespace headrace::passes
