// A stage prepared for loops: buffers are lines of elements, indices are sums, and axes that every access walks
// together are joined into one.
//
//   y[c, p, q] = x[c, p, q] + bias[c]   ->   y[c * 49 + f] = x[c * 49 + f] + bias[c],   f in [0, 49)
#pragma once

#include "arith/affine.h"
#include "tir/compute.h"

namespace headrace::lower {

using arith::Affine;
using arith::Extents;
using arith::linear_index;
using arith::to_affine;

struct FlatStage {
  Buffer output;   // null for a check
  PrimExpr place;  // in `output`
  std::vector<PrimVar> axes;
  std::vector<int64_t> extents;
  std::vector<PrimVar> reduce_axes;
  std::vector<int64_t> reduce_extents;
  tir::Combiner combiner = tir::Combiner::none;
  PrimExpr init, value, epilogue;  // as in ComputeStage; loads have one index
  PrimVar reduced;
  bool is_part = false;  // nested in loops that threads share
};

// Maps each buffer to one line of elements, shared by all stages of a function.
class FlatBuffers {
 public:
  Buffer line(const Buffer& buffer);

 private:
  std::unordered_map<const BufferNode*, Buffer> lines_;
};

// Axes of extent 1 are gone. Shapes must be static. A stage inside other loops is given the extents of their variables.
FlatStage flatten(const tir::ComputeStage& stage, FlatBuffers& buffers);
FlatStage flatten(const tir::ComputeStage& stage, FlatBuffers& buffers, const Extents& outer);

// The loads of an expression, each with the sum that its index is.
struct Access {
  const BufferLoadNode* load;
  Affine index;
};
std::vector<Access> accesses_of(const PrimExpr& e);

}  // namespace headrace::lower
