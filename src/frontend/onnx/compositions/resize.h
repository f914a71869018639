// Resizes axis by axis: the forms of ONNX Resize and Upsample that no op of Relay computes exactly.
#pragma once

#include "frontend/onnx/node/node_context.h"

namespace headrace::onnx {

// Marks an axis of symbolic size, which must keep its size.
inline constexpr int64_t kSymbolic = -1;

// One axis; `begin` and `end` are its region of interest, in fractions.
struct ResizeAxis {
  int64_t in, out;
  double scale;
  bool is_scaled = false;  // the scale is given, not the ratio of the sizes
  double begin = 0, end = 1;
};

struct ResizeSpec {
  std::vector<ResizeAxis> axes;
  std::string mode;         // nearest, linear, cubic
  std::string coordinates;  // coordinate_transformation_mode
  std::string nearest;      // nearest_mode
  double cubic_a = -0.75;
  bool exclude_outside = false;
  bool antialias = false;
  double extrapolation = 0;
};

// Resize-10 reads the element above where it shrinks an axis, the one below where it does not.
inline constexpr std::string_view kOldNearest = "simple";

// Returns whether the filter of an axis is widened: by attribute antialias (Resize-18), where the axis shrinks, as many
// times as it shrinks.
bool is_widened(const ResizeSpec& spec, const ResizeAxis& axis);
// Returns whether an axis keeps its elements.
bool is_identity(const ResizeSpec& spec, const ResizeAxis& axis);

// Returns input 0 resized, as weighted sums of elements that are read along one axis after the other.
Expr resize_by_axes(NodeContext& context, const ResizeSpec& spec);

}  // namespace headrace::onnx
