#include "lower/rules/rule.h"

#include "ops/loops/index_value.h"

namespace headrace::lower {

void set_rule(std::string_view op, ComputeRuleFn rule) { get_op(op)->set(kComputeRule, std::move(rule)); }
void set_kernel_rule(std::string_view op, KernelRuleFn rule) { get_op(op)->set(kKernelRule, std::move(rule)); }

Compute map_rule(const RuleInput& input, const std::function<PrimExpr(const Index&)>& element) {
  const DataType dtype = input.out_types[0]->dtype;
  return single_stage(
      input, map_stage(input.make_output(), [&](const Index& index) { return make_cast(dtype, element(index)); }));
}

ComputeStage finished(ComputeStage stage, const std::function<PrimExpr(const PrimExpr&)>& finish) {
  stage.epilogue = make_cast(stage.output->dtype, finish(stage.reduced));
  return stage;
}

ComputeStage rounded(ComputeStage stage) {
  if (stage.reduced->dtype == stage.output->dtype) return stage;
  return finished(std::move(stage), [](const PrimExpr& value) { return value; });
}

PrimExpr real(double value) { return make_float(value, kReal); }
PrimExpr call(Intrinsic intrinsic, const PrimExpr& x) { return make_intrinsic(intrinsic, x->dtype, {x}); }
PrimExpr divide(const PrimExpr& a, const PrimExpr& b) { return make_binary(BinaryOp::div, a, b); }
PrimExpr both(const PrimExpr& a, const PrimExpr& b) { return make_binary(BinaryOp::logical_and, a, b); }
PrimExpr least(const PrimExpr& a, const PrimExpr& b) { return make_binary(BinaryOp::min, a, b); }
PrimExpr most(const PrimExpr& a, const PrimExpr& b) { return make_binary(BinaryOp::max, a, b); }

PrimExpr negative(const PrimExpr& x) {
  // Subtracts from -0.0, because -0.0 - x equals -x for every x, but 0.0 - x does not for x = 0.0.
  return x->dtype.is_float() ? make_float(-0.0, x->dtype) - x : make_int(0, x->dtype) - x;
}

PrimExpr rectified(const PrimExpr& x, const PrimExpr& slope) {
  return make_select(make_binary(BinaryOp::gt, x, number_like(0, x)), x, x * slope);
}

PrimExpr number_like(double number, const PrimExpr& like) { return make_const(number, like->dtype); }

PrimExpr clamp(const PrimExpr& value, const PrimExpr& low, const PrimExpr& high) {
  return least(most(value, low), high);
}

void fail_rule(const RuleInput& input, const std::string& message) {
  throw_at(input.call.span, input.call.as_op()->name, message);
}

int64_t static_dim(const RuleInput& input, const PrimExpr& dim) {
  const auto size = as_int(dim);
  if (!size) {
    fail_rule(input, fmt::format("native code needs known sizes, and a dimension is {}; fix the input shapes of the "
                                 "model",
                                 to_string(dim)));
  }
  return *size;
}

Shape static_shape(const RuleInput& input, const Array<PrimExpr>& dims) {
  Shape shape;
  for (const PrimExpr& dim : dims) shape.push_back(static_dim(input, dim));
  return shape;
}

std::optional<std::vector<int64_t>> constant_ints(const RuleInput& input, size_t i) {
  const auto* constant = input.call.args[i].as<relay::ConstantNode>();
  if (constant == nullptr) return std::nullopt;
  const NDArray data = constant->data.to_dense();
  std::vector<int64_t> values;
  for (int64_t k = 0; k < data.num_elements(); ++k) values.push_back(ops::index_at(data, k));
  return values;
}

}  // namespace headrace::lower
