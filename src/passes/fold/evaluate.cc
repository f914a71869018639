#include "passes/fold/evaluate.h"

#include "interp/interp.h"
#include "ops/op_keys.h"
#include "relay/op_keys.h"

namespace headrace::passes {

namespace {

// Tuples of ops' results are as deep as the ops' types.
Expr as_constants(const Value& value, const Span& span) {
  const auto* tuple = value.as_node<ADTObj>();
  if (tuple == nullptr) return relay::make_constant(value.as<NDArray>(), span);
  Array<Expr> items;
  for (const Value& item : tuple->items) items.push_back(as_constants(item, span));
  return relay::make_tuple(items, span);
}

}  // namespace

bool may_evaluate(const OpNode& op) { return !relay::is_stateful(op) && op.find(ops::kEval) != nullptr; }

Expr evaluate_closed(const Expr& closed, pass::ConstantEvaluator* evaluator) {
  try {
    if (evaluator != nullptr) return relay::make_constant(evaluator->evaluate(closed), closed->span);
    return as_constants(interp::run_expr(closed), closed->span);
  } catch (const UserError&) {
    return {};
  }
}

}  // namespace headrace::passes
