// Infers the types and known values of the expressions that the importer builds: small integer tensors and constants.
#pragma once

#include <unordered_set>

#include "interp/evaluate.h"
#include "relay/expr.h"
#include "relay/infer/growing_inference.h"

namespace headrace::onnx {

class Facts {
 public:
  // Infers the type of the expression. Throws UserError from an op that does not accept its operands.
  Expr typed(const Expr& expr) { return inference_.infer(expr); }
  // Returns the type of a tensor, and infers it if the tensor has none yet.
  TensorType type(const Expr& expr);
  // Returns the elements of a small integer tensor, `?` for unknown ones; nullopt if none is known.
  std::optional<std::vector<PrimExpr>> values(const Expr& expr);
  // Returns the tensor if its elements are known: a constant, or a small integer tensor of known elements. Null
  // otherwise.
  NDArray constant(const Expr& expr);
  // Returns a Constant equal to the expression if it has at most kFoldedElements elements and either all of them are
  // known, or `sources`, from which it is computed without expensive ops, are small constants. Otherwise returns the
  // typed expression. Subgraphs that compute shapes or scalars are folded node by node.
  Expr folded(const Expr& expr, const std::vector<Expr>& sources);

  static constexpr int64_t kFoldedElements = 64;
  static constexpr int64_t kFoldedSource = 1024;

 private:
  relay::GrowingInference inference_;
  interp::ConstantBudget budget_{0};
};

// Makes a tensor from a list of integers.
NDArray make_int_tensor(const Shape& shape, DataType dtype, const std::vector<int64_t>& values);

}  // namespace headrace::onnx
