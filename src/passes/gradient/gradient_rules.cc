#include "passes/gradient/gradient_rules.h"

#include "object/function.h"
#include "object/repr.h"
#include "passes/gradient/rule_tools.h"
#include "relay/visit.h"

namespace headrace::passes {

using gradient_rules::GradientRow;
using gradient_rules::Gradients;

namespace {

using RowIndex = std::unordered_map<const OpNode*, const GradientRow*>;

RowIndex make_row_index() {
  using namespace gradient_rules;
  RowIndex index;
  for (const auto family : {unary_gradients, binary_gradients, shape_gradients, index_gradients, reduce_gradients,
                            matrix_gradients, conv_gradients, window_gradients, normalize_gradients}) {
    for (const GradientRow& row : family()) index.emplace(&row.op.node(), &row);
  }
  return index;
}

const GradientRow* find_row(const OpNode* op) {
  static const RowIndex index = make_row_index();
  const auto found = index.find(op);
  return found == index.end() ? nullptr : found->second;
}

// Returns whether a gradient has the form that its argument needs: null for an argument without one, a tuple literal of
// as many items for a tuple.
bool fits(const Value& gradient, const Expr& arg) {
  if (gradient.is_none()) return true;
  if (!gradient.is<Expr>()) return false;
  const auto* tuple = arg->checked_type().as<TupleTypeNode>();
  if (tuple == nullptr) return true;
  const auto* items = gradient.as<Expr>().as<relay::TupleNode>();
  return items != nullptr && items->items.size() == tuple->items.size();
}

Gradients user_gradients(const GradientSite& site, const Value& rule) {
  const OpNode& op = *site.call.as_op();
  if (!rule.is<PackedFunc>())
    throw_user_error("the attribute '{}' of op '{}' is not a function but {}", kGradientAttr, op.name, repr(rule));
  const Value given = rule.as<PackedFunc>()(site.result, site.gradient);
  const bool is_list = given.is<Array<Value>>() && given.as<Array<Value>>().size() == site.call.args.size();
  Gradients gradients;
  for (size_t i = 0; is_list && i < site.call.args.size(); ++i) {
    const Value& gradient = given.as<Array<Value>>()[i];
    if (fits(gradient, site.arg(i))) gradients.push_back(gradient.is_none() ? Expr() : gradient.as<Expr>());
  }
  if (gradients.size() != site.call.args.size())
    throw_at(
        site.call.span, op.name,
        fmt::format("its {} gives {}; it gives a list of {}: for each argument an expression (a tuple for a tuple), "
                    "or None",
                    kGradientAttr, repr(given), site.call.args.size()));
  return gradients;
}

Gradients rule_gradients(const GradientSite& site) {
  const std::string& name = site.call.as_op()->name;
  const GradientRow* row = find_row(site.call.as_op());
  if (row == nullptr)
    throw_at(
        site.call.span, name,
        fmt::format("{}: the op has no gradient; give it one as its {}: in Python relay.op.register_gradient(\"{}\", "
                    "function)",
                    name, kGradientAttr, name));
  Gradients gradients = row->rule(site);
  HEADRACE_CHECK(gradients.size() == site.call.args.size(), "the rule of {} gives {} gradients", name,
                 gradients.size());
  return gradients;
}

// Gives the span of the call to nodes that a rule made. Typed nodes belong to the program, and the incoming gradient is
// older.
void set_spans(const GradientSite& site, const Gradients& gradients) {
  std::vector<const Object*> before{site.gradient.object()};
  if (const auto* tuple = site.gradient.as<relay::TupleNode>()) {
    for (const Expr& item : tuple->items) before.push_back(item.object());
  }
  const auto is_made = [&](const Expr& e) {
    return !e->has_checked_type() && !e->span && !e.is<OpNode>() &&
           std::find(before.begin(), before.end(), e.object()) == before.end();
  };
  for (const Expr& gradient : gradients) {
    if (!gradient) continue;
    relay::post_order(gradient, is_made, [&](const Expr& e) {
      if (is_made(e)) e->span = site.call.span;
    });
  }
}

}  // namespace

Shape GradientSite::arg_shape(size_t i) const { return gradient_rules::static_shape_of(call.args[i]); }
Shape GradientSite::shape() const { return gradient_rules::static_shape_of(result); }

bool has_user_gradient(const OpNode& op) {
  const Value* rule = op.find(kGradientKey);
  return rule != nullptr && !rule->is_none();
}

bool has_gradient_rule(std::string_view op) { return find_row(find_op(op).get()) != nullptr; }

std::vector<Expr> gradients_of(const GradientSite& site) {
  const OpNode& op = *site.call.as_op();
  if (has_user_gradient(op)) return user_gradients(site, *op.find(kGradientKey));
  Gradients gradients = rule_gradients(site);
  if (site.call.span) set_spans(site, gradients);
  return gradients;
}

}  // namespace headrace::passes
