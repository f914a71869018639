// The data of convolutions and pools as their sliding windows read it.
#pragma once

#include "lower/rules/rule.h"
#include "ops/window.h"

namespace headrace::lower {

// Sizes are in the order of the layout's letters: batch, channels, spatial axes.
struct WindowSource {
  Buffer data;
  std::vector<size_t> axes;  // where batch, channels and spatial axes stand in `data`
  ops::Window window;
  Shape taps;                                        // per spatial axis
  std::vector<PrimExpr> count;                       // windows per spatial axis
  PrimExpr fill;                                     // what lies outside the data, in the dtype that is computed in
  std::function<PrimExpr(const PrimExpr&)> convert;  // of an element to that dtype
  // An element is read by few windows, so that a copy would cost as much as the windows do.
  bool reads_little = false;
  // Two spatial axes, channels first: the rows of the copy follow one another, so that one vector may run over several
  // of them. Windows are then numbered along `joined_windows`, those between two rows being of no use.
  bool joins_rows = false;
};

// Element (tap) of a window. When the windows neither overhang the data nor step over elements (of those read once or
// twice: over more than one) this reads the data itself. Else it reads a copy, which `stage` makes: padded, and taken
// apart by the phases of the strides,
//
//   copy[n, c, a, b, y, x] = data[n, c, y * stride_h + a - pad_h, x * stride_w + b - pad_w]   (channels last: as such)
//
// so that the taps of neighbouring windows are neighbours in memory, whatever the stride.
class WindowedData {
 public:
  WindowedData(const RuleInput& input, WindowSource source);
  const std::optional<ComputeStage>& stage() const { return stage_; }
  PrimExpr at(const PrimExpr& n, const PrimExpr& c, const Index& window, const Index& tap) const;

  // With joined rows: how many windows there are, which one is (row, column), and an element of one.
  int64_t joined_windows() const { return joined_windows_; }
  PrimExpr joined_window(const PrimExpr& row, const PrimExpr& column) const { return row * pitch_ + column; }
  PrimExpr at_joined(const PrimExpr& n, const PrimExpr& c, const PrimExpr& window, const Index& tap) const;

 private:
  bool reads_directly(const Shape& sizes) const;
  void make_copy(const Shape& sizes);
  void join_rows(const Shape& places);
  PrimExpr element(const PrimExpr& n, const PrimExpr& c, const Index& position) const;
  Index arrange(const PrimExpr& n, const PrimExpr& c, const Index& phase, const Index& place) const;

  WindowSource source_;
  bool channels_last_ = false;
  std::vector<int64_t> phases_;  // of the copy, per spatial axis
  int64_t pitch_ = 0;            // elements from one joined row to the next
  int64_t joined_windows_ = 0;
  std::optional<ComputeStage> stage_;
};

}  // namespace headrace::lower
