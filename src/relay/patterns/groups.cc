#include "relay/patterns/groups.h"

#include <algorithm>

#include "relay/match.h"
#include "relay/op_keys.h"
#include "relay/patterns/matcher.h"
#include "relay/visit.h"

namespace headrace::relay {

namespace {

using Objects = std::unordered_set<const Object*>;

// The size of the matches after which further ways are tried, for each node of the graph and beyond that.
constexpr size_t kPairsForNode = 64, kMorePairs = 1'000'000;

// Ops and names mean the same everywhere: they are parts of any group that uses them.
bool is_global(const Expr& expr) { return expr.is<OpNode>() || expr.is<GlobalVarNode>() || expr.is<ConstructorNode>(); }

// Returns the operands that are evaluated where the expression is; for a let, the value.
std::vector<Expr> operands_outside(const Expr& expr) {
  if (expr.is<FunctionNode>()) return {};
  if (const auto* let = expr.as<LetNode>()) return {let->value};
  if (const auto* branch = expr.as<IfNode>()) return {branch->cond};
  if (const auto* match = expr.as<MatchNode>()) return {match->data};
  return children_of(expr);
}

// Returns whether a pattern stands for a part of the program by its structure, and not for any input.
bool is_structural(const DFPattern& pattern) {
  return pattern.is<CallPatternNode>() || pattern.is<TuplePatternNode>() || pattern.is<TupleGetItemPatternNode>() ||
         pattern.is<IfPatternNode>() || pattern.is<LetPatternNode>() || pattern.is<FunctionPatternNode>();
}

bool keeps_constants(const DFPattern& pattern) {
  const auto* expr = pattern.as<ExprPatternNode>();
  return pattern.is<ConstantPatternNode>() || (expr != nullptr && expr->expr.is<ConstantNode>());
}

std::vector<Var> binders_of(const Expr& expr) {
  if (const auto* function = expr.as<FunctionNode>()) return function->params.to_vector();
  if (const auto* let = expr.as<LetNode>()) return {let->var};
  std::vector<Var> vars;
  const auto* match = expr.as<MatchNode>();
  for (size_t i = 0; match != nullptr && i < match->clauses.size(); ++i) {
    for (const Var& var : pattern_vars(match->clauses[i]->lhs)) vars.push_back(var);
  }
  return vars;
}

bool has_own_effect(const Expr& expr) {
  const CallNode* call = op_call(expr);
  return (call != nullptr && is_stateful(*call->as_op())) || expr.is<RefCreateNode>() || expr.is<RefReadNode>() ||
         expr.is<RefWriteNode>();
}

// Visits the nodes below `root` in post-order, each once, without those in `stops`.
template <typename Operands, typename Visit>
void walk_until(const Expr& root, const Objects& stops, Operands&& operands, Visit&& visit) {
  struct Frame {
    Expr expr;
    std::vector<Expr> operands;
    size_t next = 0;
  };
  Objects seen;
  std::vector<Frame> stack{{root, operands(root)}};
  seen.insert(root.object());
  while (!stack.empty()) {
    Frame& top = stack.back();
    if (top.next == top.operands.size()) {
      visit(top.expr);
      stack.pop_back();
      continue;
    }
    const Expr next = top.operands[top.next++];
    if (seen.insert(next.object()).second)
      stack.push_back({next, stops.contains(next.object()) ? std::vector<Expr>() : operands(next)});
  }
}

// Makes one match a group.
class GroupMaker {
 public:
  GroupMaker(const PatternIndex& pattern, const std::vector<Matcher::Pair>& pairs, const Expr& root)
      : pattern_(pattern), matched_(pattern.nodes.size()) {
    group_.root = root;
    std::vector<Objects> seen(matched_.size());
    for (const auto& [node, expr] : pairs) {
      const auto id = static_cast<size_t>(node);
      if (seen[id].insert(expr.object()).second) matched_[id].push_back(expr);
    }
  }

  PatternGroup make() {
    find_structure();
    find_candidates();
    find_inputs();
    find_parts();
    for (size_t i = 0; i < matched_.size(); ++i) {
      if (!matched_[i].empty()) group_.matches.emplace_back(static_cast<int>(i), matched_[i]);
    }
    return std::move(group_);
  }

 private:
  const DFPattern& node_at(size_t i) const { return pattern_.nodes[i].pattern; }

  void find_structure() {
    const auto add_all = [&](int node) {
      for (const Expr& expr : matched_[static_cast<size_t>(node)]) structure_.insert(expr.object());
    };
    structure_.insert(group_.root.object());
    for (size_t i = 0; i < matched_.size(); ++i) {
      if (is_structural(node_at(i))) add_all(static_cast<int>(i));
      if (!node_at(i).is<DominatorPatternNode>()) continue;
      add_all(pattern_.nodes[i].children[0]);
      add_all(pattern_.nodes[i].children[1]);
    }
  }

  void add_candidate(const Expr& expr) {
    if (structure_.contains(expr.object()) || is_global(expr) || expr.is<FunctionNode>()) return;
    if (stops_.insert(expr.object()).second) candidates_.push_back(expr);
  }

  // Finds what the leaves of the pattern stand for, in the order of the pattern.
  void find_candidates() {
    for (size_t i = 0; i < matched_.size(); ++i) {
      const DFPattern& pattern = node_at(i);
      const auto* call = pattern.as<CallPatternNode>();
      const auto* tuple = pattern.as<TuplePatternNode>();
      for (const Expr& expr : matched_[i]) {
        if (tuple != nullptr && !tuple->items) {
          for (const Expr& item : expr.as<TupleNode>()->items) add_candidate(item);
        } else if (call != nullptr && !call->args) {
          for (const Expr& arg : expr.as<CallNode>()->args) add_candidate(arg);
        } else if (pattern_.nodes[i].children.empty() && !(keeps_constants(pattern) && expr.is<ConstantNode>())) {
          add_candidate(expr);
        }
      }
    }
  }

  // Keeps the candidates that are evaluated where the group is.
  void find_inputs() {
    Objects met;
    walk_until(group_.root, stops_, operands_outside, [&](const Expr& expr) { met.insert(expr.object()); });
    std::erase_if(candidates_, [&](const Expr& expr) { return !met.contains(expr.object()); });
    stops_.clear();
    for (const Expr& expr : candidates_) stops_.insert(expr.object());
    group_.inputs = candidates_;
  }

  void find_parts() {
    Objects bound;
    std::vector<Expr> vars;
    walk_until(group_.root, stops_, children_of_expr, [&](const Expr& expr) {
      if (stops_.contains(expr.object())) return;
      for (const Var& var : binders_of(expr)) bound.insert(var.object());
      if (expr.is<VarNode>()) vars.push_back(expr);
      group_.parts.push_back(expr);
    });
    const auto is_free = [&](const Expr& expr) { return expr.is<VarNode>() && !bound.contains(expr.object()); };
    std::copy_if(vars.begin(), vars.end(), std::back_inserter(group_.inputs), is_free);
    std::erase_if(group_.parts, is_free);
  }

  static std::vector<Expr> children_of_expr(const Expr& expr) { return children_of(expr); }

  const PatternIndex& pattern_;
  std::vector<std::vector<Expr>> matched_;  // by node of the pattern
  Objects structure_;                       // nodes that are certainly no inputs
  Objects stops_;
  std::vector<Expr> candidates_;
  PatternGroup group_;
};

class GroupFinder {
 public:
  GroupFinder(const PatternIndex& pattern, const ExprIndex& graph, const GroupOptions& options)
      : pattern_(pattern), graph_(graph), options_(options), matcher_(pattern, graph), taken_(graph.nodes().size()) {}

  std::vector<PatternGroup> find() {
    const std::vector<Expr>& nodes = graph_.nodes();
    const std::vector<bool> is_open = find_open();
    for (size_t i = nodes.size(); i > 0; --i) {
      const Expr& root = nodes[i - 1];
      if (!is_open[i - 1] || taken_[i - 1]) continue;
      if (!matcher_.match(root) || take(group_at(root), true)) continue;
      while (may_try_again() && matcher_.match_again() && !take(group_at(root), false)) {
      }
    }
    return std::move(groups_);
  }

 private:
  PatternGroup group_at(const Expr& root) const { return GroupMaker(pattern_, matcher_.pairs(), root).make(); }

  // Keeps the search near-linear where large matches are refused at many places.
  bool may_try_again() {
    const size_t most = graph_.nodes().size() * kPairsForNode + kMorePairs;
    pairs_tried_ += matcher_.pairs().size() + 1;
    return pairs_tried_ <= most;
  }

  bool is_entered(const Expr& expr) const {
    const auto* function = expr.as<FunctionNode>();
    if (function == nullptr || expr == graph_.nodes().back()) return true;
    return options_.enter ? options_.enter(expr) : !function->attrs.contains(kPartitionedFromPattern);
  }

  // Finds the nodes that are outside of functions that matches are not looked for in.
  std::vector<bool> find_open() const {
    const std::vector<Expr>& nodes = graph_.nodes();
    if (std::all_of(nodes.begin(), nodes.end(), [&](const Expr& expr) { return is_entered(expr); }))
      return std::vector<bool>(nodes.size(), true);
    std::vector<bool> is_open(nodes.size());
    std::vector<Expr> stack{nodes.back()};
    is_open.back() = true;
    while (!stack.empty()) {
      const Expr expr = std::move(stack.back());
      stack.pop_back();
      for (const Expr& child : children_of(expr)) {
        const auto id = static_cast<size_t>(graph_.id_of(child));
        if (is_open[id] || !is_entered(child)) continue;
        is_open[id] = true;
        stack.push_back(child);
      }
    }
    return is_open;
  }

  // Returns whether the match becomes a group.
  bool take(PatternGroup group, bool is_first) {
    if (!is_valid(group)) return false;
    if (options_.accepts && !options_.accepts(group, is_first ? group.root : piece_of(group))) return false;
    for (const Expr& part : group.parts) {
      if (counts(part)) taken_[static_cast<size_t>(graph_.id_of(part))] = true;
    }
    groups_.push_back(std::move(group));
    return true;
  }

  // Constants, functions and names may be in several groups, and used outside of them.
  static bool counts(const Expr& part) {
    return !is_global(part) && !part.is<ConstantNode>() && !part.is<FunctionNode>() && !part.is<VarNode>();
  }

  bool is_valid(const PatternGroup& group) const {
    Objects inside;
    for (const Expr& part : group.parts) inside.insert(part.object());
    if (!options_.takes_leaves && std::none_of(group.parts.begin(), group.parts.end(), counts)) return false;
    return std::all_of(group.parts.begin(), group.parts.end(), [&](const Expr& part) {
      return !counts(part) || (!taken_[static_cast<size_t>(graph_.id_of(part))] && !has_own_effect(part) &&
                               (part == group.root || stays_inside(part, inside, group.root)));
    });
  }

  bool stays_inside(const Expr& part, const Objects& inside, const Expr& root) const {
    const std::vector<int32_t>& users = graph_.users_of(graph_.id_of(part));
    return std::all_of(users.begin(), users.end(), [&](int32_t id) {
      const Expr& user = graph_.nodes()[static_cast<size_t>(id)];
      return inside.contains(user.object()) || graph_.dominates(root, user);
    });
  }

  const PatternIndex& pattern_;
  const ExprIndex& graph_;
  const GroupOptions& options_;
  Matcher matcher_;
  std::vector<bool> taken_;  // by number of the node
  size_t pairs_tried_ = 0;   // pairs of the matches that did not become groups
  std::vector<PatternGroup> groups_;
};

// Returns the word for a part in PartitionedFromPattern; empty for parts that it leaves out.
std::string word_of(const Expr& part) {
  if (const auto* call = part.as<CallNode>()) return call->as_op() == nullptr ? "Call_" : call->as_op()->name + "_";
  if (const auto* item = part.as<TupleGetItemNode>()) return fmt::format("TupleGetItem{}_", item->index);
  if (part.is<FunctionNode>()) return "Function";
  if (part.is<TupleNode>()) return "Tuple_";
  if (part.is<LetNode>()) return "Let_";
  if (part.is<IfNode>()) return "If_";
  return part.is<MatchNode>() ? "Match_" : "";
}

Type declared_type(const Expr& expr) {
  if (expr->has_checked_type()) return expr->checked_type();
  const auto* var = expr.as<VarNode>();
  return var == nullptr ? Type() : var->type_annotation;
}

bool may_be_shape(const Expr& input) {
  const auto* tensor = tensor_type_of(input);
  return tensor != nullptr && tensor->shape.size() <= 1 && (tensor->dtype.is_int() || tensor->dtype.is_uint());
}

}  // namespace

std::vector<PatternGroup> find_groups(const PatternIndex& pattern, const ExprIndex& graph,
                                      const GroupOptions& options) {
  return GroupFinder(pattern, graph, options).find();
}

bool has_shape_input(const PatternGroup& group) {
  return std::any_of(group.inputs.begin(), group.inputs.end(), may_be_shape);
}

Expr piece_of(const PatternGroup& group) {
  std::unordered_map<const Object*, Expr> made;
  for (size_t i = 0; i < group.inputs.size(); ++i) {
    const Expr& input = group.inputs[i];
    Expr& own = made[input.object()];
    own = input.is<VarNode>() || input.is<ConstantNode>()
              ? input
              : Expr(make_var(fmt::format("input_{}", i), declared_type(input), input->span));
    if (input->has_checked_type() && !own->has_checked_type()) own->set_checked_type(input->checked_type());
  }
  for (const Expr& part : group.parts) {
    std::vector<Expr> children;
    for (const Expr& child : children_of(part)) children.push_back(made.at(child.object()));
    Expr& own = made[part.object()];
    own = children.empty() ? part : with_children(part, children);
    if (part->has_checked_type() && !own->has_checked_type()) own->set_checked_type(part->checked_type());
  }
  return made.at(group.root.object());
}

Function function_of(const PatternGroup& group, size_t number) {
  std::unordered_map<const Object*, Expr> made;
  Array<Var> params;
  for (size_t i = 0; i < group.inputs.size(); ++i) {
    const Expr& input = group.inputs[i];
    params.push_back(make_var(fmt::format("FunctionVar_{}_{}", number, i), declared_type(input), input->span));
    made.emplace(input.object(), params.back());
  }
  std::string name;
  for (const Expr& part : group.parts) {
    std::vector<Expr> children;
    for (const Expr& child : children_of(part)) children.push_back(made.at(child.object()));
    made.emplace(part.object(), children.empty() ? part : with_children(part, children));
    name += word_of(part);
  }
  const bool says_result = group.root->has_checked_type() && has_shape_input(group);
  const Type result = says_result ? group.root->checked_type() : Type();
  const Expr& body = made.at(group.root.object());
  return make_function(params, body, result, {}, {{kPartitionedFromPattern, Value(name)}}, group.root->span);
}

}  // namespace headrace::relay
