// image.resize2d.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct Resize2DAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.Resize2DAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<Resize2DAttrs>& f) {
    f.field<&Resize2DAttrs::size>(
         "size", {.default_value = Shape(), .has_default = true, .doc = "the result's height and width"})
        .field<&Resize2DAttrs::roi>(
            "roi", {.default_value = Array<double>(), .has_default = true, .doc = "not used: kept for old programs"})
        .field<&Resize2DAttrs::layout>("layout", {.default_value = "NCHW", .has_default = true, .doc = "NCHW or NHWC"})
        .field<&Resize2DAttrs::method>(
            "method", {.default_value = "linear", .has_default = true, .doc = "nearest_neighbor, linear or cubic"})
        .field<&Resize2DAttrs::coordinate_transformation_mode>(
            "coordinate_transformation_mode",
            {.default_value = "half_pixel",
             .has_default = true,
             .doc = "half_pixel, align_corners, asymmetric, pytorch_half_pixel or tf_half_pixel_for_nn"})
        .field<&Resize2DAttrs::rounding_method>("rounding_method",
                                                {.default_value = "",
                                                 .has_default = true,
                                                 .doc = "of nearest_neighbor: round, floor, ceil or round_prefer_ceil; "
                                                        "empty: floor for asymmetric, else round"})
        .field<&Resize2DAttrs::cubic_alpha>(
            "cubic_alpha", {.default_value = -0.5, .has_default = true, .doc = "the cubic's coefficient"})
        .field<&Resize2DAttrs::cubic_exclude>(
            "cubic_exclude",
            {.default_value = 0, .has_default = true, .doc = "1: weights outside the image count nothing"})
        .field<&Resize2DAttrs::out_dtype>("out_dtype",
                                          {.default_value = "", .has_default = true, .doc = "empty: the input's"});
  }
  Shape size;
  Array<double> roi;
  std::string layout = "NCHW";
  std::string method = "linear";
  std::string coordinate_transformation_mode = "half_pixel";
  std::string rounding_method;
  double cubic_alpha = -0.5;
  int64_t cubic_exclude = 0;
  std::string out_dtype;
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
// The size as an int tensor of two elements.
Expr resize2d(Expr data, Expr size, const Resize2DOptions& options = {}, Span span = {});

// What lowering needs too: where output index i of `out` reads an axis of `in`.
double resize_coordinate(std::string_view mode, int64_t i, int64_t in, int64_t out);

}  // namespace headrace::ops
