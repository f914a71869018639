// Resampling: image.resize1d, resize2d and resize3d, nn.upsampling and upsampling3d.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

// Attributes of the three resizing ops; an empty layout is NCW, NCHW or NCDHW.
struct Resize2DAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.Resize2DAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<Resize2DAttrs>& f);
  Shape size;
  Array<double> roi;
  std::string layout;
  std::string method = "linear";
  std::string coordinate_transformation_mode = "half_pixel";
  std::string rounding_method = "round";
  double cubic_alpha = -0.5;
  int64_t cubic_exclude = 0;
  std::optional<DataType> out_dtype;
};

struct UpSamplingAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.UpSamplingAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<UpSamplingAttrs>& f);
  double scale_h = 1, scale_w = 1;
  std::string layout = "NCHW";
  std::string method = "nearest_neighbor";
  bool align_corners = false;
};

struct UpSampling3DAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.UpSampling3DAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<UpSampling3DAttrs>& f);
  double scale_d = 1, scale_h = 1, scale_w = 1;
  std::string layout = "NCDHW";
  std::string method = "nearest_neighbor";
  std::string coordinate_transformation_mode = "half_pixel";
};

struct Resize2DOptions {
  std::string layout = "NCHW";
  std::string method = "linear";
  std::string coordinate_transformation_mode = "half_pixel";
  std::string rounding_method = "";
  double cubic_alpha = -0.5;
  bool cubic_exclude = false;
};
Expr resize2d(Expr data, Shape size, const Resize2DOptions& options = {}, Span span = {});
// Makes image.resize1d, resize2d or resize3d, as many axes as `size` has, in the layout NCW, NCHW or NCDHW; that of the
// options is not read.
Expr resize(Expr data, Shape size, const Resize2DOptions& options = {}, Span span = {});
// Makes a call with the size as an int tensor of two elements.
Expr resize2d(Expr data, Expr size, const Resize2DOptions& options = {}, Span span = {});

// Helpers that lowering needs, too: the resampling that equals an upsampling, the axes that a layout resamples, and the
// position at which output index i of `out` reads an axis of `in`.
Resize2DAttrs resize_attrs(const UpSamplingAttrs& attrs);
Resize2DAttrs resize_attrs(const UpSampling3DAttrs& attrs);
// How a coordinate becomes the nearest index, as Relay has it: without a method of its own, a resize whose corners are
// aligned rounds and any other takes the floor.
std::string_view rounding_method(const Resize2DAttrs& attrs);
// `floor` and `ceil` take a coordinate this near to an index for that index.
inline constexpr double kNearIndex = 1e-5;
std::vector<size_t> resized_axes(const Resize2DAttrs& attrs, size_t rank);
double resize_coordinate(std::string_view mode, int64_t i, int64_t in, int64_t out);

}  // namespace headrace::ops
