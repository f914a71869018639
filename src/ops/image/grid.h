// Sampling at places that are data: image.affine_grid, image.grid_sample, image.crop_and_resize.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct AffineGridAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.AffineGridAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<AffineGridAttrs>& f);
  Shape target_shape;
};

struct GridSampleAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.GridSampleAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<GridSampleAttrs>& f);
  std::string method = "bilinear";
  std::string layout = "NCHW";
  std::string padding_mode = "zeros";
  bool align_corners = true;
};

struct CropAndResizeAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.CropAndResizeAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<CropAndResizeAttrs>& f);
  Shape crop_size;
  std::string layout = "NCHW";
  std::string method = "bilinear";
  double extrapolation_value = 0;
  std::optional<DataType> out_dtype;
};

// The coefficient of grid_sample's cubic.
inline constexpr double kGridCubic = -0.75;
// Returns how many elements along an axis grid_sample reads for one result: 1, 2 or 4.
int64_t grid_taps(const GridSampleAttrs& attrs);
// Returns index i of `size` as a coordinate from -1 to 1; 0 for a single index.
double grid_coordinate(int64_t i, int64_t size);

}  // namespace headrace::ops
