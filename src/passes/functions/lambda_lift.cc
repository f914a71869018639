#include "passes/functions/lambda_lift.h"

#include <unordered_set>

#include "relay/place_lets.h"
#include "relay/function_attrs.h"
#include "relay/infer/infer_type.h"
#include "relay/visit.h"

namespace headrace::passes {

using relay::CallNode;
using relay::FunctionNode;
using relay::LetNode;
using relay::Var;
using relay::VarNode;

namespace {

constexpr int kOutermost = -1;  // the function of the module, where literals are numbered from 0

bool stays(const FunctionNode& function) {
  return relay::is_left_alone(function) || relay::is_sealed(function) || !function.type_params.empty();
}

// Returns the functions that lets of `body` bind, by their variable.
std::unordered_map<const Object*, const FunctionNode*> bound_functions(const Expr& body) {
  std::unordered_map<const Object*, const FunctionNode*> bound;
  relay::post_order(body, [&](const Expr& e) {
    const auto* let = e.as<LetNode>();
    const auto* function = let == nullptr ? nullptr : let->value.as<FunctionNode>();
    if (function != nullptr) bound.emplace(let->var.object(), function);
  });
  return bound;
}

// Returns the functions in `body` that are not lifted.
std::unordered_set<const Object*> kept_functions(const Expr& body) {
  std::unordered_set<const Object*> kept;
  std::vector<Expr> outer;
  const auto bound = bound_functions(body);
  // A lifted function is replaced by an expression that is not a variable and so cannot be passed on as one.
  const auto stays_variable = [&](const Expr& arg) {
    const auto function = bound.find(arg.object());
    return function == bound.end() || stays(*function->second) || kept.contains(function->second);
  };
  relay::post_order(body, [&](const Expr& e) {
    const auto* function = e.as<FunctionNode>();
    if (function == nullptr) return;
    if (stays(*function)) outer.push_back(e);
    // Recognises a function that this pass left behind.
    const CallNode* call = handed_on(*function);
    const bool is_left = call != nullptr && call->op.is<GlobalVarNode>() &&
                         std::all_of(call->args.begin(), call->args.end(), stays_variable);
    if (is_left) kept.insert(function);
  });
  // Walks over all functions at once, so that shared nodes are visited once.
  relay::post_order(relay::make_tuple(Array<Expr>(outer)), [&](const Expr& e) {
    if (e.is<FunctionNode>()) kept.insert(e.object());
  });
  return kept;
}

[[noreturn]] void throw_unbound(const Var& var) {
  throw_at(var->span, "LambdaLift", fmt::format("%{} is used where nothing binds it", var->name_hint));
}

// A function literal that is lifted.
struct Literal {
  const FunctionNode* function = nullptr;
  int outer = kOutermost;  // the literal that it is in
  std::vector<Var> captured;
  std::unordered_set<const Object*> captures;  // `captured` as a set, and the literals that it calls
  std::vector<int> calls;                      // literals from around it
  GlobalVar name;
  std::string hint = "fn";
};

// The literals of one function of the module and their captures. Outer literals come before inner ones, and a literal
// bound by a let before those in the let's body.
class Literals {
 public:
  explicit Literals(const FunctionNode& root) : kept_(kept_functions(root.body)) {
    scan(root, kOutermost);
    for (size_t next = 0; next < all.size(); ++next) scan(*all[next].function, static_cast<int>(next));
    for (const auto& [var, user] : uses_) capture(var, user);
    for (Literal& literal : all) {
      for (const int callee : literal.calls) {
        for (const Var& var : at(callee).captured) add_captured(literal, var);
      }
    }
  }

  std::vector<Literal> all;
  const Literal& at(int index) const { return all[static_cast<size_t>(index)]; }
  bool is_literal(const Expr& e) const { return e.is<FunctionNode>() && !kept_.contains(e.object()); }
  // Returns the literal that `e` is, or that the variable `e` is bound to; kOutermost when it is neither.
  int find(const Expr& e) const {
    const auto it = index_.find(e.object());
    return it == index_.end() ? kOutermost : it->second;
  }
  // Calls `visit` for the nodes that are evaluated by a function with that body, operands first.
  void own_nodes(const Expr& body, const std::function<void(const Expr&)>& visit) const {
    relay::post_order(body, [&](const Expr& e) { return !is_literal(e); }, visit);
  }

 private:
  void scan(const FunctionNode& function, int user) {
    const auto own = [&](const Var& var) { owner_[var.object()] = user; };
    for (const Var& param : function.params) own(param);
    own_nodes(function.body, [&](const Expr& e) {
      if (is_literal(e)) add(*e.as<FunctionNode>(), user);
      if (e.is<VarNode>()) uses_.emplace_back(e.cast<VarNode>(), user);
      if (const auto* let = e.as<LetNode>()) bind(*let, own);
      if (const auto* kept = e.as<FunctionNode>(); kept != nullptr && !is_literal(e)) {
        for (const Var& param : kept->params) own(param);
      }
      if (const auto* match = e.as<relay::MatchNode>()) {
        for (const relay::Clause& clause : match->clauses) {
          for (const Var& var : relay::pattern_vars(clause->lhs)) own(var);
        }
      }
    });
  }

  void add(const FunctionNode& function, int user) {
    index_.emplace(&function, static_cast<int>(all.size()));
    Literal literal;
    literal.function = &function;
    literal.outer = user;
    all.push_back(std::move(literal));
  }

  void bind(const LetNode& let, const std::function<void(const Var&)>& own) {
    own(let.var);
    if (!is_literal(let.value)) return;
    const int literal = find(let.value);
    index_.emplace(let.var.object(), literal);
    all[static_cast<size_t>(literal)].hint = let.var->name_hint;
  }

  static void add_captured(Literal& literal, const Var& var) {
    if (literal.captures.insert(var.object()).second) literal.captured.push_back(var);
  }

  // Adds captures: every literal between a use of a variable and its binder captures the variable, or calls the literal
  // that it is bound to.
  void capture(const Var& var, int user) {
    const auto binder = owner_.find(var.object());
    if (binder == owner_.end()) throw_unbound(var);
    const int owner = binder->second, bound = find(var);
    for (int at = user; at != owner; at = all[static_cast<size_t>(at)].outer) {
      if (at == kOutermost) throw_unbound(var);
      Literal& literal = all[static_cast<size_t>(at)];
      if (literal.captures.contains(var.object())) return;  // and all around it
      if (bound == kOutermost) {
        add_captured(literal, var);
      } else {
        literal.captures.insert(var.object());
        if (bound != at) literal.calls.push_back(bound);
      }
    }
  }

  std::unordered_set<const Object*> kept_;
  std::unordered_map<const Object*, int> owner_, index_;
  std::vector<std::pair<Var, int>> uses_;
};

// Rewrites the body of one function: a literal of it, or the function of the module.
class BodyLifter {
 public:
  BodyLifter(const Literals& literals, int self) : literals_(literals) {
    if (self == kOutermost) return;
    for (const Var& var : literals.at(self).captured) {
      params_.push_back(relay::make_var(var->name_hint, var->checked_type(), var->span));
      done_.emplace(var.object(), params_.back());
    }
  }

  // Returns the parameters that replace the captured variables.
  const std::vector<Var>& params() const { return params_; }

  Expr run(const Expr& body) {
    literals_.own_nodes(body, [&](const Expr& e) {
      if (!done_.contains(e.object())) done_.emplace(e.object(), lifted(e));
    });
    return done_.at(body.object());
  }

 private:
  Expr lifted(const Expr& e) {
    if (const int literal = literals_.find(e); literal != kOutermost) return as_value(literals_.at(literal));
    std::vector<Expr> children = relay::children_of(e);
    // A let that gives a variable of such a let another name stays.
    if (const auto* let = e.as<LetNode>(); let != nullptr && literals_.is_literal(let->value))
      return done_.at(let->body.object());
    for (Expr& child : children) child = done_.at(child.object());
    const auto* call = e.as<CallNode>();
    const int callee = call == nullptr ? kOutermost : literals_.find(call->op);
    if (callee == kOutermost) return relay::with_children(e, children);
    return call_of(literals_.at(callee), Array<Expr>(children.begin() + 1, children.end()), e->span);
  }

  Expr call_of(const Literal& literal, const Array<Expr>& args, const Span& span) {
    Array<Expr> all;
    for (const Var& var : literal.captured) all.push_back(here(var));
    for (const Expr& arg : args) all.push_back(arg);
    return relay::make_call(Expr(literal.name), all, Attrs(), Array<Type>(), span);
  }

  Expr as_value(const Literal& literal) {
    if (literal.captured.empty()) return literal.name;
    Array<Var> params;
    Array<Expr> args;
    for (const Var& param : literal.function->params) {
      params.push_back(relay::make_var(param->name_hint, param->type_annotation, param->span));
      args.push_back(params.back());
    }
    const Span& span = literal.function->span;
    return relay::make_function(params, call_of(literal, args, span), literal.function->ret_type, {}, {}, span);
  }

  Expr here(const Var& var) const {
    const auto it = done_.find(var.object());
    return it == done_.end() ? Expr(var) : it->second;
  }

  const Literals& literals_;
  std::vector<Var> params_;
  std::unordered_map<const Object*, Expr> done_;
};

class Lifter {
 public:
  explicit Lifter(const IRModule& module) : module_(module), result_(snapshot(module)) {}

  IRModule run() {
    bool is_changed = false;
    for (const auto& [var, function] : module_->functions()) {
      const auto* node = function.as<FunctionNode>();
      if (node == nullptr || stays(*node)) continue;
      is_changed = lift(var, *node) || is_changed;
    }
    return is_changed ? result_ : module_;
  }

 private:
  bool lift(const GlobalVar& host, const FunctionNode& function) {
    Literals literals(function);
    if (literals.all.empty()) return false;
    for (Literal& literal : literals.all) literal.name = new_name(host->name_hint + "_" + literal.hint);
    const Expr body = BodyLifter(literals, kOutermost).run(function.body);
    result_->add_function(host, copy_with(function, [&](FunctionNode& copy) { copy.body = body; }), true);
    for (size_t i = 0; i < literals.all.size(); ++i) {
      BodyLifter lifter(literals, static_cast<int>(i));
      const FunctionNode& literal = *literals.all[i].function;
      const Expr lifted = lifter.run(literal.body);
      Array<Var> params(lifter.params());
      for (const Var& param : literal.params) params.push_back(param);
      result_->add_function(literals.all[i].name, copy_with(literal, [&](FunctionNode& copy) {
                              copy.params = params;
                              copy.body = lifted;
                            }));
    }
    return true;
  }

  GlobalVar new_name(const std::string& wanted) {
    std::string name = wanted;
    int& last = numbers_[wanted];
    while (result_->find_global_var(name) || taken_.contains(name)) name = fmt::format("{}_{}", wanted, ++last);
    taken_.insert(name);
    return make_global_var(name);
  }

  const IRModule& module_;
  IRModule result_;
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int> numbers_;  // the last that was put behind a name
};

// Binds shared values, so that only variables lead into a literal.
IRModule without_shared_values(const IRModule& module) {
  IRModule result = snapshot(module);
  bool is_changed = false;
  for (const auto& [var, function] : module->functions()) {
    const auto* node = function.as<FunctionNode>();
    if (node == nullptr || stays(*node)) continue;
    const Expr body = relay::place_lets(node->body, relay::Bind::across_branches);
    if (body == node->body) continue;
    is_changed = true;
    result->add_function(var, copy_with(*node, [&](FunctionNode& copy) { copy.body = body; }), true);
  }
  return is_changed ? relay::infer_type(result) : module;
}

bool has_literals(const IRModule& module) {
  for (const auto& [var, function] : module->functions()) {
    const auto* node = function.as<FunctionNode>();
    if (node == nullptr || stays(*node)) continue;
    bool found = false;
    const auto kept = kept_functions(node->body);
    relay::post_order(node->body, [&](const Expr& e) { found |= e.is<FunctionNode>() && !kept.contains(e.object()); });
    if (found) return true;
  }
  return false;
}

}  // namespace

const CallNode* handed_on(const FunctionNode& function) {
  const auto* call = function.body.as<CallNode>();
  const bool is_known = call != nullptr && (call->op.is<GlobalVarNode>() || call->op.is<ConstructorNode>());
  if (!is_known || !function.attrs.empty() || call->args.size() < function.params.size()) return nullptr;
  const size_t num_captured = call->args.size() - function.params.size();
  for (size_t i = 0; i < call->args.size(); ++i) {
    if (!call->args[i].is<VarNode>()) return nullptr;
    const bool is_param = std::any_of(function.params.begin(), function.params.end(),
                                      [&](const Var& param) { return Expr(param) == call->args[i]; });
    if (is_param != (i >= num_captured) || (is_param && call->args[i] != function.params[i - num_captured]))
      return nullptr;
  }
  return call;
}

IRModule lambda_lift(const IRModule& module) {
  if (!has_literals(module)) return module;
  const IRModule bound = without_shared_values(module);
  return Lifter(bound).run();
}

}  // namespace headrace::passes
