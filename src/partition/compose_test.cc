// MergeComposite over modules: effects, priority, random programs; the pass's option.
#include "partition/compose.h"

#include <gtest/gtest.h>

#include "driver/all_passes.h"
#include "driver/register_all.h"
#include "kit/options.h"
#include "partition/instances.h"
#include "pass/config.h"
#include "passes/tests/random_programs.h"
#include "relay/function_attrs.h"
#include "relay/patterns/rewrite.h"

namespace headrace::partition {
namespace {

// A table that frees its patterns, some of which contain themselves.
struct OwnedTable {
  std::vector<CompositePattern> entries;
  OwnedTable(std::vector<CompositePattern> table) : entries(std::move(table)) {}
  OwnedTable(const OwnedTable&) = delete;
  OwnedTable& operator=(const OwnedTable&) = delete;
  ~OwnedTable() {
    for (const CompositePattern& entry : entries) relay::release_recursions(entry.pattern);
  }
  operator std::span<const CompositePattern>() const { return entries; }
};

OwnedTable table_of(const std::string& text) {
  driver::register_all();
  return OwnedTable(read_table(Value(text)));
}

// Returns what the composites of a module are called, those around others first.
std::vector<std::string> composites_in(const IRModule& module) {
  std::vector<std::string> names;
  for (const auto& [var, function] : module->functions()) {
    relay::post_order(function, [&](const Expr& expr) {
      const auto* literal = expr.as<relay::FunctionNode>();
      const auto name = literal == nullptr ? std::nullopt : literal->attrs.get(relay::kComposite);
      if (name) names.push_back(name->as<std::string>());
    });
  }
  return names;
}

using Names = std::vector<std::string>;

TEST(MergeComposite, ANothingToDoKeepsTheModule) {
  const IRModule module = passes::read("def @main(%x: Tensor[(2), float32]) { exp(%x) }");
  EXPECT_EQ(merge_composite(module, table_of("{ a: tanh(_), b: exp(exp(_)) }")), module);
  EXPECT_EQ(merge_composite(module, {}), module);
}

TEST(MergeComposite, LaterEntriesTakeWhatIsLeft) {
  const IRModule module = passes::read("def @main(%x: Tensor[(2), float32]) { exp(tanh(exp(%x))) }");
  EXPECT_EQ(composites_in(merge_composite(module, table_of("{ pair: tanh(exp(_)), one: exp(_) }"))),
            (Names{"one", "pair"}));
  EXPECT_EQ(composites_in(merge_composite(module, table_of("{ one: exp(_), pair: tanh(exp(_)) }"))),
            (Names{"one", "one"}));
}

TEST(MergeComposite, ARefusedMatchLeavesItsPartsToOthers) {
  const IRModule module = passes::read("def @main(%x: Tensor[(2), float32]) { tanh(exp(%x)) }");
  OwnedTable table = table_of("{ pair: { %0 = exp(_); %0 or tanh(%0) }, later: tanh(_) }");
  std::vector<std::string> asked;
  table.entries[0].accepts = [&](const relay::PatternGroup&, const Expr& root) {
    asked.push_back(root.as<relay::CallNode>()->as_op()->name);
    EXPECT_TRUE(root->has_checked_type());
    return asked.back() == "exp";
  };
  EXPECT_EQ(composites_in(merge_composite(module, table)), (Names{"later", "pair"}));
  EXPECT_EQ(asked, (Names{"tanh", "exp"}));
}

// Takes nn.relu alone, by a pattern that also matches it with an operand.
class SmallMatches : public Backend {
 public:
  SmallMatches() : table_(table_of("{ small.relu: nn.relu(tanh(_) or _) }")) {
    table_.entries[0].accepts = [this](const relay::PatternGroup& group, const Expr& shown) -> CheckAnswer {
      const Expr operand = shown.as<relay::CallNode>()->args[0];
      asked.push_back(fmt::format("{} parts, {}", group.parts.size(), operand.is<relay::VarNode>() ? "alone" : "more"));
      if (operand.is<relay::VarNode>()) return true;
      return Verdict{.reason = HR_REASON_SHAPE_UNSUPPORTED, .message = "is too much"};
    };
  }
  std::string_view name() const override { return "small"; }
  std::span<const CompositePattern> patterns() const override { return table_; }
  Verdict supports(const relay::CallNode&) const override { return {.reason = HR_REASON_OP_UNSUPPORTED}; }
  std::vector<Expected<RegionCode>> compile(const RegionRequest&) const override { return {}; }

  mutable std::vector<std::string> asked;

 private:
  OwnedTable table_;
};

// Three ways to the matches of a backend: MergeComposite, a list of backends, the search for all instances.
TEST(MergeComposite, ARefusedMatchLeavesASmallerOneToBackendsToo) {
  const auto backend = std::make_shared<SmallMatches>();
  const IRModule module = relay::infer_type(passes::read("def @main(%x: Tensor[(2), float32]) { nn.relu(tanh(%x)) }"));
  const std::vector<std::string> both{"4 parts, more", "2 parts, alone"};
  const auto expect_small = [&](const IRModule& after) {
    EXPECT_EQ(composites_in(after), (Names{"small.relu"}));
    const Expr body = passes::main_of(after).body;
    EXPECT_EQ(body.as<relay::CallNode>()->args[0].as<relay::CallNode>()->as_op()->name, "tanh");
    EXPECT_EQ(backend->asked, both);
    backend->asked.clear();
  };
  expect_small(merge_composite(module, backend->patterns()));
  PatternRefusals refusals;
  expect_small(compose(module, {backend}, &refusals));
  const auto& tanh = *passes::main_of(module).body.as<relay::CallNode>()->args[0].as<relay::CallNode>();
  EXPECT_EQ(as_verdict(refusals.of(tanh), "small").reason, HR_REASON_SHAPE_UNSUPPORTED);
  const InstanceSet instances = find_instances(module, {backend});
  ASSERT_EQ(instances.all.size(), 1u);
  EXPECT_EQ(instances.all[0].parts.size(), 1u);
}

TEST(MergeComposite, EffectsKeepTheirOrder) {
  const std::string text =
      "def @main(%x: Tensor[(), float32]) -> (Tensor[(), float32], Tensor[(), float32]) {\n"
      "  let %r = ref(%x);\n"
      "  %0 = (ref_write(%r, multiply(%x, 3f)), %x).1;\n"
      "  (add(exp(ref_read(%r)), %0), ref_read(%r))\n}";
  const IRModule before = passes::read(text);
  const IRModule after = merge_composite(before, table_of("{ sum: add(exp(_), _) }"));
  EXPECT_EQ(composites_in(after), (Names{"sum"}));
  relay::verify(after);
  passes::expect_same_results(before, after, {passes::ramp({}, 0.5F)}, 0);
}

// The shape of the second reshape is computed: as a function's result its values would not be known.
TEST(MergeComposite, ShapesThatTypesFollowAreNotCut) {
  const IRModule module = passes::read(
      "def @main(%x: Tensor[(1, 3), float32]) {\n"
      "  %0 = add(const(Tensor[(2), int64], [2i64, 0i64]), const(Tensor[(2), int64], [1i64, 1i64]));\n"
      "  exp(squeeze(reshape(%x, %0)))\n}");
  for (const char* table : {"{ a: add(_, _) }", "{ a: exp(squeeze(reshape(_, _))) }"}) {
    const IRModule after = merge_composite(module, table_of(table));
    EXPECT_TRUE(structural_equal(Value(passes::main_of(after).body->checked_type()),
                                 Value(passes::main_of(module).body->checked_type())));
  }
  EXPECT_EQ(merge_composite(module, table_of("{ a: add(_, _) }")), module);
}

TEST(MergeComposite, AShapeThatIsAnInputKeepsTheType) {
  const IRModule module = passes::read("def @main(%x: Tensor[(2, 3), float32]) { exp(reshape(%x, newshape=[3, 2])) }");
  const IRModule after = merge_composite(module, table_of("{ a: exp(reshape(_)) }"));
  EXPECT_EQ(composites_in(after), (Names{"a"}));
  EXPECT_TRUE(structural_equal(Value(passes::main_of(after).body->checked_type()),
                               Value(passes::main_of(module).body->checked_type())));
}

TEST(MergeComposite, ThePassTakesItsTableAsText) {
  driver::register_all();
  const pass::Pass& pass = driver::get_pass("merge_composite");
  const IRModule module = passes::read("def @main(%x: Tensor[(2), float32]) { tanh(exp(%x)) }");
  pass::PassContext context = passes::typed_context();
  const std::string key = "relay.MergeComposite.pattern_table";
  EXPECT_EQ(pass::run_passes({pass}, module, context), module);
  context.config.set(key, pass::parse_config_value(key, "{ a.b: { %0 = exp(_); tanh(%0) } }"));
  EXPECT_EQ(composites_in(pass::run_passes({pass}, module, context)), (Names{"a.b"}));
}

// Fifty patterns that match nothing, and one that matches half of the nodes. Quadratic work would take minutes.
TEST(MergeComposite, LongProgramsTakeLinearTime) {
  const int length = kit::by_depth(30'000);
  std::string text = "def @main(%x: Tensor[(2), float32]) {\n  %0 = exp(%x);\n";
  for (int i = 1; i < length; ++i) text += fmt::format("  %{} = {}(%{});\n", i, i % 2 == 0 ? "exp" : "tanh", i - 1);
  const IRModule module = passes::read(text + fmt::format("  %{}\n}}", length - 1));
  std::string table = "{ ";
  for (int i = 0; i < 50; ++i) table += fmt::format("none{}: abs(exp(tanh(_))), ", i);
  const IRModule after = merge_composite(module, table_of(table + "pair: tanh(exp(_)) }"));
  EXPECT_EQ(composites_in(after).size(), static_cast<size_t>(length / 2));
}

constexpr const char* kManyPatterns =
    "{ conv: { %0 = nn.conv2d(_, _); %1 = %0 or nn.bias_add(%0, _); %1 or nn.relu(%1) },\n"
    "  dense: { %0 = nn.dense(_, _); %0 or add(%0, _) },\n"
    "  diamond: { %0 = _; _ * %0 + %0 },\n"
    "  chain: { rec %0 = exp(%0) or tanh(%0) or sigmoid(%0) or var; (exp or tanh)(%0) },\n"
    "  ways: dominates(_(_)[attrs], (_[attrs TOpPattern=0])(_), add(_, _)),\n"
    "  any: (add or multiply or subtract)(*) ,\n"
    "  pick: item(_(*)), unary: (_[attrs TOpPattern=0])(_), branch: if(_, _, _), pair: tuple(*) }";

// Each composite computes what it was made of, wherever it came from.
TEST(MergeCompositeProperty, RandomProgramsKeepTheirResults) {
  const OwnedTable table = table_of(kManyPatterns);
  int found = 0;
  auto property = passes::property_of_programs([&](const passes::Program& p) -> std::optional<std::string> {
    const IRModule before = relay::infer_type(p.module());
    const IRModule after = merge_composite(before, table);
    relay::verify(after);
    found += static_cast<int>(composites_in(after).size());
    if (auto difference = passes::text_differs(after)) return difference;
    return passes::results_differ(before, after, p.seed, 0);
  });
  EXPECT_TRUE(kit::holds(property));
  EXPECT_GT(found, 0);
}

// A callback that gives what it gets changes nothing, whatever its pattern matches.
TEST(RewriteProperty, AnIdentityChangesNoRandomProgram) {
  const OwnedTable table = table_of(kManyPatterns);
  int seen = 0;
  std::vector<relay::PatternCallback> callbacks;
  for (const CompositePattern& entry : table.entries) {
    callbacks.push_back(
        {.name = entry.name,
         .pattern = entry.pattern,
         .replace = [&](const Expr&, const Expr& after, const relay::PatternMatches&) { return ++seen, after; }});
  }
  auto property = passes::property_of_programs([&](const passes::Program& p) -> std::optional<std::string> {
    const IRModule module = relay::infer_type(p.module());
    for (const auto& [var, function] : module->functions()) {
      if (relay::rewrite_patterns(callbacks, function, module) != function) return "it changed @" + var->name_hint;
    }
    return std::nullopt;
  });
  EXPECT_TRUE(kit::holds(property));
  EXPECT_GT(seen, 0);
}

}  // namespace
}  // namespace headrace::partition
