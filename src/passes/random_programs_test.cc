// Properties of random programs: text and JSON read back, every pass and both lists keep what a program computes.
#include <set>

#include "object/json.h"
#include "ops/op_keys.h"
#include "passes/fuse/fuse_ops.h"
#include "passes/tests/random_programs.h"
#include "relay/function_attrs.h"
#include "relay/visit.h"

namespace headrace::passes {
namespace {

TEST(RandomPrograms, TextReadsBack) {
  EXPECT_TRUE(kit::holds(property_of_programs([](const Program& p) { return text_differs(p.module()); })));
}

TEST(RandomPrograms, JsonReadsBack) {
  EXPECT_TRUE(kit::holds(property_of_programs([](const Program& p) -> std::optional<std::string> {
    const IRModule module = p.module();
    const std::string text = save_json(Value(module));
    const IRModule again = load_json(text).as<IRModule>();
    if (auto difference = not_equal(module, again)) return difference;
    if (save_json(Value(again)) != text) return "the text differs when it is saved again";
    relay::verify(again);
    return std::nullopt;
  })));
}

double tolerance_of(const std::string& pass) {
  if (pass == "ToMixedPrecision") return 0.2;  // float16 rounds 8000 times as much as float32
  static constexpr std::string_view kRounds[] = {"SimplifyInference",    "FoldScaleAxis", "BackwardFoldScaleAxis",
                                                 "ForwardFoldScaleAxis", "SimplifyExpr",  "DivToMul"};
  const bool rounds = std::find(std::begin(kRounds), std::end(kRounds), pass) != std::end(kRounds);
  return rounds ? kRounding : 0;
}

std::optional<std::string> check_one(const pass::Pass& pass, const IRModule& before, uint64_t seed) {
  const IRModule after = run_pass(pass.info.name, before);
  std::optional<std::string> failure = results_differ(before, after, seed, tolerance_of(pass.info.name));
  if (!failure) failure = text_differs(after);
  if (failure) return fmt::format("{}: {}\nafter:\n{}", pass.info.name, *failure, relay::print_module(after));
  return std::nullopt;
}

TEST(RandomPrograms, EveryPassKeepsTheResults) {
  EXPECT_TRUE(kit::holds(property_of_programs([](const Program& p) -> std::optional<std::string> {
    IRModule module = p.module();
    for (const auto& list : {by_name(), canonical(), native()}) {
      for (const pass::Pass& pass : list) {
        if (pass.info.name == "FirstOrderGradient") continue;  // gives another result: first_order_gradient_test.cc
        if (auto failure = check_one(pass, module, p.seed)) return failure;
        // Half of the programs meet each pass as the ones before it left them, in float32.
        if (p.seed % 2 == 0 && pass.info.name != "ToMixedPrecision") module = run_pass(pass.info.name, module);
      }
    }
    return std::nullopt;
  })));
}

TEST(RandomPrograms, TheListsKeepTheResultsAtEveryLevel) {
  EXPECT_TRUE(kit::holds(property_of_programs([](const Program& p) -> std::optional<std::string> {
    const IRModule before = p.module();
    for (const int level : {0, 1, 2, 3}) {
      pass::PassContext context = typed_context();
      context.opt_level = level;
      const IRModule after = pass::run_passes(native(), pass::run_passes(canonical(), before, context), context);
      if (auto failure = results_differ(before, after, p.seed, kRounding))
        return fmt::format("level {}: {}\nafter:\n{}", level, *failure, relay::print_module(after));
    }
    return std::nullopt;
  })));
}

TEST(RandomPrograms, EliminateCommonSubexprFindsAllAtOnce) {
  EXPECT_TRUE(kit::holds(property_of_programs([](const Program& p) -> std::optional<std::string> {
    const IRModule once = run_pass("EliminateCommonSubexpr", p.module());
    const IRModule twice = run_pass("EliminateCommonSubexpr", once);
    if (once == twice) return std::nullopt;
    return fmt::format("{}\nbecame\n{}", relay::print_module(once), relay::print_module(twice));
  })));
}

// A program without lets is what it was after it went through administrative normal form. Lets that keep the order of
// effects stay, so these programs have none.
TEST(RandomPrograms, FormsAndBackAreEqual) {
  const auto check = [](const Program& p) -> std::optional<std::string> {
    const IRModule graph = run_pass("ToGraphNormalForm", p.module());
    for (const char* form : {"ToANormalForm", "ToBasicBlockNormalForm"}) {
      const IRModule there = run_pass(form, graph);
      if (const IRModule again = run_pass(form, there); auto difference = not_equal(there, again))
        return fmt::format("{} twice: {}\n{}", form, *difference, relay::print_module(there));
      if (auto difference = not_equal(graph, run_pass("ToGraphNormalForm", there)))
        return fmt::format("{}: {}\n{}", form, *difference, relay::print_module(there));
    }
    return std::nullopt;
  };
  EXPECT_TRUE(kit::holds(property_of_programs(check, false)));
}

// 1 to 6, or as many as there are.
IRModule fuse(const Program& p, int64_t& max_depth) {
  max_depth = static_cast<int64_t>(p.seed % 7);
  if (max_depth == 0) max_depth = FuseOptions().max_depth;
  pass::PassContext context = typed_context();
  context.config.set("relay.FuseOps.max_depth", Value(max_depth));
  return run_pass("FuseOps", p.module(), context);
}

TEST(RandomPrograms, DefuseOpsIsTheInverseOfFuseOps) {
  EXPECT_TRUE(kit::holds(property_of_programs([](const Program& p) {
    int64_t max_depth = 0;
    return not_equal(p.module(), run_pass("DefuseOps", fuse(p, max_depth)));
  })));
}

// The rules of fuse_ops.h for one group; nothing when it keeps them.
std::optional<std::string> broken_rule(const relay::FunctionNode& group, int64_t max_depth) {
  std::vector<const relay::CallNode*> calls;
  int anchors = 0;
  bool has_big_constant = false;
  relay::post_order(group.body, [&](const Expr& e) {
    if (const auto* call = e.as<relay::CallNode>()) calls.push_back(call);
    const auto* constant = e.as<relay::ConstantNode>();
    has_big_constant = has_big_constant || (constant != nullptr && !constant->data.shape().empty());
  });
  for (const relay::CallNode* call : calls) {
    if (call->as_op() == nullptr) return "it calls what is no op";
    const auto* kind = call->as_op()->find(ops::kFusionKind);
    if (kind == nullptr || *kind == ops::FusionKind::opaque) {
      if (calls.size() > 1) return "an opaque op shares it";
    } else if (*kind == ops::FusionKind::reduction && call != calls.back()) {
      return "a reduction does not end it";
    }
    anchors += kind != nullptr && *kind == ops::FusionKind::anchor ? 1 : 0;
  }
  if (calls.empty()) return "it is empty";
  if (calls.size() > static_cast<size_t>(max_depth)) return fmt::format("it is deeper than {}", max_depth);
  if (anchors > 1) return "it has two anchors";
  if (has_big_constant) return "it holds a constant that is no scalar";
  for (const relay::Var& param : group.params) {
    if (!param->checked_type().is<TensorTypeNode>()) return "a parameter is no tensor";
  }
  return std::nullopt;
}

TEST(RandomPrograms, FusedGroupsKeepTheRules) {
  EXPECT_TRUE(kit::holds(property_of_programs([](const Program& p) -> std::optional<std::string> {
    int64_t max_depth = 0;
    const IRModule fused = fuse(p, max_depth);
    std::optional<std::string> failure;
    const auto enter = [](const Expr& e) {
      const auto* function = e.as<relay::FunctionNode>();
      return function == nullptr || !relay::is_primitive(*function);
    };
    for (const auto& [var, function] : fused->functions()) {
      relay::post_order(function, enter, [&](const Expr& e) {
        const auto* call = e.as<relay::CallNode>();
        const auto* group = e.as<relay::FunctionNode>();
        if (call != nullptr && call->as_op() != nullptr) failure = "an op call is in no group";
        if (group == nullptr || !relay::is_primitive(*group)) return;
        if (auto rule = broken_rule(*group, max_depth)) failure = *rule + ": " + relay::print_expr(e);
      });
    }
    return failure;
  })));
}

// The kernels of a program, fused or not: calls of primitive functions, and op calls outside of them.
std::vector<const relay::CallNode*> kernels_of(const IRModule& module) {
  std::vector<const relay::CallNode*> kernels;
  const auto enter = [](const Expr& e) {
    const auto* function = e.as<relay::FunctionNode>();
    return function == nullptr || !relay::is_primitive(*function);
  };
  for (const auto& [var, function] : module->functions()) {
    relay::post_order(function, enter, [&](const Expr& e) {
      const auto* call = e.as<relay::CallNode>();
      if (call == nullptr) return;
      const auto* callee = call->op.as<relay::FunctionNode>();
      if (call->as_op() != nullptr || (callee != nullptr && relay::is_primitive(*callee))) kernels.push_back(call);
    });
  }
  return kernels;
}

// What the kernels of a program move: each reads its operands once, a tensor that is two of them once, too, and writes
// its results. Dimensions that are not known count as 1.
int64_t traffic_bytes(const IRModule& module) {
  const auto bytes_of = [](const Type& type) {
    int64_t sum = 0;
    for (const Type& leaf : leaves_of(type)) {
      const auto& tensor = *leaf.as<TensorTypeNode>();
      auto bytes = static_cast<int64_t>(tensor.dtype.bytes());
      for (const PrimExpr& dim : tensor.shape) bytes *= as_int(dim).value_or(1);
      sum += bytes;
    }
    return sum;
  };
  int64_t total = 0;
  for (const relay::CallNode* kernel : kernels_of(module)) {
    std::set<const Object*> read;
    std::vector<Expr> pending(kernel->args.begin(), kernel->args.end());
    while (!pending.empty()) {
      const Expr arg = pending.back();
      pending.pop_back();
      if (const auto* tuple = arg.as<relay::TupleNode>()) {
        pending.insert(pending.end(), tuple->items.begin(), tuple->items.end());
      } else if (read.insert(arg.object()).second) {
        total += bytes_of(arg->checked_type());
      }
    }
    total += bytes_of(kernel->checked_type());
  }
  return total;
}

TEST(FusionTraffic, IsCounted) {
  const IRModule module = read(
      "def @main(%x: Tensor[(8), float32], %y: Tensor[(8), float32]) {\n"
      "  %0 = exp(%x);\n  nn.relu(add(%0, multiply(%0, %y)))\n}");
  // exp 2 tensors, multiply and add 3, relu 2; then two in and one out.
  EXPECT_EQ(traffic_bytes(module), 10 * 32);
  EXPECT_EQ(traffic_bytes(run_pass("FuseOps", module)), 3 * 32);
}

// Nowhere more than with each op by itself, and less somewhere.
TEST(FusionTraffic, IsNeverMoreForFusing) {
  int64_t saved = 0;
  EXPECT_TRUE(kit::holds(property_of_programs([&](const Program& p) -> std::optional<std::string> {
    int64_t max_depth = 0;
    const IRModule fused = fuse(p, max_depth);
    const int64_t before = traffic_bytes(p.module()), after = traffic_bytes(fused);
    saved += before - after;
    if (after <= before) return std::nullopt;
    return fmt::format("{} bytes became {}\n{}", before, after, relay::print_module(fused));
  })));
  EXPECT_GT(saved, 0);
}

}  // namespace
}  // namespace headrace::passes
