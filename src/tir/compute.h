// Compute form: what an op computes, element by element, before any schedule. Compute rules return it, fusion joins it
// by substitution, and schedules turn it into loops.
#pragma once

#include "tir/stmt.h"

namespace headrace::tir {

enum class Combiner : uint8_t {
  none,
  sum,
  prod,
  max,
  min,
};
constexpr Combiner greatest(Combiner) { return Combiner::min; }

// One buffer, or a part of one, computed from others:
//   output[axes...] = epilogue(combine over reduce_axes of value)
struct ComputeStage {
  Buffer output;
  std::vector<PrimVar> axes;
  // For a stage that writes a part of `output` only (several stages may share a buffer, each with its own part), or
  // whose axes are not the dimensions of `output`:
  std::vector<PrimExpr> place;       // the index that is written, in terms of `axes`; empty: `axes`
  std::vector<PrimExpr> extents;     // of `axes`; empty: the shape of `output`, and none for a check
  std::vector<PrimVar> reduce_axes;  // empty: no reduction
  std::vector<PrimExpr> reduce_extents;
  Combiner combiner = Combiner::none;
  PrimExpr init;      // the value that a combination starts from, and the result of an empty one
  PrimExpr value;     // reads inputs and earlier stages at indices of axes and reduce_axes
  PrimVar reduced;    // the variable of the combined value in `epilogue`
  PrimExpr epilogue;  // null: the combined value itself
  // Not empty for a check. A check has no output: the kernel stops with this sentence where `value`, a bool, is false
  // for some index within `extents`.
  std::string message;
  // Set for a buffer that exists for its layout: fusion never recomputes its elements where they are read.
  bool is_layout = false;

  bool is_check() const { return !message.empty(); }
  bool is_partial() const { return !place.empty(); }
  std::vector<PrimExpr> axis_extents() const;
};

struct Compute {
  std::vector<Buffer> inputs;
  std::vector<ComputeStage> stages;  // in order; each writes its buffer, or its part of one, once
  std::vector<Buffer> outputs;       // of some stages; the other stages are intermediate
};

// Returns the neutral element of a combiner in a dtype: 0, 1, the lowest, the highest value.
PrimExpr identity_of(Combiner combiner, DataType dtype);
PrimExpr combine(Combiner combiner, const PrimExpr& a, const PrimExpr& b);

}  // namespace headrace::tir
