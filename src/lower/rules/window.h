// Sliding windows (convolutions, pools): the elements that they read.
#pragma once

#include "lower/rules/layout_index.h"
#include "lower/rules/rule.h"
#include "ops/loops/window.h"

namespace headrace::lower {

using WindowReadPtr = std::shared_ptr<tir::WindowRead>;

// The data that windows slide over. Sizes are in the order of the layout's letters: batch, channels, spatial axes.
struct WindowSource {
  Buffer data;
  Layout layout;  // the layout of `data`; batch and channels may be split into parts
  ops::Window window;
  Shape taps;                                        // per spatial axis
  std::vector<PrimExpr> count;                       // the number of windows per spatial axis
  PrimExpr fill;                                     // the value outside the data, in the dtype of the computation
  std::function<PrimExpr(const PrimExpr&)> convert;  // converts an element to that dtype
};

// Makes the reads of a stage. `read` of the result is the element at a tap of a window, or `fill` outside the data; the
// stage that computes with it keeps the rest as its `windows`.
class WindowedData {
 public:
  WindowedData(const RuleInput& input, WindowSource source);
  // Returns the number of taps per spatial axis: the extents of the reduction over a window.
  std::vector<PrimExpr> tap_extents() const;
  // Makes the read of batch `n` and channel `c` in the window with index `window` of the spatial axes. The taps are
  // `reduced`, the index of the stage's reduced axes, from number `first_tap` on.
  WindowReadPtr read(const AxisIndex& n, const AxisIndex& c, const Index& window, const Index& reduced,
                     size_t first_tap) const;

 private:
  std::vector<tir::WindowRead::Axis> axes_of(const Index& window, size_t first_tap) const;

  WindowSource source_;
  std::string_view letters_;  // the letters of the data's axes
  Shape sizes_;               // the data's sizes per spatial axis
  Shape counts_;              // windows
};

// The position that a tap of a window reads, by the letters N C H W, and the condition that it lies inside the data.
struct TapPlace {
  std::vector<AxisIndex> at;
  PrimExpr is_inside;
};
// Computes the position. `place` is the window's index in the spatial axes, `dims` the dimensions of the data.
TapPlace tap_place(const ops::Window& window, const AxisIndex& n, const AxisIndex& c, const Index& place,
                   const Index& tap, const std::vector<PrimExpr>& dims);

}  // namespace headrace::lower
