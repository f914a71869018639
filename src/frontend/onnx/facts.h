// What the importer knows of the expressions it builds: types, values of small integer tensors, constants.
#pragma once

#include <unordered_set>

#include "interp/evaluate.h"
#include "relay/expr.h"
#include "relay/infer/growing_inference.h"

namespace headrace::onnx {

class Facts {
 public:
  // The expression with its type. UserError from the op that it does not fit.
  Expr typed(const Expr& expr) { return inference_.infer(expr); }
  // The type of a tensor, inferred if it has none yet.
  TensorType type(const Expr& expr);
  // The elements of a small integer tensor, `?` where unknown; nothing when nothing is known.
  std::optional<std::vector<PrimExpr>> values(const Expr& expr);
  // The tensor itself where it is known: a constant, or a small integer tensor whose elements all are; else null.
  NDArray constant(const Expr& expr);
  // A typed expression, or the Constant that it equals: where all its elements are known, or where it is small and made
  // from `sources`, which are all small constants, without heavy ops. At most kFoldedElements elements; a subgraph that
  // computes shapes or scalars folds away node by node.
  Expr folded(const Expr& expr, const std::vector<Expr>& sources);

  static constexpr int64_t kFoldedElements = 64;
  static constexpr int64_t kFoldedSource = 1024;

 private:
  relay::GrowingInference inference_;
  interp::ConstantBudget budget_{0};
};

// The tensor of a known list of integers.
NDArray make_int_tensor(const Shape& shape, DataType dtype, const std::vector<int64_t>& values);

}  // namespace headrace::onnx
