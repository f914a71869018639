// Properties of random programs: text and JSON read back, every pass and both lists keep what a program computes.
#include <map>
#include <set>

#include "kit/repeat_binders.h"
#include "object/json.h"
#include "ops/op_keys.h"
#include "passes/fuse/fuse_ops.h"
#include "passes/tests/random_programs.h"
#include "relay/function_attrs.h"
#include "relay/visit.h"

namespace headrace::passes {
namespace {

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (size_t end; !text.empty(); text.remove_prefix(std::min(end + 1, text.size()))) {
    end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
  }
  return lines;
}

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

double tolerance_of(const pass::PassInfo& pass) {
  if (pass.name == "ToMixedPrecision") return 0.2;  // float16 rounds 8000 times as much as float32
  return pass.rounds ? kRounding : 0;
}

// Runs a pass by which results keep their types.
IRModule run_keeping_types(const std::string& pass, const IRModule& module) {
  pass::PassContext context = typed_context();
  context.config.set("relay.ToMixedPrecision.keep_orig_output_dtype", Value(true));
  return run_pass(pass, module, context);
}

// `changed`: the passes that changed a program are added to it.
std::optional<std::string> check_one(const pass::Pass& pass, const IRModule& before, uint64_t seed,
                                     std::set<std::string>& changed) {
  const IRModule after = run_keeping_types(pass.info.name, before);
  if (!not_equal(before, after)) return std::nullopt;
  changed.insert(pass.info.name);
  std::optional<std::string> failure = results_differ(before, after, seed, tolerance_of(pass.info));
  if (!failure) failure = text_differs(after);
  if (failure) return fmt::format("{}: {}\nafter:\n{}", pass.info.name, *failure, relay::print_module(after));
  return std::nullopt;
}

std::vector<pass::Pass> all_passes() {
  std::vector<pass::Pass> all;
  for (const auto& list : {by_name(), canonical(), native({})}) all.insert(all.end(), list.begin(), list.end());
  return all;
}

// Passes that change no program of EveryPassKeepsTheResults, or change results on purpose: each with the suite or test
// that runs it over suitable random programs.
const std::map<std::string, std::string>& properties_elsewhere() {
  static const std::map<std::string, std::string> table{
      {"AssignLayout", "AssignLayout.RandomNetworksKeepTheirResults"},
      {"AlterOpLayout", "RandomPrograms/RandomLayouts"},
      {"AnnotateSpans", "RandomPrograms.AnnotatedSpansAreOfTheText"},
      {"BoundOutputs", "RandomPrograms.BoundedOutputsKeepTheResults"},
      {"ConvertLayout", "RandomPrograms/RandomLayouts"},
      {"DefuseOps", "RandomPrograms.DefuseOpsIsTheInverseOfFuseOps"},
      {"EtaExpand", "RandomPrograms.EtaExpansionKeepsTheResults"},
      {"FirstOrderGradient", "FirstOrderGradient.RandomProgramsAgreeWithDifferences"},
      {"FlattenAtrousConv", "FlattenAtrousConv.RandomBlocksKeepTheResults"},
      {"ForwardFoldScaleAxis", "RandomPrograms/RandomScales"},
      {"Legalize", "RandomPrograms.LegalisationsKeepTheResults"},
      {"PlanDevices", "RandomPrograms.PlannedDevicesKeepTheResults"},
      {"PackDense", "PackDense.RandomProductsKeepTheResults"},
      {"QnnCanonicalize", "QnnCanonicalize.PlainOpsGiveTheResultsOfTheOracle"},
      {"RemoveStandaloneReshapes", "RandomPrograms.StandaloneReshapesGo"},
      {"SplitArgs", "RandomPrograms.SplitArgsKeepTheResults"},
      {"SplitRecurrent", "SplitRecurrent.RandomLayersKeepTheResults"},
  };
  return table;
}

TEST(RandomPrograms, EveryPassKeepsTheResults) {
  std::set<std::string> changed;
  EXPECT_TRUE(kit::holds(property_of_programs([&changed](const Program& p) -> std::optional<std::string> {
    IRModule module = p.module();
    for (const pass::Pass& pass : all_passes()) {
      if (pass.info.name == "FirstOrderGradient") continue;  // gives another result
      if (auto failure = check_one(pass, module, p.seed, changed)) return failure;
      // Half of the programs meet each pass as the ones before it left them, in float32.
      if (p.seed % 2 == 0 && pass.info.name != "ToMixedPrecision") module = run_pass(pass.info.name, module);
    }
    return std::nullopt;
  })));
  if (kit::options().seed || kit::options().size == kit::TestSize::kFew) return;
  for (const pass::Pass& pass : all_passes()) {
    const bool is_elsewhere = properties_elsewhere().contains(pass.info.name);
    // In many programs, even a pass with a property of its own may change one by chance.
    if (is_elsewhere && kit::options().size == kit::TestSize::kFull) continue;
    EXPECT_NE(changed.contains(pass.info.name), is_elsewhere) << pass.info.name;
  }
}

// One variable gets several binders: the interpreter and each pass still give the results of the original program.
TEST(RandomPrograms, RepeatedBindersMeanTheInnermost) {
  int repeated = 0;
  EXPECT_TRUE(kit::holds(property_of_programs([&repeated](const Program& p) -> std::optional<std::string> {
    const IRModule original = p.module();
    kit::Random random(p.seed);
    const IRModule module = kit::repeat_binders(original, random);
    if (module == original) return std::nullopt;
    ++repeated;
    if (relay::find_breaches(module).empty()) return "no variable is bound twice";
    if (auto failure = results_differ(original, module, p.seed, 0)) return "interpreted: " + *failure;
    for (const pass::Pass& pass : all_passes()) {
      if (pass.info.name == "FirstOrderGradient") continue;  // gives another result
      const IRModule after = run_keeping_types(pass.info.name, module);
      if (auto failure = results_differ(original, after, p.seed, tolerance_of(pass.info)))
        return fmt::format("{}: {}\nof:\n{}", pass.info.name, *failure, relay::print_module(module));
    }
    return std::nullopt;
  })));
  if (kit::options().seed || kit::options().size == kit::TestSize::kFew) return;
  EXPECT_GT(repeated, kit::by_size(20, 5000));
}

TEST(RandomPrograms, PropertiesElsewhereExist) {
  for (const auto& [pass, test] : properties_elsewhere()) EXPECT_TRUE(has_test(test)) << pass << ": " << test;
}

TEST(RandomPrograms, TheListsKeepTheResultsAtEveryLevel) {
  EXPECT_TRUE(kit::holds(property_of_programs([](const Program& p) -> std::optional<std::string> {
    const IRModule before = p.module();
    for (const int level : {0, 1, 2, 3}) {
      pass::PassContext context = typed_context();
      context.opt_level = level;
      const IRModule after = pass::run_passes(native({}), pass::run_passes(canonical(), before, context), context);
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

// Each op call has the place of the op's name in the text, each variable the place of its own.
TEST(RandomPrograms, AnnotatedSpansAreOfTheText) {
  EXPECT_TRUE(kit::holds(property_of_programs([](const Program& p) -> std::optional<std::string> {
    const IRModule after = run_pass("AnnotateSpans", p.module());
    const std::string text = relay::print_module(after);
    if (auto failure = results_differ(p.module(), after, p.seed, 0)) return failure;
    const std::vector<std::string_view> lines = lines_of(text);
    std::optional<std::string> failure;
    relay::post_order(after->lookup("main"), [&](const Expr& e) {
      const auto* call = e.as<relay::CallNode>();
      const auto* var = e.as<relay::VarNode>();
      if (var == nullptr && (call == nullptr || call->as_op() == nullptr)) return;
      const std::string name = var != nullptr ? "%" + var->name_hint : call->as_op()->name;
      const bool is_there = e->span && e->span->line >= 1 && e->span->line <= static_cast<int64_t>(lines.size()) &&
                            lines[static_cast<size_t>(e->span->line - 1)]
                                .substr(static_cast<size_t>(e->span->column - 1))
                                .starts_with(name);
      if (!is_there) failure = fmt::format("{} is said to stand at {} of\n{}", name, to_string(e->span), text);
    });
    return failure;
  })));
}

// A program without lets is unchanged after administrative normal form and back. Lets that keep the order of effects
// stay, so these programs have none.
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

// Checks one group against the rules of fuse_ops.h; returns the broken rule, or nothing.
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
    if (call->as_op() == nullptr) return "it calls what is not an op";
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
  if (has_big_constant) return "it holds a constant that is not a scalar";
  for (const relay::Var& param : group.params) {
    if (!param->checked_type().is<TensorTypeNode>()) return "a parameter is not a tensor";
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

// A reshape to a computed shape is not a pure reshape: it reads the shape as an operand.
bool only_reshapes(const Expr& e) {
  const auto* call = e.as<relay::CallNode>();
  const auto* group = call == nullptr ? nullptr : call->op.as<relay::FunctionNode>();
  const auto* inner = group == nullptr ? nullptr : group->body.as<relay::CallNode>();
  return inner != nullptr && inner->as_op() != nullptr && inner->as_op()->name == "reshape" &&
         inner->args.size() == 1 && inner->args[0].is<relay::VarNode>();
}

// No group that only reshapes reads another one.
TEST(RandomPrograms, StandaloneReshapesGo) {
  int changed = 0;
  EXPECT_TRUE(kit::holds(property_of_programs([&](const Program& p) -> std::optional<std::string> {
    pass::PassContext context = typed_context();
    context.config.set("relay.FuseOps.max_depth", Value(1));
    const IRModule before = run_pass("FuseOps", p.module(), context);
    const IRModule after = run_pass("RemoveStandaloneReshapes", before);
    changed += not_equal(before, after).has_value();
    std::optional<std::string> failure = results_differ(before, after, p.seed, 0);
    for (const auto& [var, function] : after->functions()) {
      relay::post_order(function, [&](const Expr& e) {
        if (only_reshapes(e) && only_reshapes(e.as<relay::CallNode>()->args[0])) failure = "two reshapes in a row";
      });
    }
    return failure ? std::optional(*failure + "\n" + relay::print_module(after)) : failure;
  })));
  if (kit::options().size != kit::TestSize::kFew && !kit::options().seed) {
    EXPECT_GT(changed, 0);
  }
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

// Returns the bytes that the kernels of a program move: each reads its operands once (a tensor that is two operands,
// once) and writes its results. Unknown dimensions count as 1.
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
