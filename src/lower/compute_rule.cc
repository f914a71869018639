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

PrimExpr element_of(const NDArray& constant) {
  const NDArray data = constant.to_dense();
  const DataType dtype = data.dtype();
  if (dtype.is_float()) return make_float(element_as_double(data.tensor(), 0), dtype);
  if (!dtype.is_narrow_float()) return make_int(element_as_int(data.tensor(), 0), dtype);
  // As its code: a cast of an infinity would saturate.
  const int code = *data.data<uint8_t>() & ((1 << dtype.bits()) - 1);
  return make_intrinsic(Intrinsic::reinterpret, dtype, {make_int(code, DataType::uint(dtype.bits()))});
}

DataType total_type(DataType dtype) {
  if (dtype.is_narrow_float()) return dtype;  // code generators refuse to compute with it
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
