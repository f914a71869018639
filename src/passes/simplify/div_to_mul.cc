#include "passes/simplify/div_to_mul.h"

#include <cmath>

#include "ops/op_handles.h"
#include "ops/tensor/broadcast.h"
#include "passes/rewrite/for_each_function.h"
#include "relay/function_attrs.h"
#include "relay/match.h"
#include "relay/visit.h"

namespace headrace::passes {

using relay::ConstantNode;

namespace {

// Null where an element has no reciprocal that the dtype holds in full precision.
NDArray reciprocal(const NDArray& divisor) {
  const NDArray dense = divisor.to_dense();
  const NDArray result = NDArray::empty(dense.shape(), dense.dtype());
  for (int64_t i = 0; i < dense.num_elements(); ++i) {
    set_element(result.tensor(), i, 1.0 / element_as_double(dense.tensor(), i));
    const double value = element_as_double(result.tensor(), i);
    const double least = dense.dtype() == DataType::float_(64)   ? 2.3e-308
                         : dense.dtype() == DataType::float_(16) ? 6.2e-5
                                                                 : 1.2e-38;
    if (!std::isfinite(value) || std::abs(value) < least) return {};
  }
  return result;
}

}  // namespace

IRModule div_to_mul(const IRModule& module) {
  return rewrite_bodies(module, [](const Expr& body) {
    return relay::rewrite_post_order(body, relay::is_entered, [](const Expr&, const Expr& after) -> Expr {
      const auto* call = relay::call_of(after, op::kDivide);
      if (call == nullptr) return after;
      const auto* divisor = call->args[1].as<ConstantNode>();
      if (divisor == nullptr || !divisor->data.dtype().is_float()) return after;
      const NDArray factor = reciprocal(divisor->data);
      return factor ? ops::multiply(call->args[0], relay::make_constant(factor, divisor->span), call->span) : after;
    });
  });
}

}  // namespace headrace::passes
