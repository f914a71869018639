// image.resize2d.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct Resize2DAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.Resize2DAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<Resize2DAttrs>& f);
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
