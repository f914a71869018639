#include "tools/headrace/explain_text.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <set>

#include "base/count_of.h"
#include "base/reason_name.h"
#include "partition/reasons.h"
#include "tools/headrace/output.h"
#include "tools/headrace/shown_text.h"

namespace headrace::tools {

namespace {

using partition::GraphAlternative;

// Prints "whole plans were measured, so costs are multiplied by 0.95 natively, 0.86 on onednn", and which factor is
// limited.
void print_scales(const std::vector<partition::PlanScale>& scales) {
  std::string text;
  for (const partition::PlanScale& one : scales) {
    const bool is_native = one.label == partition::kNative;
    text += fmt::format("{} {:.3g} {}", text.empty() ? "" : ",", one.factor,
                        is_native ? "natively" : "on " + shown(one.label));
  }
  if (!scales.empty()) print_out("whole plans were measured, so costs are multiplied by{}\n", text);
  for (const partition::PlanScale& one : scales) {
    if (one.is_limited())
      print_out(
          "the whole plan of {} asks for a factor of {:.3g}, which is limited to {}; measure again if it is wrong\n",
          shown(one.label), one.fitted, one.factor);
  }
}

// Prints the cost of the plan and, where costs decided, that of other plans.
void print_cost(const driver::Explanation& explained) {
  const partition::PlanCost& plan = *explained.plan_cost;
  print_out("the plan costs {}, no plan less than {} (gap {}); costs are {}\n", partition::show_cost(plan.seconds),
            partition::show_cost(plan.lower_bound), partition::show_cost(plan.gap()), plan.source);
  print_scales(plan.scales);
  const auto& rows = explained.placement;
  if (std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.reason == HR_REASON_PLACE_BY_HAND; }))
    print_out("the costs leave out the regions that the program marks\n");
  if (!explained.is_by_cost) return;
  for (const partition::LabelSeconds& other : plan.others) {
    std::string name = "as much as possible by " + shown(other.label);
    if (other.label == partition::kListOrder) name = "by the order of the list";
    if (other.label == partition::kNative) name = "natively";
    print_out("{}: {}\n", name, partition::show_cost(other.seconds));
  }
  if (plan.passed_over)
    print_out("at least cost: {}; not taken, since it {}\n", partition::show_cost(*plan.passed_over),
              plan.tried ? fmt::format("took {} when it was tried", partition::show_cost(*plan.tried))
                         : "saves too little to be sure of by measured costs");
  else if (plan.tried)
    print_out("this plan was tried, and costs what it took\n");
}

// Returns why each row is not on the other backends of the list, by row.
std::map<int32_t, std::vector<GraphAlternative>> passed_over(const driver::Explanation& explained) {
  std::map<int32_t, std::vector<GraphAlternative>> rows;
  for (const partition::GraphNode& node : explained.graph.nodes) {
    if (node.placement == partition::kNone) continue;
    std::vector<GraphAlternative> others = node.alternatives;
    std::erase_if(others, [](const GraphAlternative& one) { return one.backend == partition::kNative; });
    rows.emplace(node.placement, std::move(others));
  }
  return rows;
}

// Returns whether the op's own message says the same of the backend: that no backend takes the op, what it costs on
// each, or what puts it where it is.
bool is_said(const artifact::Placement& row, const GraphAlternative& other) {
  return other.reason == HR_REASON_PLACE_BY_COST || row.message == other.message ||
         row.message.find(other.backend + ": " + other.message) != std::string::npos;
}

void print_ops(const driver::Explanation& explained) {
  std::vector<std::vector<std::string>> rows{{"op", "kind", "backend", "region", "reason", "why"}};
  const auto others = passed_over(explained);
  for (size_t i = 0; i < explained.placement.size(); ++i) {
    const artifact::Placement& one = explained.placement[i];
    std::string why = one.message;
    if (const auto found = others.find(static_cast<int32_t>(i)); found != others.end()) {
      for (const GraphAlternative& other : found->second) {
        if (!is_said(one, other))
          why += fmt::format("; not by {} ({}): {}", other.backend, reason_name(other.reason), other.message);
      }
    }
    rows.push_back({one.op, one.kind, one.backend, one.region.empty() ? "-" : one.region,
                    std::string(reason_name(one.reason)), why});
  }
  std::cout << to_table(rows);
}

// Prints what would change each reason that an op or one of its alternatives has.
void print_remedies(const driver::Explanation& explained) {
  std::set<hr_reason> reasons;
  for (const artifact::Placement& one : explained.placement) reasons.insert(one.reason);
  for (const auto& [row, others] : passed_over(explained)) {
    for (const GraphAlternative& other : others) reasons.insert(other.reason);
  }
  for (const hr_reason reason : reasons) {
    if (const std::string_view remedy = partition::remedy_of(reason); !remedy.empty())
      print_out("to change {}: {}\n", reason_name(reason), remedy);
  }
}

// The tensors that enter or leave a region, each once.
struct Crossing {
  std::set<std::pair<int32_t, int32_t>> tensors;  // node and output
  int64_t bytes = 0;
};

struct RegionBorders {
  Crossing in, out;
  size_t num_ops = 0;
  double border_seconds = 0;  // time of changes of layout at its borders
};

void add_tensor(const partition::ProgramGraph& graph, const partition::GraphEdge& edge, Crossing& crossing) {
  if (!crossing.tensors.emplace(edge.from, edge.output).second) return;
  const partition::GraphNode& from = graph.nodes[static_cast<size_t>(edge.from)];
  crossing.bytes += from.outputs[static_cast<size_t>(edge.output)].n_bytes.value_or(0);
}

std::vector<RegionBorders> borders_of(const partition::ProgramGraph& graph) {
  std::vector<RegionBorders> borders(graph.blocks.size());
  for (const partition::GraphNode& node : graph.nodes) {
    if (node.block != partition::kNone) ++borders[static_cast<size_t>(node.block)].num_ops;
  }
  for (const partition::GraphEdge& edge : graph.edges) {
    const int32_t from = graph.nodes[static_cast<size_t>(edge.from)].block;
    const int32_t to = graph.nodes[static_cast<size_t>(edge.to)].block;
    if (from == to) continue;
    for (const auto& [block, is_in] : {std::pair(to, true), std::pair(from, false)}) {
      if (block == partition::kNone) continue;
      RegionBorders& one = borders[static_cast<size_t>(block)];
      add_tensor(graph, edge, is_in ? one.in : one.out);
      one.border_seconds += edge.border_seconds;
    }
  }
  return borders;
}

std::string show_tensors(const Crossing& crossing) {
  return fmt::format("{}, {}", count_of(crossing.tensors.size(), "tensor"), show_bytes(crossing.bytes));
}

// Prints the regions, one row for each call of one, with the copies and the changes of layout at its borders.
void print_regions(const driver::Explanation& explained) {
  const std::vector<RegionBorders> borders = borders_of(explained.graph);
  std::vector<std::vector<std::string>> rows{{"region", "backend", "ops", "reads", "writes", "changes of layout"}};
  for (size_t i = 0; i < borders.size(); ++i) {
    const partition::GraphBlock& block = explained.graph.blocks[i];
    rows.push_back({block.region, block.backend, std::to_string(borders[i].num_ops), show_tensors(borders[i].in),
                    show_tensors(borders[i].out),
                    borders[i].border_seconds > 0 ? partition::show_cost(borders[i].border_seconds) : "none"});
  }
  if (!borders.empty()) std::cout << to_table(rows);
  const auto is_chosen = [](const partition::Region& region) { return !region.is_by_hand; };
  const auto num_chosen = std::count_if(explained.regions.begin(), explained.regions.end(), is_chosen);
  print_out("{}", count_of(std::ssize(explained.regions), "region"));
  if (explained.fewest_regions > 0)
    print_out("; {} chosen, no choice for these ops has fewer than {}", num_chosen, explained.fewest_regions);
  print_out("\n");
}

}  // namespace

void print_explanation(const driver::Explanation& explained) {
  print_ops(explained);
  std::map<std::string, int> counts;
  for (const artifact::Placement& one : explained.placement) ++counts[one.backend];
  for (const auto& [backend, count] : counts) print_out("{} by {}\n", count_of(count, "op"), shown(backend));
  print_remedies(explained);
  if (explained.plan_cost) print_cost(explained);
  if (!explained.cost_failure.empty())
    print_out("the cost of the plan is not known: {}\n", shown(explained.cost_failure));
  print_regions(explained);
}

}  // namespace headrace::tools
