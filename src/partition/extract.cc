#include "partition/extract.h"

#include <algorithm>

#include "partition/annotations.h"
#include "partition/region_function.h"
#include "partition/rewrite_functions.h"
#include "relay/children.h"
#include "relay/function_attrs.h"

namespace headrace::partition {

using relay::FunctionNode;

namespace {

// Replaces the regions of one body by calls.
class BodyExtractor {
 public:
  BodyExtractor(const Flow& flow, const Regions& regions, RegionNames& names, const PartitionOptions& options)
      : flow_(flow), regions_(regions), names_(names), options_(options), outer_(flow.nodes.size()) {
    members_.resize(regions.backend.size());
    uses_.resize(regions.backend.size());
    for (int32_t i = 0; i < flow.num_nodes(); ++i) {
      if (const int32_t at = region(i); at != kNone) members_[static_cast<size_t>(at)].push_back(i);
    }
    for (size_t i = 0; i < flow.uses.size(); ++i) {
      const int32_t from = region(flow.uses[i].from), to = region(flow.uses[i].to);
      if (from != kNone && from != to) uses_[static_cast<size_t>(from)].leaving.push_back(i);
      if (to != kNone && from != to) uses_[static_cast<size_t>(to)].entering.push_back(i);
    }
  }

  // Adds the regions' functions to the module of `result` and returns the body that calls them.
  Expr extracted(Partitioned& result) {
    const IRModule& module = result.module;
    for (const std::string& backend : regions_.backend) named_.push_back(names_.next(*module, backend));
    functions_.resize(named_.size());
    for (const int32_t unit : order_units(flow_, regions_)) {
      if (unit >= flow_.num_nodes()) {
        extract(static_cast<size_t>(unit - flow_.num_nodes()), result.before);
      } else if (region(unit) == kNone) {
        rebuild(unit, result.before);
      }
    }
    for (size_t at = 0; at < functions_.size(); ++at) {
      if (!functions_[at].first) continue;  // all that leaves it came in
      module->add_function(functions_[at].first, functions_[at].second);
      result.regions.push_back({named_[at].symbol, regions_.backend[at], count_calls(at)});
    }
    return outer(flow_.body, flow_.find(flow_.body));
  }

 private:
  struct Crossings {
    std::vector<size_t> entering, leaving;  // uses of the flow
  };

  int32_t region(int32_t node) const { return node == kNone ? kNone : regions_.region[static_cast<size_t>(node)]; }

  // The value, which is that of a node of the flow or of none, in the rewritten body.
  const Expr& outer(const Expr& value, int32_t node) const {
    return node == kNone ? value : outer_[static_cast<size_t>(node)];
  }

  void rebuild(int32_t i, CallsBefore& before) {
    const Expr& node = flow_.node(i);
    if (!relay::is_entered(node)) {
      outer_[static_cast<size_t>(i)] = node;
      return;
    }
    const std::span<const int32_t> from = flow_.children_of(i);
    children_.clear();
    relay::for_each_child(*node, [&](const ExprNode* child) {
      const int32_t at = from[children_.size()];
      children_.push_back(at == kNone ? ref(child) : outer_[static_cast<size_t>(at)]);
    });
    Expr& now = outer_[static_cast<size_t>(i)];
    now = retyped(node, relay::with_children(node, children_));
    if (const auto* call = node.as<relay::CallNode>(); call != nullptr && now != node)
      before.try_emplace(now.object(), call);
  }

  void extract(size_t at, CallsBefore& before) {
    RegionBuilder builder({regions_.backend[at], named_[at].number, options_.bind_constants});
    for (const size_t use : uses_[at].entering) {
      const Flow::Use& input = flow_.uses[use];
      if (!is_callee(input)) builder.add_input(input.value, outer(input.value, input.from));
    }
    for (const int32_t member : members_[at]) builder.add_member(flow_.node(member));
    for (const size_t use : uses_[at].leaving) builder.add_output(flow_.uses[use].value);
    if (builder.has_results()) {
      const GlobalVar var = make_global_var(named_[at].symbol);
      functions_[at] = {var, builder.function(named_[at].symbol)};
      builder.add_calls_before(functions_[at].second->body, before);
      builder.make_call(var, functions_[at].second->checked_type());
    }
    for (const size_t use : uses_[at].leaving) {
      Expr& outside = outer_[static_cast<size_t>(flow_.uses[use].from)];
      if (!outside) outside = builder.outside(flow_.uses[use].value);
    }
  }

  int64_t count_calls(size_t at) const {
    return std::count_if(members_[at].begin(), members_[at].end(),
                         [&](int32_t member) { return flow_.node(member).is<relay::CallNode>(); });
  }

  bool is_callee(const Flow::Use& use) const {
    const auto* call = flow_.node(use.to).as<relay::CallNode>();
    return call != nullptr && call->op == use.value;
  }

  const Flow& flow_;
  const Regions& regions_;
  RegionNames& names_;
  const PartitionOptions& options_;
  std::vector<std::vector<int32_t>> members_;
  std::vector<Crossings> uses_;
  std::vector<RegionName> named_;
  std::vector<std::pair<GlobalVar, relay::Function>> functions_;
  std::vector<Expr> outer_;  // by node: what it became; null for nodes that only their region uses
  std::vector<Expr> children_;
};

// Extracts from each function what `choose` finds in its flow.
template <typename Choose>
Partitioned extract_all(const IRModule& module, const PartitionOptions& options, Choose&& choose) {
  Partitioned result{snapshot(module), {}, 0, {}};
  bool changes = false;
  const IRModule rewritten = rewrite_entered_functions(module, [&](const std::string& name, const FunctionNode& fn) {
    Flow flow;
    Regions regions;
    choose(fn, flow, regions);
    if (regions.backend.empty()) {
      changes |= flow.body != fn.body;
      return flow.body;
    }
    RegionNames names(options.mod_name, name);
    changes = true;
    return BodyExtractor(flow, regions, names, options).extracted(result);
  });
  if (!changes) return {module, {}, result.fewest_regions, {}};
  // The regions' functions come after those that were there.
  for (const auto& [var, function] : rewritten->functions()) result.module->add_function(var, function, true);
  return result;
}

}  // namespace

Partitioned partition_graph(const IRModule& module, const PartitionOptions& options) {
  return extract_all(module, options, [](const FunctionNode& function, Flow& flow, Regions& regions) {
    flow.body = function.body;
    std::optional<Annotated> annotated = find_annotations(function.body);
    if (!annotated) return;
    flow = std::move(annotated->flow);
    for (int32_t& part : annotated->part) {
      if (part != kNone && annotated->compiler[static_cast<size_t>(part)] == kDefaultCompiler) part = kNone;
    }
    regions = number_regions(flow, annotated->part, annotated->compiler);
  });
}

Partitioned partition_by_labels(const IRModule& module, const Labels& labels, const PartitionOptions& options) {
  int64_t fewest = 0;
  Partitioned result = extract_all(module, options, [&](const FunctionNode& function, Flow& flow, Regions& regions) {
    flow = make_flow(function.body);
    std::vector<std::string> backend(flow.nodes.size());
    bool any = false;
    for (size_t i = 0; i < flow.nodes.size(); ++i) {
      const auto label = labels.find(flow.nodes[i].object());
      if (label == labels.end() || label->second.empty() || !is_computation(flow.nodes[i])) continue;
      if (const std::string fault = region_fault(flow.nodes[i]); !fault.empty())
        throw_at(flow.nodes[i]->span, "partition", fault);
      backend[i] = label->second;
      any = true;
    }
    if (!any) return;
    fewest += fewest_regions_of(flow, backend, options.one_call);
    regions = choose_regions(flow, std::move(backend), options.one_call);
  });
  result.fewest_regions = fewest;
  return result;
}

}  // namespace headrace::partition
