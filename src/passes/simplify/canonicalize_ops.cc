#include "passes/simplify/canonicalize_ops.h"

#include "ops/op_handles.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/shape.h"
#include "passes/rewrite/for_each_function.h"
#include "relay/function_attrs.h"
#include "relay/match.h"
#include "relay/visit.h"

namespace headrace::passes {

using relay::CallNode;

namespace {

// Null where the type of the data is not known.
Expr as_addition(const CallNode& before, const CallNode& after) {
  const auto* type = relay::tensor_type_of(before.args[0]);
  if (type == nullptr) return {};
  const auto rank = static_cast<int64_t>(type->shape.size());
  const int64_t axis = before.attrs_as<ops::BiasAddAttrs>().axis;
  const int64_t after_it = axis < 0 ? -axis - 1 : rank - axis - 1;
  const Expr& bias = after.args[1];
  return ops::add(after.args[0], after_it == 0 ? bias : ops::expand_dims(bias, 1, after_it, after.span), after.span);
}

}  // namespace

IRModule canonicalize_ops(const IRModule& module) {
  return rewrite_bodies(module, [](const Expr& body) {
    return relay::rewrite_post_order(body, relay::is_entered, [](const Expr& before, const Expr& after) {
      const auto* call = relay::call_of(before, op::kBiasAdd);
      if (call == nullptr) return after;
      const Expr addition = as_addition(*call, *after.as<CallNode>());
      return addition ? addition : after;
    });
  });
}

}  // namespace headrace::passes
