#include "relay/infer/growing_inference.h"

#include "relay/infer/inferencer.h"

namespace headrace::relay {

GrowingInference::GrowingInference() : inferencer_(std::make_unique<Inferencer>(IRModule())) {}
GrowingInference::~GrowingInference() = default;

Expr GrowingInference::infer(const Expr& expr) {
  kept_.push_back(expr);
  const Expr typed = inferencer_->run(expr);
  const TypeErrors errors = inferencer_->take_errors();
  errors.raise();
  // The errors of an operand were raised when the operand was inferred.
  if (!typed->has_checked_type())
    throw_user_error("an operand of the expression has no type, because its own inference failed");
  return typed;
}

std::optional<std::vector<PrimExpr>> GrowingInference::value_of(const Expr& expr) {
  return inferencer_->value_of(expr);
}

}  // namespace headrace::relay
