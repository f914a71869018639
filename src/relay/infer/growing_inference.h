// InferType of a program that is being built, node by node.
#pragma once

#include <memory>

#include "ir/module.h"

namespace headrace::relay {

class Inferencer;

// Infers types of an expression that grows. Nodes that were typed before are not visited again, so that asking after
// each new node costs as much as asking once at the end. It keeps the expressions it has seen alive.
class GrowingInference {
 public:
  GrowingInference();
  ~GrowingInference();
  GrowingInference(const GrowingInference&) = delete;
  GrowingInference& operator=(const GrowingInference&) = delete;

  // Sets the types of the expression's nodes, as infer_type(expr). UserError for a node without a type, at each call.
  Expr infer(const Expr& expr);
  // Returns the elements of an integer expression that infer() has typed, `?` for an unknown one; nothing when all are
  // unknown.
  std::optional<std::vector<PrimExpr>> value_of(const Expr& expr);

 private:
  std::unique_ptr<Inferencer> inferencer_;
  std::vector<Expr> kept_;
};

}  // namespace headrace::relay
