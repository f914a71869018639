#include "relay/visit.h"

#include <unordered_set>

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

static std::vector<Expr> match_children(const MatchNode& match) {
  std::vector<Expr> children{match.data};
  for (const Clause& clause : match.clauses) {
    for (const Var& var : pattern_vars(clause->lhs)) children.push_back(var);
    children.push_back(clause->rhs);
  }
  return children;
}

std::vector<Expr> children_of(const Expr& expr) {
  if (const auto* call = expr.as<CallNode>()) {
    std::vector<Expr> children{call->op};
    children.insert(children.end(), call->args.begin(), call->args.end());
    return children;
  }
  if (const auto* function = expr.as<FunctionNode>()) {
    std::vector<Expr> children(function->params.begin(), function->params.end());
    children.push_back(function->body);
    return children;
  }
  if (const auto* let = expr.as<LetNode>()) return {let->value, let->var, let->body};
  if (const auto* branch = expr.as<IfNode>()) return {branch->cond, branch->true_branch, branch->false_branch};
  if (const auto* tuple = expr.as<TupleNode>()) return tuple->items.to_vector();
  if (const auto* item = expr.as<TupleGetItemNode>()) return {item->tuple};
  if (const auto* create = expr.as<RefCreateNode>()) return {create->value};
  if (const auto* read = expr.as<RefReadNode>()) return {read->ref};
  if (const auto* write = expr.as<RefWriteNode>()) return {write->ref, write->value};
  if (const auto* match = expr.as<MatchNode>()) return match_children(*match);
  return {};
}

namespace {

// A node on the way down: its children, and how many of them are done.
struct Frame {
  Expr expr;
  std::vector<Expr> children;
  size_t next = 0;
};

// Walks `root` in post-order; `done(frame)` sees each node with its children.
template <typename Enter, typename Done>
void walk(const Expr& root, Enter&& enter, Done&& done) {
  std::unordered_set<const Object*> seen;
  std::vector<Frame> stack;
  const auto push = [&](const Expr& expr) {
    HEADRACE_CHECK(expr.defined(), "an expression has a null child");
    if (seen.insert(expr.object()).second)
      stack.push_back({expr, enter(expr) ? children_of(expr) : std::vector<Expr>()});
  };
  push(root);
  while (!stack.empty()) {
    Frame& top = stack.back();
    if (top.next < top.children.size()) {
      push(Expr(top.children[top.next++]));  // may move the stack, and `top` with it
      continue;
    }
    const Frame frame = std::move(stack.back());
    stack.pop_back();
    done(frame);
  }
}

}  // namespace

void post_order(const Expr& root, const std::function<void(const Expr&)>& visit) {
  walk(root, [](const Expr&) { return true; }, [&](const Frame& frame) { visit(frame.expr); });
}

void post_order(const Expr& root, const std::function<bool(const Expr&)>& enter,
                const std::function<void(const Expr&)>& visit) {
  walk(root, enter, [&](const Frame& frame) { visit(frame.expr); });
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

Expr with_children(const Expr& expr, const std::vector<Expr>& children) {
  const std::vector<Expr> old = children_of(expr);
  HEADRACE_CHECK(old.size() == children.size(), "{} has {} children, not {}", expr->key(), old.size(), children.size());
  bool same = true;
  for (size_t i = 0; i < old.size(); ++i) same &= old[i] == children[i];
  if (same) return expr;
  if (const auto* call = expr.as<CallNode>())
    return copy_with(*call, [&](CallNode& node) {
      node.op = children[0];
      node.args = Array<Expr>(children.begin() + 1, children.end());
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

namespace {

using Rewritten = std::unordered_map<const Object*, Expr>;

// Returns the node of a frame with its rewritten children.
template <typename Now>
Expr rebuilt(const Frame& frame, const Now& now) {
  std::vector<Expr> children;
  children.reserve(frame.children.size());
  for (const Expr& child : frame.children) children.push_back(now(child));
  return with_children(frame.expr, children);
}

// Returns `expr` with the nodes in `done` replaced and all others unchanged; `kept` records the results of the nodes
// below it.
Expr kept_expr(const Expr& expr, const Rewritten& done, Rewritten& kept) {
  const auto now = [&](const Expr& e) -> const Expr& {
    const auto it = done.find(e.object());
    return it != done.end() ? it->second : kept.at(e.object());
  };
  const auto is_new = [&](const Expr& e) { return !done.contains(e.object()) && !kept.contains(e.object()); };
  walk(expr, is_new, [&](const Frame& frame) {
    if (is_new(frame.expr)) kept.emplace(frame.expr.object(), rebuilt(frame, now));
  });
  return kept.at(expr.object());
}

}  // namespace

Expr rewrite_post_order(const Expr& root, const std::function<Expr(const Expr&, const Expr&)>& rewrite) {
  return rewrite_post_order(root, [](const Expr&) { return true; }, rewrite);
}

Expr rewrite_post_order(const Expr& root, const std::function<bool(const Expr&)>& enter,
                        const std::function<Expr(const Expr&, const Expr&)>& rewrite) {
  Rewritten done, kept;
  const auto now = [&](const Expr& e) -> const Expr& { return done.at(e.object()); };
  walk(root, enter, [&](const Frame& frame) {
    Expr after = rewrite(frame.expr, enter(frame.expr) ? rebuilt(frame, now) : kept_expr(frame.expr, done, kept));
    HEADRACE_CHECK(after.defined(), "a rewrite of {} gave null", frame.expr->key());
    done.emplace(frame.expr.object(), std::move(after));
  });
  return done.at(root.object());
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
