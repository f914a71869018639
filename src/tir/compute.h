// Compute form: what an op computes, element by element, before any schedule. Compute rules return it, fusion joins it
// by substitution, and schedules turn it into loops.
#pragma once

#include <memory>

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

// How a stage reads windows that slide over a tensor, as a convolution or a pool does. The stage's value is complete
// without it: a schedule uses it to decide whether the stage reads a copy of the tensor instead, padded or in another
// order.
struct WindowRead {
  // A spatial axis: tap t of window w is at position w * stride + t * dilation - pad of the tensor.
  struct Axis {
    PrimExpr window;                        // the window's number, in terms of the stage's axes
    size_t reduce_axis = 0;                 // the stage's axis that walks the taps
    int64_t count = 0, taps = 0, size = 0;  // windows, taps of each, positions of the tensor
    int64_t stride = 1, dilation = 1, pad = 0;

    int64_t last_tap() const { return (taps - 1) * dilation; }
  };

  PrimExpr read;  // the part of the stage's value that is replaced: the element at a tap, or `fill` outside the tensor
  PrimExpr fill;
  Buffer data;
  std::vector<Axis> axes;
  // The element at any place: `element` in terms of the variables of the parts of batch and channels that are outside
  // the spatial axes in memory, of the position along each spatial axis, and of the parts that are inside.
  PrimExpr element;
  std::vector<PrimVar> outer, position, inner;
  std::vector<PrimExpr> outer_at, inner_at;            // the values of `outer` and `inner` that the stage reads at
  std::vector<PrimExpr> outer_extents, inner_extents;  // extents of the tensor
  // The stage's axes that are the batch and the channels of a convolution's result, the outermost part of each first.
  // The value's other factors are the same for all windows. Empty for stages that are not a convolution.
  std::vector<size_t> batch_axes, channel_axes;
  bool ignores_taps = false;  // the result depends on the elements of a window, not on their taps
};

// One buffer, or a part of one, computed from others:
//   output[axes...] = epilogue(combine over reduce_axes of value)
struct ComputeStage {
  Buffer output;
  std::vector<PrimVar> axes;
  // For a stage that writes a part of `output` only (several stages may share a buffer, each with its own part), or
  // whose axes are not the dimensions of `output`:
  std::vector<PrimExpr> place;       // the index that is written, in terms of `axes`; empty: `axes`
  std::vector<PrimExpr> extents;     // extents of `axes`; empty: the shape of `output`, and none for a check
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
  std::shared_ptr<const WindowRead> windows = nullptr;  // null where the stage reads no windows

  bool is_check() const { return !message.empty(); }
  bool is_partial() const { return !place.empty(); }
  std::vector<PrimExpr> axis_extents() const;
};

struct Compute {
  std::vector<Buffer> inputs;
  std::vector<ComputeStage> stages;  // in order; each writes its buffer, or its part of one, once
  std::vector<Buffer> outputs;       // buffers of some stages; the other stages are intermediate
};

// Returns the neutral element of a combiner in a dtype: 0, 1, the lowest, the highest value.
PrimExpr identity_of(Combiner combiner, DataType dtype);
PrimExpr combine(Combiner combiner, const PrimExpr& a, const PrimExpr& b);

}  // namespace headrace::tir
