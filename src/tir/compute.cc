#include "tir/compute.h"

#include <limits>

namespace headrace::tir {

std::vector<PrimExpr> ComputeStage::axis_extents() const {
  return extents.empty() && !is_check() ? output->shape.to_vector() : extents;
}

static PrimExpr lowest_of(DataType dtype) {
  if (dtype.is_float()) return make_float(-std::numeric_limits<double>::infinity(), dtype);
  if (dtype.is_bool() || dtype.is_uint()) return make_int(0, dtype);
  return make_int(dtype.bits() == 64 ? INT64_MIN : -(int64_t{1} << (dtype.bits() - 1)), dtype);
}

static PrimExpr highest_of(DataType dtype) {
  if (dtype.is_float()) return make_float(std::numeric_limits<double>::infinity(), dtype);
  if (dtype.is_bool()) return make_int(1, dtype);
  if (dtype.is_uint()) return make_int(dtype.bits() == 64 ? -1 : (int64_t{1} << dtype.bits()) - 1, dtype);
  return make_int(dtype.bits() == 64 ? INT64_MAX : (int64_t{1} << (dtype.bits() - 1)) - 1, dtype);
}

PrimExpr identity_of(Combiner combiner, DataType dtype) {
  switch (combiner) {
    case Combiner::sum:
      return make_const(0, dtype);
    case Combiner::prod:
      return make_const(1, dtype);
    case Combiner::max:
      return lowest_of(dtype);
    case Combiner::min:
      return highest_of(dtype);
    case Combiner::none:
      break;
  }
  throw InternalError("a stage without a reduction has no identity");
}

PrimExpr combine(Combiner combiner, const PrimExpr& a, const PrimExpr& b) {
  switch (combiner) {
    case Combiner::sum:
      return make_binary(BinaryOp::add, a, b);
    case Combiner::prod:
      return make_binary(BinaryOp::mul, a, b);
    case Combiner::max:
      return make_binary(BinaryOp::max, a, b);
    case Combiner::min:
      return make_binary(BinaryOp::min, a, b);
    case Combiner::none:
      break;
  }
  throw InternalError("a stage without a reduction combines nothing");
}

}  // namespace headrace::tir
