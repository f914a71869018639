#include "relay/visit.h"

#include <algorithm>
#include <span>
#include <unordered_set>

#include "object/object_map.h"
#include "relay/children.h"

namespace headrace::relay {

std::vector<Var> pattern_vars(const Pattern& pattern) {
  std::vector<Var> vars;
  std::vector<Pattern> stack{pattern};
  const auto push_reversed = [&](const Array<Pattern>& patterns) {
    for (size_t i = patterns.size(); i > 0; --i) stack.push_back(patterns[i - 1]);
  };
  while (!stack.empty()) {
    const Pattern top = std::move(stack.back());
    stack.pop_back();
    if (const auto* var = top.as<PatternVarNode>()) {
      vars.push_back(var->var);
    } else if (const auto* constructor = top.as<PatternConstructorNode>()) {
      push_reversed(constructor->patterns);
    } else if (const auto* tuple = top.as<PatternTupleNode>()) {
      push_reversed(tuple->patterns);
    }
  }
  return vars;
}

std::vector<Expr> children_of(const Expr& expr) {
  std::vector<Expr> children;
  for_each_child(*expr, [&](const ExprNode* child) { children.push_back(ref(child)); });
  return children;
}

namespace {

// A child of a node on the way down. Nodes have numbers in the order in which a walk meets them.
struct Child {
  const ExprNode* node;
  int32_t number = -1;  // set when the walk comes to the child
};

// A node on the way down. Its children stand in a list of the walk from `begin` on; those before `next` are done.
struct Frame {
  const ExprNode* node;
  int32_t number;
  bool is_entered;
  size_t begin, next;
};

// Walks a graph in post-order. It borrows the nodes: the root owns them.
class Walk {
 public:
  // Calls `enter(node)` for each node on the way down; `done(expr, frame, children)` sees each node after its children.
  template <typename Enter, typename Done>
  void run(const Expr& root, Enter&& enter, Done&& done) {
    const Expr owned = root;  // the caller's reference may change meanwhile
    push(owned.get(), enter);
    while (!stack_.empty()) {
      Frame& top = stack_.back();
      if (top.next < children_.size()) {
        const size_t at = top.next++;
        const int32_t number = push(children_[at].node, enter);  // may move both lists
        children_[at].number = number;
        continue;
      }
      const Frame frame = top;
      stack_.pop_back();
      done(ref(frame.node), frame, std::span<const Child>(children_).subspan(frame.begin));
      children_.resize(frame.begin, Child{nullptr});
    }
  }

  // Returns the number of a node that was met; -1 for others.
  int32_t number_of(const ExprNode* node) const {
    const int32_t* number = numbers_.find(node);
    return number == nullptr ? -1 : *number;
  }

 private:
  template <typename Enter>
  int32_t push(const ExprNode* node, Enter&& enter) {
    HEADRACE_CHECK(node != nullptr, "an expression has a null child");
    const auto [number, is_new] = numbers_.try_emplace(node, static_cast<int32_t>(numbers_.size()));
    if (!is_new) return *number;
    const int32_t own = *number;
    const size_t begin = children_.size();
    const bool is_entered = enter(node);
    if (is_entered) for_each_child(*node, [&](const ExprNode* child) { children_.push_back({child}); });
    stack_.push_back({node, own, is_entered, begin, begin});
    return own;
  }

  ObjectMap<int32_t> numbers_;
  std::vector<Frame> stack_;
  std::vector<Child> children_;  // children of the nodes on the stack, one node after another
};

}  // namespace

void post_order(const Expr& root, const std::function<void(const Expr&)>& visit) {
  Walk().run(
      root, [](const ExprNode*) { return true; },
      [&](const Expr& expr, const Frame&, std::span<const Child>) { visit(expr); });
}

void post_order(const Expr& root, const std::function<bool(const Expr&)>& enter,
                const std::function<void(const Expr&)>& visit) {
  Walk().run(
      root, [&](const ExprNode* node) { return enter(ref(node)); },
      [&](const Expr& expr, const Frame&, std::span<const Child>) { visit(expr); });
}

static Var binder(const Var& old, const Expr& replacement) {
  const Var var = replacement.cast<VarNode>();
  return var ? var : old;
}

// Replaces a pattern's variables by `vars` (in the order of pattern_vars), consumed from `next` on. Recursive: patterns
// are as deep as the user wrote them, not as deep as the model.
static Pattern with_pattern_vars(const Pattern& pattern, const std::vector<Expr>& vars, size_t& next) {
  const auto rebuild = [&](const Array<Pattern>& patterns) {
    Array<Pattern> rebuilt;
    for (const Pattern& item : patterns) rebuilt.push_back(with_pattern_vars(item, vars, next));
    return rebuilt;
  };
  const auto with_span = [&](Pattern made) {
    made->span = pattern->span;
    return made;
  };
  if (const auto* var = pattern.as<PatternVarNode>())
    return with_span(make_pattern_var(binder(var->var, vars.at(next++))));
  if (const auto* constructor = pattern.as<PatternConstructorNode>())
    return with_span(make_pattern_constructor(constructor->constructor, rebuild(constructor->patterns)));
  if (const auto* tuple = pattern.as<PatternTupleNode>())
    return with_span(make_pattern_tuple(rebuild(tuple->patterns)));
  return pattern;
}

static Expr match_with_children(const MatchNode& match, const std::vector<Expr>& children) {
  size_t next = 1;
  Array<Clause> clauses;
  for (const Clause& clause : match.clauses) {
    bool vars_same = true;
    size_t at = next;
    for (const Var& var : pattern_vars(clause->lhs)) vars_same &= Expr(binder(var, children.at(at++))) == Expr(var);
    const Pattern lhs = vars_same ? clause->lhs : with_pattern_vars(clause->lhs, children, next);
    next = at;
    const Expr& rhs = children.at(next++);
    clauses.push_back(vars_same && rhs == clause->rhs ? clause : make_clause(lhs, rhs));
  }
  return copy_with(match, [&](MatchNode& node) {
    node.data = children[0];
    node.clauses = clauses;
  });
}

static Expr function_with_children(const FunctionNode& function, const std::vector<Expr>& children) {
  Array<Var> params;
  for (size_t i = 0; i < function.params.size(); ++i) params.push_back(binder(function.params[i], children[i]));
  return copy_with(function, [&](FunctionNode& node) {
    node.params = params;
    node.body = children.back();
  });
}

// Returns a copy of `expr`, which has as many children, with other ones.
static Expr copy_with_children(const Expr& expr, const std::vector<Expr>& children) {
  if (const auto* call = expr.as<CallNode>())
    return copy_with(*call, [&](CallNode& node) {
      node.op = children[0];
      node.args = {};
      if (children.size() > 1) node.args.reserve(children.size() - 1);
      for (size_t i = 1; i < children.size(); ++i) node.args.push_back(children[i]);
    });
  if (const auto* function = expr.as<FunctionNode>()) return function_with_children(*function, children);
  if (const auto* let = expr.as<LetNode>())
    return copy_with(*let, [&](LetNode& node) {
      node.value = children[0];
      node.var = binder(let->var, children[1]);
      node.body = children[2];
    });
  if (const auto* branch = expr.as<IfNode>())
    return copy_with(*branch, [&](IfNode& node) {
      node.cond = children[0];
      node.true_branch = children[1];
      node.false_branch = children[2];
    });
  if (const auto* tuple = expr.as<TupleNode>())
    return copy_with(*tuple, [&](TupleNode& node) { node.items = Array<Expr>(children); });
  if (const auto* item = expr.as<TupleGetItemNode>())
    return copy_with(*item, [&](TupleGetItemNode& node) { node.tuple = children[0]; });
  if (const auto* create = expr.as<RefCreateNode>())
    return copy_with(*create, [&](RefCreateNode& node) { node.value = children[0]; });
  if (const auto* read = expr.as<RefReadNode>())
    return copy_with(*read, [&](RefReadNode& node) { node.ref = children[0]; });
  if (const auto* write = expr.as<RefWriteNode>())
    return copy_with(*write, [&](RefWriteNode& node) {
      node.ref = children[0];
      node.value = children[1];
    });
  if (const auto* match = expr.as<MatchNode>()) return match_with_children(*match, children);
  throw InternalError(fmt::format("{} has no children to change", expr->key()));
}

Expr with_children(const Expr& expr, const std::vector<Expr>& children) {
  size_t count = 0;
  bool same = true;
  for_each_child(*expr, [&](const ExprNode* child) {
    same = same && count < children.size() && children[count].get() == child;
    ++count;
  });
  HEADRACE_CHECK(count == children.size(), "{} has {} children, not {}", expr->key(), count, children.size());
  return same ? expr : copy_with_children(expr, children);
}

namespace {

// Rewrites a graph from its leaves.
template <typename Enter, typename Rewrite>
class Rewriter {
 public:
  Rewriter(const Enter& enter, const Rewrite& rewrite) : enter_(enter), rewrite_(rewrite) {}

  Expr rewritten(const Expr& root) {
    walk_.run(root, enter_, [&](const Expr& before, const Frame& frame, std::span<const Child> children) {
      const auto now = [&](const Child& child) -> const Expr& { return result(child.number); };
      Expr after = rewrite_(before, frame.is_entered ? rebuilt(before, children, now) : kept(before));
      HEADRACE_CHECK(after.defined(), "a rewrite of {} gave null", before->key());
      const auto at = static_cast<size_t>(frame.number);
      if (at >= results_.size()) results_.resize(std::max(at + 1, 2 * results_.size()));
      results_[at] = std::move(after);
    });
    return result(0);
  }

 private:
  const Expr& result(int32_t number) const {
    const auto at = static_cast<size_t>(number);
    HEADRACE_CHECK(at < results_.size() && results_[at].defined(), "a node is a part of itself");
    return results_[at];
  }

  // Returns the node with its rewritten children.
  template <typename Now>
  Expr rebuilt(const Expr& before, std::span<const Child> children, const Now& now) {
    scratch_.clear();
    bool same = true;
    for (const Child& child : children) {
      scratch_.push_back(now(child));
      same &= scratch_.back().get() == child.node;
    }
    return same ? before : copy_with_children(before, scratch_);
  }

  // Returns what a node was rewritten to; null when that was not done.
  const Expr* done(const ExprNode* node) const {
    const int32_t number = walk_.number_of(node);
    return number >= 0 && static_cast<size_t>(number) < results_.size() &&
                   results_[static_cast<size_t>(number)].defined()
               ? &results_[static_cast<size_t>(number)]
               : nullptr;
  }

  // Returns `expr`, which is not entered, with the nodes replaced that were rewritten, and all others unchanged.
  Expr kept(const Expr& expr) {
    const auto is_new = [&](const ExprNode* node) { return done(node) == nullptr && !kept_.contains(node); };
    const auto now = [&](const Child& child) -> const Expr& {
      const Expr* known = done(child.node);
      return known != nullptr ? *known : *kept_.find(child.node);
    };
    Walk().run(expr, is_new, [&](const Expr& before, const Frame& frame, std::span<const Child> children) {
      if (frame.is_entered) kept_.try_emplace(before.object(), rebuilt(before, children, now));
    });
    return *kept_.find(expr.object());
  }

  const Enter& enter_;
  const Rewrite& rewrite_;
  Walk walk_;
  std::vector<Expr> results_;  // by number; null for nodes that are not done
  ObjectMap<Expr> kept_;       // the results for nodes below those that are not entered
  std::vector<Expr> scratch_;
};

}  // namespace

Expr rewrite_post_order(const Expr& root, const std::function<Expr(const Expr&, const Expr&)>& rewrite) {
  const auto enter = [](const ExprNode*) { return true; };
  return Rewriter(enter, rewrite).rewritten(root);
}

Expr rewrite_post_order(const Expr& root, const std::function<bool(const Expr&)>& enter,
                        const std::function<Expr(const Expr&, const Expr&)>& rewrite) {
  const auto enter_node = [&](const ExprNode* node) { return enter(ref(node)); };
  return Rewriter(enter_node, rewrite).rewritten(root);
}

std::vector<Var> free_vars(const Expr& expr) {
  std::unordered_set<const Object*> bound;
  std::vector<Var> used;
  post_order(expr, [&](const Expr& node) {
    if (node.is<VarNode>()) used.push_back(node.cast<VarNode>());
    if (const auto* let = node.as<LetNode>()) bound.insert(let->var.object());
    if (const auto* function = node.as<FunctionNode>()) {
      for (const Var& param : function->params) bound.insert(param.object());
    }
    if (const auto* match = node.as<MatchNode>()) {
      for (const Clause& clause : match->clauses) {
        for (const Var& var : pattern_vars(clause->lhs)) bound.insert(var.object());
      }
    }
  });
  std::erase_if(used, [&](const Var& var) { return bound.contains(var.object()); });
  return used;
}

std::vector<Var> all_vars(const Expr& expr) {
  std::vector<Var> vars;
  post_order(expr, [&](const Expr& node) {
    if (const Var var = node.cast<VarNode>()) vars.push_back(var);
  });
  return vars;
}

}  // namespace headrace::relay
