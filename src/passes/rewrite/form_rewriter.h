// Base of passes that store values in another form than the program wrote: another layout, a smaller type.
#pragma once

#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "relay/expr.h"
#include "relay/function_attrs.h"
#include "relay/visit.h"

namespace headrace::passes {

// Rewrites a body operands first and records the form of each expression. A let has its body's form, and its variable
// has its value's. A node that the pass does not convert gets operands in the form as written. `Form{}` means as
// written; a Form has operator== and is_as_written().
template <typename Form>
class FormRewriter {
 protected:
  // The result for an expression.
  struct Stored {
    Expr expr;
    Form form = {};
    std::vector<std::pair<Form, Expr>> others = {};  // made when first asked for
  };

  ~FormRewriter() = default;

  // Converts `expr`, whose operands are done; returns nothing where the pass does not convert it.
  virtual std::optional<Stored> convert(const Expr& expr) = 0;
  // Converts `stored`, the result for `expr`, to another form.
  virtual Expr change(const Expr& expr, const Stored& stored, const Form& form) = 0;
  // Returns the annotation of a let's variable whose value has another form than the program wrote; null for none.
  virtual Type annotation_in(const Type&, const Form&) { return {}; }

  bool is_let_bound(const Expr& var) const { return let_values_.contains(var.object()); }

  void rewrite(const Expr& body) {
    relay::post_order(body, relay::is_entered, [&](const Expr& e) {
      if (const auto* let = e.as<relay::LetNode>()) let_values_.emplace(let->var.object(), let->value);
    });
    relay::post_order(body, relay::is_entered, [&](const Expr& e) { done_.emplace(e.object(), store(e)); });
  }

  const Stored& at(const Expr& expr) const { return done_.at(expr.object()); }

  Expr as_written(const Expr& expr) { return in_form(expr, Form{}); }

  Expr in_form(const Expr& expr, const Form& form) {
    Stored& stored = done_.at(expr.object());
    if (stored.form == form || (stored.form.is_as_written() && form.is_as_written())) return stored.expr;
    const Form wanted = form.is_as_written() ? Form{} : form;
    for (const auto& [other, made] : stored.others) {
      if (other == wanted) return made;
    }
    stored.others.emplace_back(wanted, change(expr, stored, wanted));
    return stored.others.back().second;
  }

  // Returns the let `expr` around `body`, with its rewritten variable and value.
  Expr let_around(const Expr& expr, const Expr& body) {
    const auto& let = *expr.as<relay::LetNode>();
    const Expr& var = at(let.var).expr;
    const Expr value = at(let.var).form.is_as_written() ? as_written(let.value) : at(let.value).expr;
    if (value == let.value && body == let.body) return expr;
    return relay::make_let(var.cast<relay::VarNode>(), value, body, expr->span);
  }

 private:
  Stored store(const Expr& e) {
    if (!relay::is_entered(e)) return {kept_unit(e)};
    if (auto stored = convert(e)) return *std::move(stored);
    if (const auto* let = e.as<relay::LetNode>()) return {let_around(e, at(let->body).expr), at(let->body).form};
    if (const auto* var = e.as<relay::VarNode>()) return store_var(e, *var);
    std::vector<Expr> children = relay::children_of(e);
    for (Expr& child : children) child = as_written(child);
    return {relay::with_children(e, children)};
  }

  // Makes a function that passes leave as it is see its captured variables in the form as written.
  Expr kept_unit(const Expr& unit) {
    std::unordered_map<const Object*, Expr> values;
    std::vector<std::pair<relay::Var, Expr>> lets;
    for (const relay::Var& var : relay::free_vars(unit)) {
      const auto done = done_.find(var.object());
      if (done == done_.end() || done->second.expr == var) continue;
      lets.emplace_back(relay::make_var(var->name_hint, {}, var->span), as_written(var));
      values.emplace(var.object(), lets.back().first);
    }
    if (lets.empty()) return unit;
    Expr result = relay::rewrite_post_order(unit, [&](const Expr& before, const Expr& after) {
      const auto value = values.find(before.object());
      return value == values.end() ? after : value->second;
    });
    for (size_t i = lets.size(); i-- > 0;) result = relay::make_let(lets[i].first, lets[i].second, result, unit->span);
    return result;
  }

  Stored store_var(const Expr& e, const relay::VarNode& var) {
    const auto let = let_values_.find(e.object());
    const auto value = let == let_values_.end() ? done_.end() : done_.find(let->second.object());
    if (value == done_.end() || value->second.form.is_as_written()) return {e};
    const Form& form = value->second.form;
    const Type annotation = var.type_annotation ? annotation_in(var.type_annotation, form) : Type();
    return {relay::make_var(var.name_hint, annotation, e->span), form};
  }

  std::unordered_map<const Object*, Expr> let_values_;
  std::unordered_map<const Object*, Stored> done_;
};

}  // namespace headrace::passes
