#include "ops/work.h"

#include <algorithm>

#include "ops/call_fusion.h"

namespace headrace::ops {

namespace {

// Returns the operations of an anchor that is taken for a product [.., m, k] by [.., k, n].
double product_operations(const relay::CallNode& call) {
  const auto* result = call.checked_type().as<TensorTypeNode>();
  if (call.args.size() < 2 || result == nullptr || result->shape.empty()) return 2 * elements_of(call.checked_type());
  return 2 * elements_of(call.args[0]->checked_type()) * size_of(result->shape[result->shape.size() - 1]);
}

double operands_of(const relay::CallNode& call) {
  double sum = 0;
  for (const Expr& arg : call.args) sum += elements_of(arg->checked_type());
  return sum;
}

}  // namespace

double size_of(const PrimExpr& dim) {
  const auto size = as_int(dim);
  return size ? static_cast<double>(*size) : 1;
}

double elements_of(const TensorTypeNode& tensor) {
  double count = 1;
  for (const PrimExpr& dim : tensor.shape) count *= size_of(dim);
  return count;
}

double elements_of(const Type& type) {
  double count = 0;
  for (const Type& leaf : leaves_of(type)) {
    if (const auto* tensor = leaf.as<TensorTypeNode>()) count += elements_of(*tensor);
  }
  return count;
}

Work work_of(const relay::CallNode& call) {
  if (const WorkFn* work = call.as_op()->find(kWork)) return (*work)(call);
  switch (fusion_kind_of(call)) {
    case FusionKind::anchor:
      return {.operations = product_operations(call)};
    case FusionKind::reduction:
      return {.operations = operands_of(call)};
    case FusionKind::elementwise:
    case FusionKind::broadcast:
    case FusionKind::injective:
    case FusionKind::tuple:
    case FusionKind::opaque:
      return {.operations = std::max(elements_of(call.checked_type()), operands_of(call))};
  }
  return {};
}

}  // namespace headrace::ops
