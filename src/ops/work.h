// How much a call computes, for estimates of its time (cost/op_work.h). Ops of users have this fact like built-in ones.
#pragma once

#include "ops/op_keys.h"

namespace headrace::ops {

// Which kernel computes the products of a call; they reach different shares of a processor's peak.
enum class KernelKind : uint8_t {
  plain,  // a matrix product, or no product at all
  conv,   // with one group
  grouped_conv,
  depthwise_conv,          // with one input channel a group
  strided_depthwise_conv,  // with steps above 1
  transposed_conv,
};

struct Work {
  double operations = 0;  // additions and multiplications; transcendental functions count as one
  KernelKind kernel = KernelKind::plain;
};
// Gives the work of a typed call. Ops without it are taken for what their fusion kind says: an anchor for a matrix
// product, a reduction for one operation an element that it reads, others for one an element that they read or write.
using WorkFn = std::function<Work(const relay::CallNode& call)>;
inline constexpr OpKey<WorkFn> kWork{"Work"};

// Returns the number of elements of a tensor, or of all tensors of a type. A size without a number counts as 1.
double elements_of(const TensorTypeNode& tensor);
double elements_of(const Type& type);
// Returns the size of one dimension, which may have no number, as elements_of counts it.
double size_of(const PrimExpr& dim);

// Returns the work of a typed call of an op by its fact, or by its fusion kind.
Work work_of(const relay::CallNode& call);

}  // namespace headrace::ops
