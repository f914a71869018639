#include "tools/headrace/layers.h"

#include <set>

#include "passes/forms/to_graph_normal_form.h"
#include "relay/infer/infer_type.h"
#include "relay/visit.h"

namespace headrace::tools {

namespace {

bool is_always_computed(const Expr& expr) {
  return !expr.is<relay::FunctionNode>() && !expr.is<relay::IfNode>() && !expr.is<relay::MatchNode>() &&
         !expr.is<relay::LetNode>();
}

// Returns the call of an op that computes this tensor; null for another expression.
const relay::CallNode* call_behind(const Expr& expr) {
  const auto* item = expr.as<relay::TupleGetItemNode>();
  const auto* call = (item == nullptr ? expr : item->tuple).as<relay::CallNode>();
  if (call == nullptr || call->as_op() == nullptr) return nullptr;
  const auto* type = expr->checked_type().as<TensorTypeNode>();
  return type == nullptr || !as_shape(type->shape) ? nullptr : call;
}

std::string name_of(size_t number, const relay::CallNode& call, const Expr& value) {
  const auto* item = value.as<relay::TupleGetItemNode>();
  const std::string place = call.span ? " " + to_string(call.span) : "";
  return fmt::format("{} {}{}{}", number, call.as_op()->name, item == nullptr ? "" : fmt::format(".{}", item->index),
                     place);
}

}  // namespace

driver::Model with_all_values(const driver::Model& model) {
  const IRModule module = relay::infer_type(passes::to_graph_normal_form(model.module));
  const auto main = module->lookup("main").cast<relay::FunctionNode>();
  Array<Expr> values;
  std::vector<std::string> names;
  std::set<std::pair<const Object*, int64_t>> seen;  // a result of a call may be taken more than once
  relay::post_order(main->body, &is_always_computed, [&](const Expr& expr) {
    const relay::CallNode* call = call_behind(expr);
    const auto* item = expr.as<relay::TupleGetItemNode>();
    if (call == nullptr || !seen.emplace(call, item == nullptr ? -1 : item->index).second) return;
    names.push_back(name_of(values.size(), *call, expr));
    values.push_back(expr);
  });
  // The outputs of a tuple are its leaves, so a tuple in a tuple keeps their order.
  values.push_back(main->body);
  names.insert(names.end(), model.outputs.begin(), model.outputs.end());
  const IRModule changed = make_module();
  changed->import_from(*module);
  changed->add_function(changed->get_global_var("main"),
                        relay::make_function(main->params, relay::make_tuple(values), {}, {}, main->attrs), true);
  driver::Model all = model;
  all.outputs = std::move(names);
  all.module = relay::infer_type(changed);
  return all;
}

}  // namespace headrace::tools
