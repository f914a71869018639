// The data of convolutions and pools as their sliding windows read it.
#pragma once

#include "lower/rules/layout_index.h"
#include "lower/rules/rule.h"
#include "ops/loops/window.h"

namespace headrace::lower {

// Sizes are in the order of the layout's letters: batch, channels, spatial axes.
struct WindowSource {
  Buffer data;
  Layout layout;  // of `data`; batch and channels may lie in parts
  ops::Window window;
  Shape taps;                                        // per spatial axis
  std::vector<PrimExpr> count;                       // windows per spatial axis
  PrimExpr fill;                                     // what lies outside the data, in the dtype that is computed in
  std::function<PrimExpr(const PrimExpr&)> convert;  // of an element to that dtype
  // An element is read by few windows, so that a copy would cost as much as the windows do.
  bool reads_little = false;
  // Nothing but the element is asked of a tap (a pool has no weights), so that a window may be walked by the data's
  // positions where it has more taps than those.
  bool ignores_taps = false;
  // Two spatial axes, NCHW: the rows of the copy follow one another, so that one vector may run over several
  // of them. Windows are then numbered along `joined_windows`, those between two rows being of no use.
  bool joins_rows = false;
};

// Element (tap) of a window. When the windows neither overhang the data nor step over elements (of those read once or
// twice: over more than one) this reads the data itself. Else it reads a copy, which `stage` makes: padded, and taken
// apart by the phases of the strides,
//
//   copy[n, c, a, b, y, x] = data[n, c, y * stride_h + a - pad_h, x * stride_w + b - pad_w]
//
// (channels last: as such; of channels in parts, all but the outermost are last)
// so that the taps of neighbouring windows are neighbours in memory, whatever the stride. Where that copy would be out
// of proportion (is_wasteful), elements are read from the data as they are asked for, and `fill` outside of it.
class WindowedData {
 public:
  WindowedData(const RuleInput& input, WindowSource source);
  const std::optional<ComputeStage>& stage() const { return stage_; }
  // What to reduce over, per spatial axis: the taps, or the data's positions; each tap in the data is met once, in
  // order.
  std::vector<PrimExpr> tap_extents() const;
  // The element that tap `tap` of a window reads, `tap` being below tap_extents().
  PrimExpr at(const AxisIndex& n, const AxisIndex& c, const Index& window, const Index& tap) const;

  bool joins_rows() const { return stage_ && source_.joins_rows; }
  // With joined rows: how many windows there are, which one is (row, column), and an element of one.
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
  std::string_view letters_;    // of the data's axes
  Shape sizes_;                 // of the data, per spatial axis
  bool channels_last_ = false;  // all their parts
  bool is_guarded_ = false;
  std::vector<int64_t> phases_;  // of the copy, per spatial axis
  int64_t pitch_ = 0;            // elements from one joined row to the next
  int64_t joined_windows_ = 0;
  std::optional<ComputeStage> stage_;
};

// What a tap of a window reads: the element by the letters N C H W, and whether it lies in data of the dimensions
// `dims`.
struct TapPlace {
  std::vector<AxisIndex> at;
  PrimExpr is_inside;
};
// `place` is the window's index in spatial axes.
TapPlace tap_place(const ops::Window& window, const AxisIndex& n, const AxisIndex& c, const Index& place,
                   const Index& tap, const std::vector<PrimExpr>& dims);

// Whether a buffer between, of `elements`, is out of proportion to the operands and results it stands between, which
// have `around`: past 16 Mi elements and 8 times those. Large padding, dilation or strides make such buffers of little.
bool is_wasteful(double elements, double around);
// The number of elements of static dimensions, as a double: it may be past any integer.
double count_elements(const std::vector<PrimExpr>& dims);

}  // namespace headrace::lower
