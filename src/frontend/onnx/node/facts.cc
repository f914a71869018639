#include "frontend/onnx/node/facts.h"

#include <algorithm>

#include "ops/call_fusion.h"
#include "relay/visit.h"

namespace headrace::onnx {

using relay::ConstantNode;

namespace {

std::optional<std::vector<int64_t>> all_ints(const std::vector<PrimExpr>& values) {
  std::vector<int64_t> ints;
  for (const PrimExpr& value : values) {
    const auto number = as_int(value);
    if (!number) return std::nullopt;
    ints.push_back(*number);
  }
  return ints;
}

bool is_small_constant(const Expr& expr) {
  const auto* constant = expr.as<ConstantNode>();
  return constant != nullptr && constant->data.num_elements() <= Facts::kFoldedSource;
}

bool is_small(const TensorType& type, int64_t most) {
  const auto shape = as_shape(type->shape);
  if (!shape) return false;
  int64_t count = 1;
  for (const int64_t dim : *shape) {
    if (dim > most || (count *= dim) > most) return false;
  }
  return true;
}

// Returns whether evaluating a typed expression over small constants is cheap: it has no large intermediate tensor, and
// no sliding window, whose cost depends on attributes.
bool is_cheap(const Expr& root) {
  bool cheap = true;
  relay::post_order(root, [&](const Expr& expr) {
    const auto* tensor = expr.is<OpNode>() ? nullptr : expr->checked_type().as<TensorTypeNode>();
    if (tensor != nullptr) cheap = cheap && is_small(ref(tensor), Facts::kFoldedSource);
    const auto* call = expr.as<relay::CallNode>();
    cheap = cheap && (call == nullptr || ops::fusion_kind_of(*call) != ops::FusionKind::anchor);
  });
  return cheap;
}

}  // namespace

NDArray make_int_tensor(const Shape& shape, DataType dtype, const std::vector<int64_t>& values) {
  const NDArray tensor = NDArray::empty(shape, dtype);
  for (size_t i = 0; i < values.size(); ++i) set_element_int(tensor.tensor(), static_cast<int64_t>(i), values[i]);
  return tensor;
}

TensorType Facts::type(const Expr& expr) {
  const Type type = typed(expr)->checked_type();
  const TensorType tensor = type.cast<TensorTypeNode>();
  HEADRACE_CHECK(tensor.defined(), "an ONNX value became {}", to_string(type));
  return tensor;
}

std::optional<std::vector<PrimExpr>> Facts::values(const Expr& expr) { return inference_.value_of(typed(expr)); }

NDArray Facts::constant(const Expr& expr) {
  if (const auto* constant = expr.as<ConstantNode>()) return constant->data.to_dense();
  const auto known = values(expr);
  const auto ints = known ? all_ints(*known) : std::nullopt;
  const TensorType tensor = type(expr);
  const auto shape = as_shape(tensor->shape);
  return ints && shape ? make_int_tensor(*shape, tensor->dtype, *ints) : NDArray();
}

Expr Facts::folded(const Expr& expr, const std::vector<Expr>& sources) {
  const Expr result = typed(expr);
  if (result.is<ConstantNode>() || result.is<relay::VarNode>() || !is_small(type(result), kFoldedElements))
    return result;
  if (const NDArray known = constant(result)) return typed(relay::make_constant(known, result->span));
  if (sources.empty() || !std::all_of(sources.begin(), sources.end(), is_small_constant) || !is_cheap(result))
    return result;
  const interp::Evaluation evaluation = interp::evaluate(result, budget_);
  // Keeps a call that the op rejects; the program throws the error if it runs the call.
  if (evaluation.outcome != interp::Evaluation::Outcome::done) return result;
  return typed(relay::make_constant(evaluation.value.as<NDArray>(), result->span));
}

}  // namespace headrace::onnx
