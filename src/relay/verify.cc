#include "relay/verify.h"

#include <fmt/ranges.h>

#include <unordered_set>

#include "relay/expr.h"

namespace headrace::relay {

namespace {

// Walks one program. A variable is in scope between its binder's entry and exit; each frame is one of the two or a
// node.
class Verifier {
 public:
  Verifier(const IRModule& module, VerifyOptions options) : module_(module), options_(options) {}

  void run(const Expr& root, bool closed) {
    closed_ = closed;
    bound_.clear();
    free_.clear();
    push(root);
    while (!stack_.empty() && breaches.size() < kMaxBreaches) {
      const Frame frame = std::move(stack_.back());
      stack_.pop_back();
      if (frame.leaves) {
        --in_scope_[frame.leaves.get()];
      } else if (frame.enters) {
        ++in_scope_[frame.enters.get()];
      } else if (visited_.insert(frame.expr.get()).second || frame.expr.is<VarNode>()) {
        visit(frame.expr);
      }
    }
  }

  std::vector<std::string> breaches;
  VariableBreaches of_variables;

 private:
  static constexpr size_t kMaxBreaches = 100;
  struct Frame {
    Expr expr;
    Var enters, leaves;
  };

  void breach(const Span& span, std::string text) {
    const std::string place = to_string(span);
    breaches.push_back(place.empty() ? std::move(text) : fmt::format("{}: {}", place, text));
  }
  void push(const Expr& expr) { stack_.push_back({expr, {}, {}}); }
  bool push_child(const Expr& parent, const Expr& child) {
    if (!child) breach(parent->span, fmt::format("a {} has a null child", parent->key()));
    if (child) push(child);
    return child.defined();
  }
  void push_all(const Expr& parent, const Array<Expr>& children) {
    for (size_t i = children.size(); i-- > 0;) push_child(parent, children[i]);
  }
  // Opens the scope of `vars` for the frames pushed until it is closed.
  void scoped(const Expr& parent, const std::vector<Var>& vars, const std::vector<Expr>& children) {
    for (const Var& var : vars) {
      if (!bound_.insert(var.get()).second) {
        breach(var->span ? var->span : parent->span, fmt::format("variable '%{}' is bound twice", var->name_hint));
        if (!of_variables.bound_twice) of_variables.bound_twice = var;
      }
      if (free_.contains(var.get())) report_outside(var);
      stack_.push_back({{}, {}, var});
    }
    for (size_t i = children.size(); i-- > 0;) push_child(parent, children[i]);
    for (const Var& var : vars) stack_.push_back({{}, var, {}});
  }

  void visit(const Expr& e) {
    if (options_.types && !e.is<OpNode>() && !e.is<ConstructorNode>() && !e->has_checked_type())
      breach(e->span, fmt::format("a {} has no type", e->key()));
    if (const auto* var = e.as<VarNode>()) return visit_var(ref(var));
    if (const auto* global = e.as<GlobalVarNode>()) {
      if (module_ && !module_->find_global_var(global->name_hint))
        breach(e->span, fmt::format("there is no function '@{}'", global->name_hint));
    } else if (const auto* function = e.as<FunctionNode>()) {
      scoped(e, function->params.to_vector(), {function->body});
    } else if (const auto* call = e.as<CallNode>()) {
      push_all(e, call->args);
      push_child(e, call->op);
    } else if (const auto* let = e.as<LetNode>()) {
      let->var ? visit_let(e, *let) : breach(e->span, "a let has no variable");
    } else if (const auto* branch = e.as<IfNode>()) {
      push_all(e, {branch->cond, branch->true_branch, branch->false_branch});
    } else if (const auto* tuple = e.as<TupleNode>()) {
      push_all(e, tuple->items);
    } else if (const auto* item = e.as<TupleGetItemNode>()) {
      visit_get_item(e, *item);
    } else if (const auto* match = e.as<MatchNode>()) {
      visit_match(e, *match);
    } else if (const auto* create = e.as<RefCreateNode>()) {
      push_child(e, create->value);
    } else if (const auto* read = e.as<RefReadNode>()) {
      push_child(e, read->ref);
    } else if (const auto* write = e.as<RefWriteNode>()) {
      push_all(e, {write->ref, write->value});
    }
  }

  // Visits a let. A function may call itself by the variable that it is bound to.
  void visit_let(const Expr& e, const LetNode& let) {
    if (let.value.is<FunctionNode>()) return scoped(e, {let.var}, {let.value, let.body});
    scoped(e, {let.var}, {let.body});
    push_child(e, let.value);
  }

  void visit_var(const Var& var) {
    if (const auto depth = in_scope_.find(var.get()); depth != in_scope_.end() && depth->second > 0) return;
    // A free variable of an open expression must not be bound elsewhere in the expression.
    if (!closed_ && !bound_.contains(var.get())) {
      free_.insert(var.get());
      return;
    }
    report_outside(var);
  }

  void report_outside(const Var& var) {
    if (!reported_.insert(var.get()).second) return;
    breach(var->span, fmt::format("variable '%{}' is used outside its scope", var->name_hint));
    if (!of_variables.outside) of_variables.outside = var;
  }

  void visit_get_item(const Expr& e, const TupleGetItemNode& item) {
    if (!push_child(e, item.tuple)) return;
    const auto* tuple = item.tuple.as<TupleNode>();
    const bool outside = item.index < 0 || (tuple != nullptr && static_cast<size_t>(item.index) >= tuple->items.size());
    if (outside)
      breach(e->span,
             fmt::format("item {} is taken of a tuple of {}", item.index, tuple != nullptr ? tuple->items.size() : 0));
  }

  void visit_match(const Expr& e, const MatchNode& match) {
    for (size_t i = match.clauses.size(); i-- > 0;) {
      std::vector<Var> vars;
      std::vector<Pattern> pending{match.clauses[i]->lhs};
      while (!pending.empty()) {
        const Pattern pattern = pending.back();
        pending.pop_back();
        if (const auto* var = pattern.as<PatternVarNode>()) vars.push_back(var->var);
        if (const auto* tuple = pattern.as<PatternTupleNode>())
          for (const Pattern& item : tuple->patterns) pending.push_back(item);
        if (const auto* constructor = pattern.as<PatternConstructorNode>())
          for (const Pattern& item : constructor->patterns) pending.push_back(item);
      }
      scoped(e, vars, {match.clauses[i]->rhs});
    }
    push_child(e, match.data);
  }

  const IRModule& module_;
  VerifyOptions options_;
  bool closed_ = true;
  std::vector<Frame> stack_;
  std::unordered_set<const ExprNode*> visited_;
  std::unordered_set<const VarNode*> bound_, reported_, free_;
  std::unordered_map<const VarNode*, int> in_scope_;  // how many binders around, more than one where it is bound twice
};

}  // namespace

std::vector<std::string> find_breaches(const IRModule& module, const VerifyOptions& options) {
  Verifier verifier(module, options);
  for (const auto& [var, function] : module->functions()) {
    if (function.is<FunctionNode>()) verifier.run(function, true);
  }
  return verifier.breaches;
}

std::vector<std::string> find_breaches(const Expr& expr, const VerifyOptions& options) {
  const IRModule none;
  Verifier verifier(none, options);
  verifier.run(expr, false);
  return verifier.breaches;
}

VariableBreaches find_variable_breaches(const Expr& expr, bool is_closed) {
  const IRModule none;
  Verifier verifier(none, {});
  verifier.run(expr, is_closed);
  return verifier.of_variables;
}

void verify(const IRModule& module, const VerifyOptions& options) {
  const std::vector<std::string> breaches = find_breaches(module, options);
  if (!breaches.empty()) throw_user_error("the program is not well-formed:\n  {}", fmt::join(breaches, "\n  "));
}

}  // namespace headrace::relay
