#include "passes/fuse/fuse_groups.h"

#include <unordered_set>

#include "graph/post_dominators.h"
#include "ops/call_fusion.h"
#include "ops/op_facts.h"
#include "relay/function_attrs.h"
#include "relay/leaves.h"
#include "relay/match.h"
#include "relay/op_keys.h"
#include "relay/visit.h"

namespace headrace::passes {

using ops::FusionKind;
using relay::CallNode;
using relay::FunctionNode;
using relay::LetNode;
using relay::TupleGetItemNode;
using relay::TupleNode;

namespace {

bool may_be_a_shape(const Expr& arg) {
  const auto* type = relay::tensor_type_of(arg);
  return type != nullptr && type->shape.size() <= 2 && (type->dtype.is_int() || type->dtype.is_uint()) &&
         !is_scalar_constant(arg);
}

// Returns whether the sizes of the call's result depend on the value of an operand, which is unknown inside a kernel.
bool is_sized_by_operand(const CallNode& call) {
  const auto* relation = call.as_op()->find(relay::kTypeRelation);
  if (relation == nullptr || std::none_of(call.args.begin(), call.args.end(), may_be_a_shape)) return false;
  std::vector<Type> types;
  for (const Expr& arg : call.args) types.push_back(arg->checked_type());
  const auto constant = [&](size_t i) {
    const Expr& arg = call.args.at(i);
    return is_scalar_constant(arg) ? arg.as<relay::ConstantNode>()->data : NDArray();
  };
  const auto value = [&](size_t i) {
    const NDArray data = constant(i);
    return data ? relay::known_integers(data) : std::nullopt;
  };
  try {
    const Type type = (*relation)({call, types, value, constant});
    return !type || relay::has_unknown_dim(type);
  } catch (const UserError&) {  // it must know
    return true;
  }
}

struct CallKind {
  FusionKind kind;
  hr_reason why_alone;  // set if the call is opaque
};

CallKind kind_of(const CallNode& call) {
  const OpNode& op = *call.as_op();
  // Alone these are views of their input, which no kernel copies.
  const ops::KeepsElements* keeps = op.find(ops::kKeepsElements);
  const bool is_view = keeps != nullptr && *keeps == ops::KeepsElements::view && !relay::is_stateful(op);
  if (is_view) return {FusionKind::opaque, HR_REASON_FUSE_VIEW};
  if (relay::has_unknown_dim(call.checked_type()) || is_sized_by_operand(call))
    return {FusionKind::opaque, HR_REASON_FUSE_DATA_SIZED};
  const FusionKind kind = ops::fusion_kind_of(call);
  return {kind, kind > FusionKind::anchor ? HR_REASON_FUSE_PATTERN : HR_REASON_NONE};
}

// The op calls of a body, numbered operands first, and the edges from calls to their users.
struct CallGraph {
  std::vector<Expr> calls;
  std::vector<FusionKind> kinds;
  std::vector<hr_reason> why_alone;  // set if a call is opaque
  std::vector<bool> is_exit;         // used by something that is not an op call
  std::vector<Expr> exits;           // by what: null for the end of the body
  std::vector<int64_t> num_tensors;  // operands and results, tuples taken apart
  std::vector<graph::Edge> edges;
};

class CallGraphBuilder {
 public:
  CallGraph build(const Expr& body) {
    std::vector<Expr> order;
    relay::post_order(body, relay::is_entered, [&](const Expr& node) { order.push_back(node); });
    for (const Expr& node : order) {
      if (relay::op_call(node) != nullptr) add_call(node);
    }
    mark_exits(body, order);
    return std::move(graph_);
  }

 private:
  void add_call(const Expr& node) {
    const auto& call = *node.as<CallNode>();
    const auto index = static_cast<int32_t>(graph_.calls.size());
    index_of_[node.object()] = index;
    graph_.calls.push_back(node);
    const CallKind kind = kind_of(call);
    graph_.kinds.push_back(kind.kind);
    graph_.why_alone.push_back(kind.why_alone);
    graph_.is_exit.push_back(false);
    graph_.exits.emplace_back();
    graph_.num_tensors.push_back(static_cast<int64_t>(leaves_of(call.checked_type()).size()));
    for (const Expr& item : relay::items_of_args(call)) {
      ++graph_.num_tensors.back();
      const auto it = index_of_.find(producer_of(item).object());
      if (it == index_of_.end()) continue;
      const auto weight = static_cast<int32_t>(ops::read_kind(call, graph_.kinds.back(), item->checked_type()));
      graph_.edges.push_back({it->second, index, weight});
    }
  }

  // By each expression that is used by anything but an op call: what uses it, the tuples and ends of lets between
  // passed over; null for the end of the body, where nothing else does.
  using Users = std::unordered_map<const Object*, Expr>;

  // From the users down: what is used by anything but an op call, directly or as part of a tuple.
  void mark_exits(const Expr& body, const std::vector<Expr>& order) {
    Users outside{{body.object(), Expr()}};
    for (size_t i = order.size(); i-- > 0;) {
      const Expr& node = order[i];
      const auto used = outside.find(node.object());
      if (relay::op_call(node) != nullptr) {
        if (used != outside.end()) mark_exit(node, used->second);
        mark_odd_args(node, outside);
      } else if (used != outside.end() || !(node.is<TupleNode>() || node.is<TupleGetItemNode>())) {
        const Expr around = used == outside.end() ? node : used->second;
        const auto* let = node.as<LetNode>();
        for (const Expr& child : relay::children_of(node)) {
          const bool is_end = is_passed_over(node) || (let != nullptr && child == let->body);
          mark(child, is_end ? around : node, outside);
        }
      }
    }
  }

  void mark_exit(const Expr& node, const Expr& user) {
    const auto index = static_cast<size_t>(index_of_.at(node.object()));
    graph_.is_exit[index] = true;
    graph_.exits[index] = user;
  }

  static void mark(const Expr& expr, const Expr& user, Users& outside) {
    Expr& known = outside[expr.object()];
    if (!known) known = user;
  }

  // A tuple, and an item of an op's result.
  static bool is_passed_over(const Expr& node) {
    const auto* item = node.as<TupleGetItemNode>();
    return node.is<TupleNode>() || (item != nullptr && !item->tuple.is<TupleNode>());
  }

  // Arguments that are neither an op call's result, nor an item of one, nor a tuple of such.
  static void mark_odd_args(const Expr& node, Users& outside) {
    for (const Expr& item : relay::items_of_args(*node.as<CallNode>())) {
      if (relay::op_call(producer_of(item)) == nullptr) mark(item, node, outside);
    }
  }

  CallGraph graph_;
  std::unordered_map<const Object*, int32_t> index_of_;
};

// Joins calls by union-find; the representative of a set is its last call.
//
// A result can stay inside a kernel only if all calls that read it are in the kernel, too. Post-dominators give the
// least set of calls for which this holds. The immediate post-dominator of a call, its *sink*, is the first call that
// is on every path from the call to an end; a call that is used by anything but op calls is an end. So of a call, its
// sink and all calls on paths between them, only the sink is used elsewhere. fuse() considers exactly this set for each
// call, operands first. A call that was joined inside another set has its sink in that set, so it needs no set of its
// own. Therefore a call that fuse() still considers is the last one of its group, and a join leaves one last call, that
// of the sink's group.
//
// The tree of post-dominators also has, for each call, the most restrictive way in which a call on the paths reads its
// operand (dominators_.weight). try_fuse() refuses most sets by this number alone. Only then join() walks the paths; it
// checks the kinds of the groups that it meets, and stops after max_depth calls.
class Fuser {
 public:
  Fuser(const CallGraph& calls, const FuseOptions& options)
      : calls_(calls),
        graph_(static_cast<int32_t>(calls.calls.size()), calls.edges),
        dominators_(graph::post_dominators(graph_, calls.is_exit)),
        options_(options),
        kinds_(calls.kinds),
        stops_(calls.calls.size()),
        root_(calls.calls.size()),
        size_(calls.calls.size(), 1),
        num_tensors_(calls.num_tensors),
        seen_(calls.calls.size(), -1),
        counted_(calls.calls.size(), -1) {
    for (size_t i = 0; i < root_.size(); ++i) root_[i] = static_cast<int32_t>(i);
  }

  std::vector<FuseGroup> groups() {
    fuse();
    std::vector<std::vector<Expr>> members(root_.size());
    for (int32_t i = 0; i < graph_.num_nodes(); ++i) members[index(find(i))].push_back(call(i));
    std::vector<FuseGroup> result;
    for (auto& group : members) {
      if (!group.empty()) result.push_back({std::move(group)});
    }
    return result;
  }

  std::vector<FuseStop> stops() {
    fuse();
    std::vector<FuseStop> result;
    for (int32_t i = 0; i < graph_.num_nodes(); ++i) {
      if (find(i) != i) continue;
      std::vector<Expr> users = users_of(i);
      const Expr& exit = calls_.exits[index(i)];
      if (dominators_.parent(i) >= 0) {
        const Stop& stop = stops_[index(i)];
        result.push_back({stop.code, call(i), std::move(users), false, call(stop.other), kinds_[index(i)],
                          stop.other_kind, stop.is_other_group});
      } else if (!users.empty()) {
        result.push_back({HR_REASON_FUSE_MULTIPLE_USERS, call(i), std::move(users), calls_.is_exit[index(i)], exit});
      } else if (exit) {
        const bool is_item = exit.is<TupleGetItemNode>();
        result.push_back({is_item ? HR_REASON_FUSE_TUPLE : HR_REASON_FUSE_SCOPE, call(i), {}, true, exit});
      }
    }
    return result;
  }

 private:
  enum class Rule : uint8_t { anchor, broadcast, injective };

  static bool allows(Rule rule, FusionKind kind, bool is_sink) {
    switch (rule) {
      case Rule::anchor:
        return kind <= FusionKind::broadcast;
      case Rule::broadcast:
        return kind <= FusionKind::injective ||
               (is_sink && (kind == FusionKind::reduction || kind == FusionKind::anchor));
      case Rule::injective:
        return kind <= FusionKind::injective;
    }
    return false;
  }

  // The reason why a call was not joined with its post-dominator, and the call that prevented it.
  struct Stop {
    hr_reason code = HR_REASON_NONE;
    int32_t other = -1;
    FusionKind other_kind = FusionKind::opaque;  // as in FuseStop
    bool is_other_group = false;
  };

  // Anchors, elementwise and broadcast ops choose first, so that injective ones do not separate them.
  void fuse() {
    for (const bool injective_too : {false, true}) {
      for (int32_t node = 0; node < graph_.num_nodes(); ++node) {
        const int32_t sink = dominators_.parent(node);
        if (sink >= 0 && find(node) != find(sink)) stops_[index(node)] = try_fuse(node, sink, injective_too);
      }
    }
  }

  Stop try_fuse(int32_t node, int32_t sink, bool injective_too) {
    const FusionKind kind = kinds_[index(node)];
    const auto way = static_cast<FusionKind>(dominators_.weight(node));
    if (kind == FusionKind::anchor || kind <= FusionKind::broadcast) {
      if (!ops::may_share_kernel(kind, way)) return stop_on_way(node, sink);
      return join(node, sink, kind == FusionKind::anchor ? Rule::anchor : Rule::broadcast);
    }
    if (kind == FusionKind::injective) return injective_too ? join(node, sink, Rule::injective) : Stop();
    return {kind == FusionKind::reduction ? HR_REASON_FUSE_KINDS : calls_.why_alone[index(node)], node};
  }

  // `other` is the call with which `node` cannot share a kernel, because of its kind or its group's kind.
  Stop stop_at(int32_t node, int32_t other, FusionKind other_kind, bool is_group) {
    const hr_reason why_alone = calls_.why_alone[index(other)];
    if (why_alone != HR_REASON_NONE) return {why_alone, other};
    const bool are_anchors =
        kinds_[index(find(node))] == FusionKind::anchor && kinds_[index(find(other))] == FusionKind::anchor;
    return {are_anchors ? HR_REASON_FUSE_ANCHORS : HR_REASON_FUSE_KINDS, other, other_kind, is_group};
  }

  // Returns a call on the paths from `node` to `sink` that reads its operand as dominators_.weight(node) says. Searches
  // no more calls than a group may have.
  Stop stop_on_way(int32_t node, int32_t sink) {
    ++round_;
    between_.assign(1, node);
    for (size_t next = 0; next < between_.size(); ++next) {
      for (const graph::Edge& edge : graph_.out(between_[next])) {
        if (edge.weight == dominators_.weight(node))
          return stop_at(node, edge.to, static_cast<FusionKind>(edge.weight), false);
        if (edge.to == sink || seen_[index(edge.to)] == round_) continue;
        if (between_.size() == static_cast<size_t>(options_.max_depth)) return {HR_REASON_FUSE_DEPTH, sink};
        seen_[index(edge.to)] = round_;
        between_.push_back(edge.to);
      }
    }
    return {HR_REASON_FUSE_DEPTH, sink};
  }

  // Joins `node`, `sink` and all calls between them if the rule allows each of their groups and if the result is not
  // too large.
  Stop join(int32_t node, int32_t sink, Rule rule) {
    ++round_;
    between_.clear();
    int64_t total = 0, tensors = 0;
    const auto count = [&](int32_t n) {
      const int32_t root = find(n);
      if (counted_[index(root)] == round_) return Stop();
      counted_[index(root)] = round_;
      total += size_[index(root)];
      tensors += num_tensors_[index(root)];
      if (total > options_.max_depth) return Stop{HR_REASON_FUSE_DEPTH, n};
      // Each call but the last hands at least one tensor on inside: a result of its own and an operand of another.
      return tensors - 2 * (total - 1) > options_.max_args ? Stop{HR_REASON_FUSE_TENSORS, n} : Stop();
    };
    const auto admit = [&](int32_t n) {
      const FusionKind kind = kinds_[index(find(n))];
      return allows(rule, kind, n == sink) ? count(n) : stop_at(node, n, kind, true);
    };
    for (const Stop& stop : {count(node), admit(sink)}) {
      if (stop.code != HR_REASON_NONE) return stop;
    }
    between_.push_back(node);
    seen_[index(node)] = round_;
    for (size_t next = 0; next < between_.size(); ++next) {
      for (const graph::Edge& edge : graph_.out(between_[next])) {
        if (edge.to == sink || seen_[index(edge.to)] == round_) continue;
        if (const Stop stop = admit(edge.to); stop.code != HR_REASON_NONE) return stop;
        seen_[index(edge.to)] = round_;
        between_.push_back(edge.to);
      }
    }
    for (const int32_t n : between_) merge(find(n), find(sink));
    return {};
  }

  void merge(int32_t from, int32_t into) {
    if (from == into) return;
    root_[index(from)] = into;
    size_[index(into)] += size_[index(from)];
    num_tensors_[index(into)] += num_tensors_[index(from)];
    // A group with an anchor has the anchor's kind; otherwise its kind is that of the last call.
    if (kinds_[index(from)] == FusionKind::anchor) kinds_[index(into)] = FusionKind::anchor;
  }

  int32_t find(int32_t node) {
    while (root_[index(node)] != node) {
      root_[index(node)] = root_[index(root_[index(node)])];
      node = root_[index(node)];
    }
    return node;
  }

  std::vector<Expr> users_of(int32_t node) const {
    std::vector<Expr> users;
    for (const graph::Edge& edge : graph_.out(node)) {
      if (users.empty() || users.back() != call(edge.to)) users.push_back(call(edge.to));
    }
    return users;
  }

  const Expr& call(int32_t node) const { return calls_.calls[index(node)]; }
  static size_t index(int32_t node) { return static_cast<size_t>(node); }

  const CallGraph& calls_;
  graph::IndexGraph graph_;
  graph::AncestorTree dominators_;
  FuseOptions options_;
  std::vector<FusionKind> kinds_;  // at a representative, its group's kind
  std::vector<Stop> stops_;        // filled by the last attempt
  std::vector<int32_t> root_;
  std::vector<int64_t> size_, num_tensors_;
  std::vector<int32_t> seen_, counted_;  // the round in which a call was met, a group counted
  std::vector<int32_t> between_;
  int32_t round_ = 0;
};

}  // namespace

bool is_scalar_constant(const Expr& arg) {
  const auto* constant = arg.as<relay::ConstantNode>();
  return constant != nullptr && constant->data.shape().empty();
}

const Expr& producer_of(const Expr& arg) {
  const auto* item = arg.as<TupleGetItemNode>();
  return item == nullptr ? arg : item->tuple;
}

std::vector<FuseGroup> find_fuse_groups(const Expr& body, const FuseOptions& options) {
  const CallGraph calls = CallGraphBuilder().build(body);
  return Fuser(calls, options).groups();
}

std::vector<FuseStop> find_fuse_stops(const Expr& body, const FuseOptions& options) {
  const CallGraph calls = CallGraphBuilder().build(body);
  return Fuser(calls, options).stops();
}

}  // namespace headrace::passes
