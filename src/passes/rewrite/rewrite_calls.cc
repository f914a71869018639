#include "passes/rewrite/rewrite_calls.h"

#include <fmt/ranges.h>

#include <set>

#include "object/repr.h"
#include "passes/rewrite/effects.h"
#include "passes/rewrite/for_each_function.h"
#include "relay/function_attrs.h"
#include "relay/infer/infer_type.h"
#include "relay/infer/type_match.h"
#include "relay/scopes.h"
#include "relay/visit.h"

namespace headrace::passes {

using relay::CallNode;

namespace {

// Returns whether a value of type `a` fits where one of type `b` is expected, as far as both are known.
bool may_be(const Type& a, const Type& b) {
  const auto *x = a.as<TensorTypeNode>(), *y = b.as<TensorTypeNode>();
  if (x == nullptr || y == nullptr) return a->type_index() == b->type_index();
  bool fits = x->dtype == y->dtype && x->shape.size() == y->shape.size();
  for (size_t i = 0; fits && i < x->shape.size(); ++i) {
    const auto m = as_int(x->shape[i]), n = as_int(y->shape[i]);
    fits = !m || !n || *m == *n;
  }
  return fits;
}

class CallRewriter {
 public:
  CallRewriter(const InOrder& program, const CallRewrites& rewrites)
      : module_(program.module), effects_(program.effects), rewrites_(rewrites) {}

  Expr run(const Expr& body) {
    return relay::rewrite_post_order(body, relay::is_entered, [&](const Expr& before, const Expr& after) {
      const auto* call = before.as<CallNode>();
      const bool is_op_call = call != nullptr && call->as_op() != nullptr;
      const CallRewriteFn& rule = is_op_call ? rule_of(*call->as_op()) : no_rule_;
      const Expr result = rule ? rewritten(*call, *after.as<CallNode>(), rule) : after;
      program_.emplace(result, before->has_checked_type() ? before->checked_type() : Type());
      return result;
    });
  }

  // Names of the ops whose calls became something else.
  const std::set<std::string>& changed() const { return changed_; }

 private:
  const CallRewriteFn& rule_of(const OpNode& op) {
    const auto [known, is_new] = rules_.try_emplace(&op);
    if (is_new) known->second = rewrites_.find(op);
    return known->second;
  }

  Expr rewritten(const CallNode& before, const CallNode& after, const CallRewriteFn& rule) {
    Array<Type> types;
    for (const Expr& arg : before.args) types.push_back(arg->checked_type());
    types.push_back(before.checked_type());
    std::vector<std::pair<relay::Var, Expr>> lets;
    Array<Expr> args;
    for (size_t i = 0; i < before.args.size(); ++i) {
      const bool is_bound = effects_.of(before.args[i]) && !relay::is_atomic(after.args[i]);
      if (is_bound) {
        lets.emplace_back(relay::make_var("x", {}, before.args[i]->span), after.args[i]);
        program_.emplace(lets.back().first, types[i]);
      }
      args.push_back(is_bound ? Expr(lets.back().first) : after.args[i]);
    }
    const relay::Call call = lets.empty() ? ref(&after) : copy_with(after, [&](CallNode& copy) { copy.args = args; });
    Expr result = rule(*call, types);
    if (!result || result == call) return ref(&after);
    changed_.insert(before.as_op()->name);
    check_type(result, before);
    result = with_span(result, before.span);
    for (size_t i = lets.size(); i-- > 0;) result = relay::make_let(lets[i].first, lets[i].second, result, before.span);
    return result;
  }

  // Checks that the function's result has the type of the call; inference would report it far from here.
  void check_type(const Expr& expr, const CallNode& call) const {
    const Type type = type_alone(expr);
    if (!type) return;
    const std::vector<Type> given = leaves_of(type), wanted = leaves_of(call.checked_type());
    bool fits = given.size() == wanted.size() && type->type_index() == call.checked_type()->type_index();
    for (size_t i = 0; fits && i < given.size(); ++i) fits = may_be(given[i], wanted[i]);
    if (!fits)
      throw_at(call.span, call.as_op()->name,
               fmt::format("its {} ({}) gives {} for a call that gives {}", rewrites_.what, rewrites_.attr,
                           to_string(type), to_string(call.checked_type())));
  }

  // Returns the type of the new nodes in `expr`, given the program's types; null when they have none by themselves, and
  // then inference of the whole program reports why.
  Type type_alone(const Expr& expr) const {
    std::unordered_map<Expr, Expr> copies;
    const auto copy_child = [&](const Expr& child) {
      const auto [at, is_new] = copies.try_emplace(child, child);
      const auto known = program_.find(child);
      const bool is_input = known != program_.end() && known->second && !child.is<relay::ConstantNode>();
      if (is_new && is_input) at->second = relay::make_var("x", known->second);
      return at->second;
    };
    relay::post_order(
        expr, [&](const Expr& e) { return !program_.contains(e); },
        [&](const Expr& e) {
          if (program_.contains(e) || relay::is_atomic(e) || e.is<OpNode>()) return;
          std::vector<Expr> children;
          for (const Expr& child : relay::children_of(e)) children.push_back(copy_child(child));
          copies.insert_or_assign(e, relay::with_children(e, children));
        });
    try {
      return relay::infer_type(copy_child(expr), module_)->checked_type();
    } catch (const UserError&) {
      return {};
    }
  }

  // Gives the span of the call to new nodes of `expr` without one. Makes copies, because the user's function may keep
  // its nodes and return them again; equal nodes lead to the same copies.
  Expr with_span(const Expr& expr, const Span& span) {
    if (!span) return expr;
    const auto is_known = [&](const Expr& e) { return program_.contains(e) || copies_.contains(e); };
    relay::post_order(
        expr, [&](const Expr& e) { return !is_known(e); },
        [&](const Expr& e) {
          if (!is_known(e) && !relay::is_atomic(e) && !e.is<OpNode>()) copies_.emplace(e, placed(e, span));
        });
    return copy_of(expr);
  }

  Expr copy_of(const Expr& expr) const {
    const auto copy = copies_.find(expr);
    return program_.contains(expr) || copy == copies_.end() ? expr : copy->second;
  }

  // Returns `expr` with the copies of its children, and with `span` where it has none.
  Expr placed(const Expr& expr, const Span& span) const {
    std::vector<Expr> children;
    for (const Expr& child : relay::children_of(expr)) children.push_back(copy_of(child));
    const Expr result = relay::with_children(expr, children);
    if (result->span) return result;
    const Expr copy = result == expr ? shallow_copy(expr) : result;
    copy->span = span;
    return copy;
  }

  static Expr shallow_copy(const Expr& expr) {
    const TypeInfo& type = expr->type_info();
    const ObjectRef copy(type.make_empty());
    for (const FieldInfo& field : type.fields) {
      if (!field.options.transient) field.set(copy.get(), field.get(expr.get()).raw());
    }
    return copy.cast<ExprNode>();
  }

  const IRModule& module_;
  const Effects& effects_;
  const CallRewrites& rewrites_;
  const CallRewriteFn no_rule_;
  std::unordered_map<const Object*, CallRewriteFn> rules_;
  std::unordered_map<Expr, Type> program_;  // rewritten nodes: the arguments, and all their operands
  std::unordered_map<Expr, Expr> copies_;   // copies of nodes that the functions gave
  std::set<std::string> changed_;
};

// Checks that the rewritten body uses only the call's arguments and variables that it binds itself.
void check_free_vars(const BaseFunc& before, const BaseFunc& after, const std::string& whose) {
  const std::vector<relay::Var> known = relay::free_vars(before);
  for (const relay::Var& var : relay::free_vars(after)) {
    if (std::find(known.begin(), known.end(), var) == known.end())
      throw_user_error("{} uses %{}, which is bound nowhere; it may use the call's arguments", whose, var->name_hint);
  }
}

// Types are equal but for symbols that are written alike: those of two inferences are two.
bool is_same(const Type& before, const Type& after) {
  return relay::same_type(after, before) || to_string(after) == to_string(before);
}

// Infers the program's types; an error says whose rewrite may have caused it.
IRModule typed(const IRModule& module, const std::string& whose) {
  try {
    return relay::infer_type(module);
  } catch (const UserError& error) {
    throw_user_error("what {} gives does not fit the program: {}", whose, error.message());
  }
}

void check_functions(const IRModule& before, const IRModule& after, const std::string& whose) {
  for (const auto& [var, function] : before->functions()) {
    const BaseFunc changed = after->lookup(var->name_hint);
    if (changed == function) continue;
    check_free_vars(function, changed, whose);
    if (!function->has_checked_type() || is_same(function->checked_type(), changed->checked_type())) continue;
    throw_user_error("{} changes the type of @{} from {} to {}", whose, var->name_hint,
                     to_string(function->checked_type()), to_string(changed->checked_type()));
  }
}

}  // namespace

Expr given_expression(const Value& result, const CallNode& call, std::string_view what) {
  if (result.is_none()) return {};
  const Expr expr = result.is<ObjectRef>() ? result.as<ObjectRef>().cast<ExprNode>() : Expr();
  if (!expr)
    throw_at(call.span, call.as_op()->name, fmt::format("its {} gave no expression but {}", what, repr(result)));
  return expr;
}

IRModule rewrite_calls(const IRModule& module, const CallRewrites& rewrites) {
  const InOrder program = in_order(module);
  CallRewriter rewriter(program, rewrites);
  const IRModule result = rewrite_bodies(program.module, [&](const Expr& body) { return rewriter.run(body); });
  if (result == program.module) return module;
  const std::string whose = fmt::format("the {} of {}", rewrites.what, fmt::join(rewriter.changed(), ", "));
  const IRModule after = typed(result, whose);
  check_functions(module, after, whose);
  return after;
}

}  // namespace headrace::passes
