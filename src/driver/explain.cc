#include "driver/explain.h"

#include "base/exit_code.h"
#include "driver/canonical.h"
#include "driver/check_options.h"
#include "driver/placing.h"
#include "driver/register_all.h"
#include "relay/infer/result_types.h"

namespace headrace::driver {

namespace {

// Gives inputs and outputs the names of the model, where passes kept their number.
void name_ports(partition::ProgramGraph& graph, const Model& model) {
  for (const auto& [kind, names] : {std::pair(partition::GraphNodeKind::kInput, &model.inputs),
                                    std::pair(partition::GraphNodeKind::kOutput, &model.outputs)}) {
    std::vector<partition::GraphNode*> ports;
    for (partition::GraphNode& node : graph.nodes) {
      if (node.kind == kind) ports.push_back(&node);
    }
    if (ports.size() != names->size()) continue;
    for (size_t i = 0; i < ports.size(); ++i) ports[i]->name = (*names)[i];
  }
}

// Sets the time of changes of layout on the edges between regions, by the estimates of their backends.
void add_borders(partition::ProgramGraph& graph, const Placing& placing, CompileOptions options) {
  if (graph.blocks.empty()) return;
  options.costs.clear();  // they hold the times of calls
  const partition::OpCosts costs = op_costs(placing.decision->backends(), options);
  const auto seconds = [&](int32_t block, const Type& type) {
    if (block == partition::kNone) return 0.0;
    const auto backend = partition::find_backend(graph.blocks[static_cast<size_t>(block)].backend);
    return backend ? costs.border(*backend, type) : 0.0;
  };
  for (partition::GraphEdge& edge : graph.edges) {
    const partition::GraphNode& from = graph.nodes[static_cast<size_t>(edge.from)];
    const partition::GraphNode& to = graph.nodes[static_cast<size_t>(edge.to)];
    const partition::GraphTensor& tensor = from.outputs[static_cast<size_t>(edge.output)];
    if (from.block == to.block || !tensor.shape) continue;
    const Type type = make_tensor_type(*tensor.shape, DataType::parse(tensor.dtype));
    edge.border_seconds = seconds(from.block, type) + seconds(to.block, type);
  }
}

// Returns the cost of a placement that costs did not decide.
partition::PlanCost cost_of(const IRModule& canonical, const Placing& placing, const CompileOptions& options) {
  if (!placing.costs_hash.empty() && options.costs.empty())
    throw_user_error("the plan was made by measured costs; give their file by --costs");
  const std::string model = options.costs.empty() ? "" : model_hash(canonical);
  return partition::CostDecision(canonical, op_costs(placing.decision->backends(), options, model))
      .plan_of(placing.decision->module(), placing.decision->labels());
}

// Sets what the placement costs. A backend that cannot say its costs does not keep the rest from being shown.
void add_cost(Explanation& explanation, const IRModule& canonical, const Placing& placing,
              const CompileOptions& options) {
  explanation.plan_cost = placing.decision->cost();
  explanation.is_by_cost = explanation.plan_cost.has_value();
  try {
    add_borders(explanation.graph, placing, options);
    if (explanation.plan_cost || placing.decision->backends().empty()) return;
    explanation.plan_cost = cost_of(canonical, placing, options);
  } catch (const Error& error) {
    if (exit_code_of(error) == HR_INTERNAL) throw;
    explanation.cost_failure = error.message();
  }
}

}  // namespace

Explanation explain(const Model& model, const CompileOptions& options, bool with_plan) {
  check_options(options);
  register_all();
  Explanation explanation;
  const auto note = [&](const pass::PassNote& one) { explanation.notes.push_back(one); };
  const IRModule canonical = run_canonical_passes(model.module, make_relay_context(options, note));
  auto [placing, placed] = place_model(canonical, options);
  explanation.graph = partition::read_graph(placed, *placing.decision);
  add_cost(explanation, canonical, placing, options);
  if (with_plan) {
    explanation.plan = make_model_plan(canonical, placing);
    if (const auto& cost = explanation.plan_cost)
      explanation.plan->cost = partition::PlannedCost{cost->seconds, cost->lower_bound, cost->source};
  }
  name_ports(explanation.graph, model);
  explanation.placement = std::move(placed.placement);
  explanation.regions = std::move(placed.regions);
  explanation.fewest_regions = placed.fewest_regions;
  explanation.costs = std::move(placed.costs);
  return explanation;
}

IRModule partition_module(const Model& model, const CompileOptions& options) {
  check_options(options);
  register_all();
  const IRModule canonical = run_canonical_passes(model.module, make_relay_context(options, {}));
  return relay::with_result_types(place_model(canonical, options).placed.module);
}

}  // namespace headrace::driver
