#include "partition/regions.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "graph/merge_regions.h"
#include "graph/quotient.h"
#include "relay/function_attrs.h"
#include "relay/visit.h"
#include "relay/match.h"

namespace headrace::partition {

using relay::CallNode;
using relay::FunctionNode;
using relay::TupleGetItemNode;
using relay::TupleNode;

namespace {

std::string_view kind_of(const Expr& expr) {
  if (expr.is<relay::RefCreateNode>() || expr.is<relay::RefReadNode>() || expr.is<relay::RefWriteNode>())
    return "a reference";
  return "";
}

}  // namespace

bool is_computation(const Expr& expr) {
  if (const auto* call = expr.as<CallNode>()) return !call->args.empty();
  if (const auto* tuple = expr.as<TupleNode>()) return !tuple->items.empty();
  return expr.is<TupleGetItemNode>() || !kind_of(expr).empty();
}

std::string region_fault(const Expr& expr) {
  if (const auto kind = kind_of(expr); !kind.empty()) return fmt::format("{} stays in the program", kind);
  const auto* call = expr.as<CallNode>();
  if (call == nullptr || call->as_op() != nullptr) return "";
  const auto* function = call->op.as<FunctionNode>();
  if (function == nullptr) return "only calls of ops and of composite functions can be computed elsewhere";
  if (!relay::is_sealed(*function)) return "a function without the attribute Composite is not computed elsewhere";
  return relay::free_vars(call->op).empty() ? ""
                                            : "a composite function that captures variables is not computed elsewhere";
}

bool has_open_sizes(const Type& type) {
  const std::vector<Type> leaves = leaves_of(type);
  return std::any_of(leaves.begin(), leaves.end(), [](const Type& leaf) {
    const auto* tensor = leaf.as<TensorTypeNode>();
    return tensor != nullptr && !as_shape(tensor->shape);
  });
}

namespace {

// The users of all nodes, in the order of the uses; kNone for the result of the body.
class Users {
 public:
  explicit Users(const Flow& flow) : begins_(flow.nodes.size() + 1, 0) {
    for (const Flow::Use& use : flow.uses) {
      if (use.from != kNone) ++begins_[static_cast<size_t>(use.from) + 1];
    }
    std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
    users_.resize(begins_.back());
    std::vector<size_t> next(begins_.begin(), begins_.end() - 1);
    for (const Flow::Use& use : flow.uses) {
      if (use.from != kNone) users_[next[static_cast<size_t>(use.from)]++] = use.to;
    }
  }
  std::span<const int32_t> of(size_t node) const {
    return std::span<const int32_t>(users_).subspan(begins_[node], begins_[node + 1] - begins_[node]);
  }

 private:
  std::vector<size_t> begins_;
  std::vector<int32_t> users_;
};

// Gives tuples and items of tuples the backends of the nodes that they connect.
class TupleLabels {
 public:
  TupleLabels(const Flow& flow, std::vector<std::string>& backend) : flow_(flow), backend_(backend) {
    const auto is_open = [&](size_t i) {
      return backend[i].empty() && !flow.nodes[i].is<CallNode>() && is_computation(flow.nodes[i]);
    };
    std::vector<size_t> open;
    for (size_t i = 0; i < flow.nodes.size(); ++i) {
      if (is_open(i)) open.push_back(i);
    }
    if (open.empty()) return;
    const Users users(flow);
    // Users first: a tuple of tuples passes on what it gets.
    for (size_t i = open.size(); i-- > 0;) {
      if (flow.nodes[open[i]].is<TupleNode>()) adopt(open[i], users.of(open[i]));
    }
    std::vector<int32_t> items;
    for (const size_t i : open) {
      if (!is_open(i) || !region_fault(flow.nodes[i]).empty()) continue;
      const std::span<const int32_t> children = flow.children_of(static_cast<int32_t>(i));
      items.assign(children.begin(), children.end());
      std::erase(items, kNone);
      adopt(i, items);
    }
  }

 private:
  // Takes the backend that all of these have, if one of them can be in a region with the node.
  void adopt(size_t node, std::span<const int32_t> others) {
    const auto backend_of = [&](int32_t other) {
      return other == kNone ? std::string() : backend_[static_cast<size_t>(other)];
    };
    const auto is_near = [&](int32_t other) {
      return other != kNone && flow_.scope[static_cast<size_t>(other)] == flow_.scope[node];
    };
    if (std::none_of(others.begin(), others.end(), is_near)) return;
    const std::string first = backend_of(others[0]);
    if (std::all_of(others.begin(), others.end(), [&](int32_t other) { return backend_of(other) == first; }))
      backend_[node] = first;
  }

  const Flow& flow_;
  std::vector<std::string>& backend_;
};

// The node that alone takes each node; kNone where there is none, or are several.
std::vector<int32_t> only_users(const Flow& flow) {
  constexpr int32_t kUnknown = -2;
  std::vector<int32_t> users(flow.nodes.size(), kUnknown);
  for (const Flow::Use& use : flow.uses) {
    if (use.from == kNone) continue;
    int32_t& user = users[static_cast<size_t>(use.from)];
    user = user == kUnknown || user == use.to ? use.to : kNone;
  }
  return users;
}

// One colour for each backend and scope. Of backends whose regions have one call, each call has its own, which a tuple
// for it alone shares; other tuples and items have none.
std::vector<int32_t> colours_of(const Flow& flow, const std::vector<std::string>& backend,
                                const std::set<std::string>& one_call) {
  std::map<std::pair<std::string_view, int32_t>, int32_t> known;
  std::vector<int32_t> colours(flow.nodes.size(), graph::kNoColour);
  const std::vector<int32_t> user = one_call.empty() ? std::vector<int32_t>() : only_users(flow);
  int32_t next = 0;
  for (size_t i = flow.nodes.size(); i-- > 0;) {  // users first
    if (backend[i].empty()) continue;
    if (!one_call.contains(backend[i])) {
      const auto [it, is_new] = known.try_emplace({backend[i], flow.scope[i]}, next);
      if (is_new) ++next;
      colours[i] = it->second;
    } else if (flow.nodes[i].is<CallNode>()) {
      colours[i] = next++;
    } else if (flow.nodes[i].is<TupleNode>() && user[i] != kNone) {
      colours[i] = colours[static_cast<size_t>(user[i])];
    }
  }
  return colours;
}

}  // namespace

void label_tuples(const Flow& flow, std::vector<std::string>& backend) { TupleLabels(flow, backend); }

Regions choose_regions(const Flow& flow, std::vector<std::string> backend, const std::set<std::string>& one_call) {
  label_tuples(flow, backend);
  const std::vector<int32_t> colours = colours_of(flow, backend, one_call);
  std::vector<int32_t> group = graph::merge_regions(flow.graph(), colours);
  std::vector<std::string> of_group(flow.nodes.size());
  for (size_t i = 0; i < group.size(); ++i) {
    if (colours[i] == graph::kNoColour) {
      group[i] = kNone;
    } else {
      of_group[static_cast<size_t>(group[i])] = backend[i];
    }
  }
  return number_regions(flow, group, of_group);
}

int64_t fewest_regions_of(const Flow& flow, std::vector<std::string> backend, const std::set<std::string>& one_call) {
  label_tuples(flow, backend);
  return graph::region_lower_bound(flow.graph(), colours_of(flow, backend, one_call));
}

namespace {

// Takes tuples out of the groups that do not use them inside: readers outside of a group make the tuple themselves.
void trim_tuples(const Flow& flow, std::vector<int32_t>& group) {
  std::vector<bool> is_used(group.size(), false);
  for (size_t i = group.size(); i-- > 0;) {  // users first
    if (!is_used[i] && flow.nodes[i].is<TupleNode>()) group[i] = kNone;
    if (group[i] == kNone) continue;
    for (const int32_t item : flow.children_of(static_cast<int32_t>(i))) {
      if (item != kNone && group[static_cast<size_t>(item)] == group[i]) is_used[static_cast<size_t>(item)] = true;
    }
  }
}

}  // namespace

Regions number_regions(const Flow& flow, std::vector<int32_t> group, const std::vector<std::string>& backend) {
  trim_tuples(flow, group);
  std::vector<bool> has_call(backend.size(), false);
  for (size_t i = 0; i < group.size(); ++i) {
    if (group[i] != kNone && flow.nodes[i].is<CallNode>()) has_call[static_cast<size_t>(group[i])] = true;
  }
  std::vector<int32_t> number(backend.size(), kNone);
  Regions regions;
  for (const Flow::Use& use : flow.uses) {
    const int32_t from = use.from == kNone ? kNone : group[static_cast<size_t>(use.from)];
    if (from == kNone || !has_call[static_cast<size_t>(from)] || number[static_cast<size_t>(from)] != kNone) continue;
    if (use.to != kNone && group[static_cast<size_t>(use.to)] == from) continue;
    number[static_cast<size_t>(from)] = static_cast<int32_t>(regions.backend.size());
    regions.backend.push_back(backend[static_cast<size_t>(from)]);
  }
  for (const int32_t at : group) regions.region.push_back(at == kNone ? kNone : number[static_cast<size_t>(at)]);
  return regions;
}

std::vector<int32_t> order_units(const Flow& flow, const Regions& regions) {
  std::vector<int32_t> group(flow.nodes.size());
  const auto num_regions = static_cast<int32_t>(regions.backend.size());
  for (size_t i = 0; i < group.size(); ++i)
    group[i] = regions.region[i] == kNone ? static_cast<int32_t>(i) : flow.num_nodes() + regions.region[i];
  graph::QuotientOrder order = graph::order_quotient(flow.graph(), group, flow.num_nodes() + num_regions);
  if (order.cycle.empty()) return std::move(order.order);
  const auto at =
      std::find_if(order.cycle.begin(), order.cycle.end(), [&](int32_t i) { return i >= flow.num_nodes(); });
  const std::string& backend = regions.backend[static_cast<size_t>(*at - flow.num_nodes())];
  const auto member = std::find(group.begin(), group.end(), *at) - group.begin();
  throw_at(flow.node(static_cast<int32_t>(member))->span, "PartitionGraph",
           fmt::format("a part for the compiler '{}' needs a value that depends on another value of the part; close it "
                       "before that value and open a new one behind",
                       backend));
}

}  // namespace headrace::partition
