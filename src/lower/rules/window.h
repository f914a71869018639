// Gives sliding windows (convolutions, pools) access to their data, copied and padded where that makes reads
// contiguous.
#pragma once

#include "lower/rules/layout_index.h"
#include "lower/rules/rule.h"
#include "ops/loops/window.h"

namespace headrace::lower {

// Lanes of the vectors that joined rows are laid out for; narrower vectors divide it.
inline constexpr int64_t kWidestLanes = 16;

// The data that windows slide over. Sizes are in the order of the layout's letters: batch, channels, spatial axes.
struct WindowSource {
  Buffer data;
  Layout layout;  // the layout of `data`; batch and channels may be split into parts
  ops::Window window;
  Shape taps;                                        // per spatial axis
  std::vector<PrimExpr> count;                       // the number of windows per spatial axis
  PrimExpr fill;                                     // the value outside the data, in the dtype of the computation
  std::function<PrimExpr(const PrimExpr&)> convert;  // converts an element to that dtype
  // Each element is read by few windows, so a copy would cost as much as reading the windows.
  bool reads_little = false;
  // The result depends only on the elements of a window, not on their taps (a pool has no weights). A window with more
  // taps than the data has positions may then be computed by walking the data's positions.
  bool ignores_taps = false;
  // For two spatial axes in NCHW: the rows of the copy follow one another in memory, so that one vector can cover
  // several rows. Windows are then numbered 0 .. joined_windows() - 1; those that lie between two rows are not used.
  bool joins_rows = false;
};

// Reads the taps of windows. Reads the data itself if no window overhangs it and no window skips elements (with
// `reads_little`: skips more than one). Otherwise reads a copy, computed by `stage`, which is padded and separated by
// the phases of the strides:
//
//   copy[n, c, a, b, y, x] = data[n, c, y * stride_h + a - pad_h, x * stride_w + b - pad_w]
//
// Equal taps of neighbouring windows are then adjacent in memory, whatever the stride. Channels that are last in the
// data stay last in the copy; of split channels, all parts but the outermost are last. If the copy would be
// disproportionately large (is_wasteful), each read is guarded instead: it gives the data's element, or `fill` outside.
class WindowedData {
 public:
  WindowedData(const RuleInput& input, WindowSource source);
  const std::optional<ComputeStage>& stage() const { return stage_; }
  // Returns the extents of the reduction over a window, per spatial axis: the number of taps, or the number of the
  // data's positions. The reduction visits each tap inside the data once, in order.
  std::vector<PrimExpr> tap_extents() const;
  // Returns the element that tap `tap` of a window reads. `tap` must be below tap_extents().
  PrimExpr at(const AxisIndex& n, const AxisIndex& c, const Index& window, const Index& tap) const;

  bool joins_rows() const { return stage_ && source_.joins_rows; }
  // With joined rows: the number of windows, the number of window (row, column), and a window's element.
  int64_t joined_windows() const { return joined_windows_; }
  PrimExpr joined_window(const PrimExpr& row, const PrimExpr& column) const { return row * pitch_ + column; }
  PrimExpr at_joined(const PrimExpr& n, const PrimExpr& c, const PrimExpr& window, const Index& tap) const;

 private:
  bool reads_directly() const;
  bool copy_is_wasteful() const;
  void make_copy();
  void join_rows(const Shape& places);
  PrimExpr at_guarded(const AxisIndex& n, const AxisIndex& c, const Index& window, const Index& tap) const;
  bool walks_data(size_t i) const { return is_guarded_ && source_.ignores_taps && source_.taps[i] > sizes_[i]; }
  int64_t last_tap(size_t i) const { return (source_.taps[i] - 1) * source_.window.dilation[i]; }
  int64_t windows(size_t i) const { return *as_int(source_.count[i]); }
  PrimExpr element(const AxisIndex& n, const AxisIndex& c, const Index& position) const;
  Index arrange(const AxisIndex& n, const AxisIndex& c, const Index& phase, const Index& place) const;

  WindowSource source_;
  std::string_view letters_;     // the letters of the data's axes
  Shape sizes_;                  // the data's sizes per spatial axis
  bool channels_last_ = false;   // all parts of the channels are last
  bool is_guarded_ = false;      // reads the data with a bounds check for each element
  std::vector<int64_t> phases_;  // the number of phases of the copy, per spatial axis
  int64_t pitch_ = 0;            // elements from one joined row to the next
  int64_t joined_windows_ = 0;
  std::optional<ComputeStage> stage_;
};

// The position that a tap of a window reads, by the letters N C H W, and the condition that it lies inside the data.
struct TapPlace {
  std::vector<AxisIndex> at;
  PrimExpr is_inside;
};
// Computes the position. `place` is the window's index in the spatial axes, `dims` the dimensions of the data.
TapPlace tap_place(const ops::Window& window, const AxisIndex& n, const AxisIndex& c, const Index& place,
                   const Index& tap, const std::vector<PrimExpr>& dims);

// Returns whether an intermediate buffer with `elements` elements is disproportionately large: more than 16 Mi
// elements, and more than 8 times `around`, the elements of the operands and results. Large padding, dilation or
// strides can make such a buffer from small data.
bool is_wasteful(double elements, double around);
// Returns the number of elements of static dimensions, as a double because it may overflow any integer.
double count_elements(const std::vector<PrimExpr>& dims);

}  // namespace headrace::lower
