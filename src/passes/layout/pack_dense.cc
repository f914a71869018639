#include "passes/layout/pack_dense.h"

#include <fmt/format.h>

#include "ops/nn/bitserial.h"
#include "ops/nn/matmul.h"
#include "ops/op_handles.h"
#include "ops/tensor/rearrange.h"
#include "passes/layout/varying.h"
#include "passes/rewrite/for_each_function.h"
#include "relay/function_attrs.h"
#include "relay/match.h"
#include "relay/visit.h"

namespace headrace::passes {

using relay::CallNode;

namespace {

// Rows of data from which on packing pays (768 to 768, one thread of Zen 5, best of 400 runs in turns: 2 rows 0.025 ms
// in both forms, 4 rows 0.028 and 0.025, 8 rows 0.048 and 0.039).
constexpr int64_t kLeastRows = 4;

// Returns whether a typed product suits: floats, known sizes, rows enough, and columns in whole parts.
bool is_packable(const CallNode& call, int64_t part) {
  const auto* data = relay::tensor_type_of(call.args[0]);
  const auto* matrix = relay::tensor_type_of(call.args[1]);
  if (data == nullptr || matrix == nullptr || matrix->dtype != data->dtype) return false;
  if (call.attrs_as<ops::DenseAttrs>().out_dtype.value_or(data->dtype) != data->dtype) return false;
  const auto rows = as_shape(data->shape), columns = as_shape(matrix->shape);
  if (!rows || !columns || rows->back() == 0) return false;
  return num_elements(*rows) / rows->back() >= kLeastRows && columns->front() > 0 && columns->front() % part == 0;
}

}  // namespace

IRModule pack_dense(const IRModule& module, const cost::Machine& machine) {
  return rewrite_bodies(module, [&](const Expr& body) {
    const std::unordered_set<const Object*> varying = varying_values(body);
    return relay::rewrite_post_order(body, relay::is_entered, [&](const Expr& before, const Expr& after) -> Expr {
      const auto* typed = relay::call_of(before, op::kDense);
      if (typed == nullptr || !varying.contains(typed) || varying.contains(typed->args[1].object())) return after;
      const auto* data = relay::tensor_type_of(typed->args[0]);
      if (data == nullptr || !data->dtype.is_float() || data->dtype.bits() < 32) return after;
      const int64_t part = cost::lanes_of(machine, data->dtype);
      if (part < 2 || !is_packable(*typed, part)) return after;
      const auto* call = after.as<CallNode>();
      const Expr matrix = ops::layout_transform(call->args[1], "NC", fmt::format("NC{}n", part), call->span);
      return ops::dense_pack(call->args[0], matrix, call->span);
    });
  });
}

}  // namespace headrace::passes
