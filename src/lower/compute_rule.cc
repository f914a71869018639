#include "lower/compute_rule.h"

#include <limits>

namespace headrace::lower {

Buffer RuleInput::make_output(size_t i) const {
  const OpNode* op = call.as_op();
  return make_buffer(op == nullptr ? "out" : op->name, out_types[i]->dtype, out_types[i]->shape);
}

tir::Compute single_stage(const RuleInput& input, tir::ComputeStage stage) {
  tir::Compute compute;
  compute.inputs = input.inputs;
  compute.outputs = {stage.output};
  compute.stages.push_back(std::move(stage));
  return compute;
}

DataType wide_type(DataType dtype) {
  return dtype.is_float() && dtype.bits() == 16 ? DataType::float_(32, dtype.lanes()) : dtype;
}

DataType total_type(DataType dtype) {
  if (dtype.is_float()) return wide_type(dtype);
  return dtype.is_uint() ? DataType::uint(64) : DataType::int_(64);
}

PrimExpr wide(const PrimExpr& value) { return make_cast(wide_type(value->dtype), value); }

PrimExpr as_index(const PrimExpr& value) {
  if (value->dtype != DataType::uint(64)) return make_cast(kIndexType, value);
  const PrimExpr greatest = make_int(std::numeric_limits<int64_t>::max(), value->dtype);
  return make_cast(kIndexType, make_binary(BinaryOp::min, value, greatest));
}

}  // namespace headrace::lower
