// Random programs with random supported ops and random labels: partitioning keeps their results to the last bit, leaves
// no annotation, and depends on the program alone, not on the order in which its nodes were made.
#include <numeric>

#include "kit/property.h"
#include "object/structural_equal.h"
#include "ops/register.h"
#include "ops/tensor/join.h"
#include "partition/extract.h"
#include "partition/plan_file/plan_decision.h"
#include "partition/program_graph.h"
#include "partition/tests/region_testing.h"

namespace headrace::partition {
namespace {

using relay::Var;

// A program as a list of steps, so that its nodes can be made in several orders.
struct RandomStep {
  enum Kind : uint8_t { unary, binary, halves, joined, branch, bound } kind = unary;
  int op = 0;
  std::vector<int> operands = {};  // steps; -1 and -2 are the parameters, -3 is a constant
  int label = 0;                   // which compiler computes it: 0 is none
};

struct RandomDag {
  std::vector<RandomStep> steps;
  uint32_t supported = 0;  // by op, two bits for two compilers
  uint64_t order_seed = 0;
};

constexpr std::array<const char*, 4> kUnaryOps{"tanh", "negative", "abs", "nn.relu"};
constexpr std::array<const char*, 4> kBinaryOps{"add", "subtract", "multiply", "maximum"};
constexpr std::array<const char*, 3> kCompilers{"", "left", "right"};

bool is_half(const RandomStep& step) { return step.kind == RandomStep::halves; }

RandomDag random_dag(kit::Random& random, int most) {
  RandomDag dag;
  const auto count = static_cast<int>(random.integer(1, most));
  const bool has_scopes = random.integer(0, 2) == 0;
  const auto full = [&](int before) {
    for (int tries = 0; tries < 8; ++tries) {
      const auto at = static_cast<int>(random.integer(std::max(-3, before - 9), before - 1));
      if (at < 0 || !is_half(dag.steps[static_cast<size_t>(at)])) return at;
    }
    return -1;
  };
  for (int i = 0; i < count; ++i) {
    RandomStep step;
    step.kind = static_cast<RandomStep::Kind>(random.integer(0, has_scopes ? 5 : 3));
    if (step.kind == RandomStep::joined) step.kind = RandomStep::binary;
    step.op = static_cast<int>(random.integer(0, 3));
    step.label = static_cast<int>(random.integer(0, 2));
    step.operands = {full(i), full(i)};
    if (i > 0 && is_half(dag.steps[static_cast<size_t>(i - 1)])) {
      step.kind = RandomStep::joined;
      step.operands = {i - 1, i - 1};
    }
    dag.steps.push_back(step);
  }
  if (is_half(dag.steps.back())) dag.steps.back().kind = RandomStep::unary;
  dag.supported = static_cast<uint32_t>(random.next());
  dag.order_seed = random.next();
  return dag;
}

// Makes the nodes of a program, each after its operands, in an order that `seed` chooses.
class DagBuilder {
 public:
  DagBuilder(const RandomDag& dag, uint64_t seed) : dag_(dag), made_(dag.steps.size()) {
    const Type type = make_tensor_type(Shape{2, 4});
    params_ = {relay::make_var("x", type), relay::make_var("y", type),
               relay::make_var("c", make_scalar_type(DataType::bool_()))};
    kit::Random random(seed);
    std::vector<size_t> pending(dag.steps.size());
    std::iota(pending.begin(), pending.end(), size_t{0});
    while (!pending.empty()) {
      const auto at = static_cast<size_t>(random.integer(0, static_cast<int64_t>(pending.size()) - 1));
      const size_t step = pending[at];
      if (!is_ready(step)) continue;
      pending.erase(pending.begin() + static_cast<std::ptrdiff_t>(at));
      make(step);
    }
  }

  IRModule module() const {
    Array<Expr> results;
    for (size_t i = made_.size() - std::min<size_t>(made_.size(), 3); i < made_.size(); ++i) {
      if (!is_half(dag_.steps[i])) results.push_back(made_[i]);
    }
    Expr body = relay::make_tuple(results);
    for (size_t i = made_.size(); i-- > 0;) {
      if (dag_.steps[i].kind == RandomStep::bound)
        body = relay::make_let(made_[i].cast<relay::VarNode>(), values_.at(i), body);
    }
    return relay::infer_type(make_module(relay::make_function(params_, body)));
  }

 private:
  bool is_ready(size_t i) const {
    return std::all_of(dag_.steps[i].operands.begin(), dag_.steps[i].operands.end(),
                       [&](int operand) { return operand < 0 || made_[static_cast<size_t>(operand)]; });
  }

  Expr operand(size_t i, size_t k) {
    const int at = dag_.steps[i].operands[k];
    if (at == -3) return relay::make_constant(passes::ramp({2, 4}, 0.5f));
    return at < 0 ? Expr(params_[static_cast<size_t>(-at - 1)]) : made_[static_cast<size_t>(at)];
  }

  Expr unary(size_t i, const Expr& value) {
    return relay::make_call(kUnaryOps[static_cast<size_t>(dag_.steps[i].op)], {value});
  }

  void make(size_t i) {
    const RandomStep& step = dag_.steps[i];
    switch (step.kind) {
      case RandomStep::unary:
        made_[i] = unary(i, operand(i, 0));
        break;
      case RandomStep::binary:
        made_[i] = relay::make_call(kBinaryOps[static_cast<size_t>(step.op)], {operand(i, 0), operand(i, 1)});
        break;
      case RandomStep::halves:
        made_[i] = ops::split(unary(i, operand(i, 0)), int64_t{2}, 1);
        break;
      case RandomStep::joined: {
        const Expr first = relay::make_tuple_get_item(made_[static_cast<size_t>(step.operands[0])], 0);
        const Expr second = relay::make_tuple_get_item(made_[static_cast<size_t>(step.operands[1])], 1);
        made_[i] = ops::concatenate({step.op % 2 == 0 ? first : unary(i, first), second}, 1);
        break;
      }
      case RandomStep::branch:
        made_[i] = relay::make_if(params_[2], unary(i, operand(i, 0)), unary(i, unary(i, operand(i, 1))));
        break;
      case RandomStep::bound:
        values_.emplace(i, unary(i, operand(i, 0)));
        made_[i] = relay::make_var(fmt::format("v{}", i));
        break;
    }
  }

  const RandomDag& dag_;
  Array<Var> params_;
  std::vector<Expr> made_;
  std::map<size_t, Expr> values_;
};

kit::Property<RandomDag> property_of_dags(int most, std::function<std::optional<std::string>(const RandomDag&)> check) {
  kit::Property<RandomDag> property;
  property.runs_ci = 150;
  property.runs_full = 20000;
  property.generate = [most](kit::Random& random) { return random_dag(random, most); };
  property.shrink = [](const RandomDag& dag) {
    std::vector<RandomDag> smaller;
    for (size_t keep : {dag.steps.size() / 2, dag.steps.size() - 1}) {
      if (keep == 0 || keep >= dag.steps.size()) continue;
      RandomDag less = dag;
      less.steps.resize(keep);
      if (!is_half(less.steps.back())) smaller.push_back(less);
    }
    return smaller;
  };
  property.show = [](const RandomDag& dag) { return relay::print_module(DagBuilder(dag, 1).module()); };
  property.check = std::move(check);
  return property;
}

std::optional<std::string> results_differ(const IRModule& before, const IRModule& after) {
  for (const uint8_t truth : {uint8_t{0}, uint8_t{1}}) {
    const std::vector<NDArray> inputs{passes::ramp({2, 4}, -0.75f), passes::ramp({2, 4}, -0.5f),
                                      NDArray::from_vector<uint8_t>({}, DataType::bool_(), {truth})};
    const auto want = interp::run_main(before, inputs), got = interp::run_main(after, inputs);
    if (want.size() != got.size()) return "another number of results";
    for (size_t r = 0; r < want.size(); ++r) {
      for (int64_t i = 0; i < want[r].num_elements(); ++i) {
        if (want[r].data<float>()[i] != got[r].data<float>()[i])
          return fmt::format("result {} differs:\n{}", r, relay::print_module(after));
      }
    }
  }
  return std::nullopt;
}

// The labels of the test: by the place of a call in a walk, so that they do not depend on how the program was made.
Labels random_labels(const RandomDag& dag, const IRModule& module) {
  Labels labels;
  size_t next = 0;
  relay::post_order(module->lookup("main"), [&](const Expr& expr) {
    if (!expr.is<relay::CallNode>()) return;
    const int label = dag.steps[next++ % dag.steps.size()].label;
    if (label != 0) labels.emplace(expr.object(), kCompilers[static_cast<size_t>(label)]);
  });
  return labels;
}

uint32_t g_supported = 0;

void register_random_compilers() {
  register_test_compilers();
  uint32_t bit = 1;
  for (const char* compiler : {"left", "right"}) {
    for (const auto& names : {kUnaryOps, kBinaryOps, {"split", "concatenate", "exp", "log"}}) {
      for (const char* op : names) {
        set_target_check(get_op(op), compiler, [bit](const relay::CallNode&) { return (g_supported & bit) != 0; });
        bit <<= 1;
      }
    }
  }
}

TEST(RandomPartitions, LabelsKeepResultsAndOrderOfConstructionDoesNotCount) {
  register_random_compilers();
  const int shuffles = kit::by_size(3, 20);
  int64_t merged = 0, all = 0, regions = 0;
  EXPECT_TRUE(kit::holds(property_of_dags(40, [&](const RandomDag& dag) -> std::optional<std::string> {
    const auto one_call = dag.order_seed % 3 == 0 ? std::set<std::string>{"left"} : std::set<std::string>();
    std::string first;
    for (int shuffle = 0; shuffle < shuffles; ++shuffle) {
      const IRModule before = DagBuilder(dag, dag.order_seed + static_cast<uint64_t>(shuffle)).module();
      const Labels labels = random_labels(dag, before);
      const Partitioned result = partition_by_labels(before, labels, {.one_call = one_call});
      const std::string text = relay::print_module(result.module);
      if (shuffle > 0 && text != first) return "another order of construction gives another program:\n" + text + first;
      if (shuffle > 0) continue;
      first = text;
      relay::verify(result.module, {.types = true});
      if (relay::infer_type(result.module) != result.module) return "types are missing:\n" + text;
      const auto count = static_cast<int64_t>(result.regions.size());
      if (count < result.fewest_regions) return fmt::format("{} regions, at least {}", count, result.fewest_regions);
      for (const ExtractedRegion& region : result.regions) {
        all += region.num_calls;
        if (one_call.contains(region.backend) && region.num_calls != 1) return "a region has several calls:\n" + text;
      }
      merged += static_cast<int64_t>(labels.size());
      regions += count;
      if (auto difference = results_differ(before, result.module)) return difference;
    }
    return std::nullopt;
  })));
  EXPECT_EQ(all, merged);
  EXPECT_LT(regions, all);
}

TEST(RandomPartitions, PassesKeepResults) {
  register_random_compilers();
  int64_t changed = 0;
  EXPECT_TRUE(kit::holds(property_of_dags(30, [&](const RandomDag& dag) -> std::optional<std::string> {
    g_supported = dag.supported;
    const IRModule before = DagBuilder(dag, 1).module();
    Map<std::string, Value> config = targets(dag.order_seed % 2 == 0 ? "left,right" : "right,left");
    config.set("relay.AnnotateTarget.include_non_call_ops", Value(dag.order_seed % 3 != 0));
    const IRModule annotated = run_list("AnnotateTarget", before, config);
    const IRModule merged = run_list("MergeCompilerRegions", annotated);
    for (const IRModule& step : {annotated, merged}) {
      if (auto difference = results_differ(before, step)) return difference;
    }
    const IRModule each = run_list("PartitionGraph", annotated), few = run_list("PartitionGraph", merged);
    for (const IRModule& result : {each, few}) {
      if (count_annotations(result) != 0) return "an annotation is left:\n" + relay::print_module(result);
      if (auto difference = results_differ(before, result)) return difference;
    }
    if (regions_of(few).size() > regions_of(each).size()) return "merging made more regions";
    if (!structural_equal(run_list("MergeCompilerRegions", merged), merged)) return "a second merge changes something";
    changed += regions_of(few).empty() ? 0 : 1;
    return std::nullopt;
  })));
  EXPECT_GT(changed, 0);
}

// One run with two compilers is two runs with one.
TEST(RandomPartitions, TwoRunsAnnotateAsOne) {
  register_random_compilers();
  EXPECT_TRUE(kit::holds(property_of_dags(30, [&](const RandomDag& dag) -> std::optional<std::string> {
    g_supported = dag.supported;
    const IRModule before = DagBuilder(dag, 1).module();
    const IRModule once = run_list("AnnotateTarget", before, targets("left,right"));
    const IRModule left = run_list("AnnotateTarget", before, targets("left"));
    const IRModule twice = run_list("AnnotateTarget", left, targets("right"));
    if (structural_equal(once, twice)) return std::nullopt;
    return relay::print_module(once) + relay::print_module(twice);
  })));
}

// A backend whose ops the attributes target.NAME choose.
class AttributedBackend : public Backend {
 public:
  explicit AttributedBackend(std::string name) : name_(std::move(name)) {}
  std::string_view name() const override { return name_; }
  Verdict supports(const relay::CallNode&) const override {
    return {.reason = HR_REASON_OP_UNSUPPORTED, .message = "it has no attribute"};
  }
  std::vector<Expected<RegionCode>> compile(const RegionRequest&) const override { return {}; }

 private:
  std::string name_;
};

std::map<std::string, int64_t> counts_of(const std::vector<std::string>& backends) {
  std::map<std::string, int64_t> counts;
  for (const std::string& one : backends) ++counts[one];
  return counts;
}

// Returns what is wrong with the graph of a placed program; nothing for a good one.
std::optional<std::string> graph_fault(const PlacedModule& placed, const Decision& decision) {
  const ProgramGraph graph = read_graph(placed, decision);
  std::set<int32_t> rows;
  for (const GraphNode& node : graph.nodes) {
    if (node.kind == GraphNodeKind::kOp) rows.insert(node.placement);
    const bool is_region =
        node.placement != kNone && !placed.placement[static_cast<size_t>(node.placement)].region.empty();
    if ((node.block != kNone) != is_region && node.kind == GraphNodeKind::kOp) return "a row and a block differ";
  }
  if (rows.size() != placed.placement.size()) return fmt::format("{} of {} rows", rows.size(), placed.placement.size());
  for (const GraphEdge& edge : graph.edges) {
    const GraphNode &from = graph.nodes[static_cast<size_t>(edge.from)],
                    &to = graph.nodes[static_cast<size_t>(edge.to)];
    if (edge.from >= edge.to) return fmt::format("an edge from {} back to {}", edge.from, edge.to);
    const GraphTensor& given = from.outputs.at(static_cast<size_t>(edge.output));
    const GraphTensor& taken = to.inputs.at(static_cast<size_t>(edge.input));
    if (given.dtype != taken.dtype || given.shape != taken.shape) return "an edge between two types";
  }
  return std::nullopt;
}

// A plan gives the placement that it was made of, an edited one what it says, and both keep the results.
TEST(RandomPartitions, PlansDecideWhatTheySay) {
  register_random_compilers();
  const Backends backends{std::make_shared<AttributedBackend>("left"), std::make_shared<AttributedBackend>("right")};
  int64_t edits = 0;
  const auto property = property_of_dags(40, [&](const RandomDag& dag) -> std::optional<std::string> {
    g_supported = dag.supported;
    const IRModule module = DagBuilder(dag, 1).module();
    const OrderDecision order(module, backends);
    Plan plan = make_plan(PlanNames(module), order);
    plan.model_hash = std::string(32, '0');
    const PlanDecision same(module, parse_plan(print_plan(plan), "plan"), backends, PlanNames(module));
    const PlacedModule by_order = place(order), by_plan = place(same);
    if (relay::print_module(by_order.module) != relay::print_module(by_plan.module)) return "another placement";
    if (auto fault = graph_fault(by_order, order)) return fault;
    kit::Random random(dag.order_seed);
    std::vector<std::string> wanted, got;
    for (PlannedOp& op : plan.ops) {
      if (op.backend != kNative && random.integer(0, 2) == 0) {
        op.backend = kNative;
        ++edits;
      }
      wanted.push_back(op.kind + " " + op.backend);
    }
    const PlanDecision edited(module, parse_plan(print_plan(plan), "plan"), backends, PlanNames(module));
    const PlacedModule placed = place(edited);
    for (const artifact::Placement& row : placed.placement) got.push_back(row.kind + " " + row.backend);
    if (counts_of(wanted) != counts_of(got)) return "the ops are not where the plan says";
    if (auto fault = graph_fault(placed, edited)) return fault;
    return results_differ(module, placed.module);
  });
  EXPECT_TRUE(kit::holds(property));
  EXPECT_GT(edits, 3 * kit::detail::runs_of(property));
}

}  // namespace
}  // namespace headrace::partition
