#include "passes/fold/evaluate.h"

#include "ops/op_keys.h"
#include "relay/op_keys.h"
#include "relay/visit.h"

namespace headrace::passes {

namespace {

// Converts a value to constants and tuples of them. Recursion is as deep as the type of an op's result.
Expr as_constants(const Value& value, const Span& span) {
  const auto* tuple = value.as_node<ADTObj>();
  if (tuple == nullptr) return relay::make_constant(value.as<NDArray>(), span);
  Array<Expr> items;
  for (const Value& item : tuple->items) items.push_back(as_constants(item, span));
  return relay::make_tuple(items, span);
}

}  // namespace

bool may_evaluate(const OpNode& op) { return !relay::is_stateful(op) && op.find(ops::kEval) != nullptr; }

Expr evaluate_closed(const Expr& closed, interp::ConstantBudget& budget, const pass::PassContext& context,
                     std::string_view pass) {
  const interp::Evaluation result = interp::evaluate(closed, budget);
  if (result.outcome == interp::Evaluation::Outcome::done) return as_constants(result.value, closed->span);
  if (result.outcome == interp::Evaluation::Outcome::over_budget) note_left(closed, result.why, context, pass);
  return {};
}

void note_left(const Expr& closed, std::string_view why, const pass::PassContext& context, std::string_view pass) {
  if (!context.note) return;
  const auto* call = closed.as<relay::CallNode>();
  const std::string what =
      call == nullptr || call->as_op() == nullptr ? "an expression" : "a call of " + call->as_op()->name;
  context.note({HR_REASON_FOLD_LIMIT, std::string(pass),
                fmt::format("{} of constants is left to be computed at each run: {}", what, why), closed->span});
}

int64_t constant_bytes(const Expr& root) {
  int64_t bytes = 0;
  relay::post_order(root, [&](const Expr& e) {
    if (const auto* constant = e.as<relay::ConstantNode>()) bytes += static_cast<int64_t>(constant->data.size_bytes());
  });
  return bytes;
}

}  // namespace headrace::passes
