// Sampling at given places, regions and boxes: GridSample, AffineGrid, RoiAlign, MaxRoiPool, NonMaxSuppression.
#include <limits>

#include "arith/canonical.h"
#include "frontend/onnx/compositions/region.h"
#include "frontend/onnx/file/field_reader.h"
#include "frontend/onnx/single/rows.h"
#include "ops/image/class_suppression.h"
#include "ops/image/detection.h"
#include "ops/image/grid.h"
#include "ops/image/vision.h"
#include "ops/loops/dims.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/join.h"
#include "ops/tensor/shape.h"
#include "ops/tensor/slice.h"

namespace headrace::onnx {

namespace {

// Returns relay's name for the mode of GridSample. Opset 20 renamed the modes of opset 16.
std::string grid_method(NodeContext& context) {
  const std::string mode = context.string_attr("mode", context.opset() < 20 ? "bilinear" : "linear");
  if (mode == "bilinear" || mode == "linear") return "bilinear";
  if (mode == "bicubic" || mode == "cubic") return "bicubic";
  if (mode != "nearest") context.invalid("attribute 'mode' is {}", printable(mode));
  return mode;
}

// ONNX GridSample (16, 20, 22): the coordinates lie along the last axis of the grid, relay's along the second.
Exprs convert_grid_sample(NodeContext& context) {
  const Expr x = context.input(0), grid = context.input(1);
  const Span& span = context.span();
  context.check_dtype(x, "data", is_float, "floating point");
  context.check_dtype(grid, "a grid", is_float, "floating point");
  const auto rank = static_cast<int64_t>(context.rank(x));
  if (rank < 4 || rank > 5)
    context.refuse(HR_REASON_SHAPE_UNSUPPORTED, "{} spatial axes are not supported, only 2 and 3", rank - 2);
  if (context.rank(grid) != static_cast<size_t>(rank))
    context.invalid("its grid has {} dimensions, expected {}", context.rank(grid), rank);
  const std::string method = grid_method(context);
  const std::string padding = context.string_attr("padding_mode", "zeros");
  if (padding != "zeros" && padding != "border" && padding != "reflection")
    context.invalid("attribute 'padding_mode' is {}", printable(padding));
  if (method == "bicubic" && rank == 5)
    context.refuse(HR_REASON_ATTRIBUTE_UNSUPPORTED, "mode cubic of volumes is not supported");
  const bool align_corners = context.flag_attr("align_corners", false);
  const Expr places = ops::transpose(grid, rank == 4 ? Shape{0, 3, 1, 2} : Shape{0, 4, 1, 2, 3}, span);
  return {
      ops::call_with<ops::GridSampleAttrs>("image.grid_sample", {x, places}, span, [&](ops::GridSampleAttrs& attrs) {
        attrs.method = method;
        attrs.layout = rank == 4 ? "NCHW" : "NCDHW";
        attrs.padding_mode = padding;
        attrs.align_corners = align_corners;
      })};
}

// ONNX AffineGrid (20): theta [N, 2, 3] or [N, 3, 4], for a size that is known.
Exprs convert_affine_grid(NodeContext& context) {
  const Expr theta = context.input(0);
  context.check_dtype(theta, "theta", is_float, "floating point");
  const Shape size = context.ints(1, "size");
  if (size.size() != 4 && size.size() != 5) context.invalid("its size has {} values, expected 4 or 5", size.size());
  const Shape sizes(size.begin() + 2, size.end());
  int64_t places = 1;
  for (const int64_t dim : sizes) {
    if (dim < 1 || dim > kMostTableEntries) context.invalid("its size has {}", dim);
    context.check_table_size(places *= dim);
  }
  const Shape given = context.known_shape(theta);
  const auto spatial = static_cast<int64_t>(sizes.size());
  if (given != Shape{size[0], spatial, spatial + 1})
    context.invalid("its theta has the shape ({}) for a size of ({})", fmt::join(given, ", "), fmt::join(size, ", "));
  const bool align_corners = context.flag_attr("align_corners", false);
  if (spatial == 3 || !align_corners) return {affine_grid(context, theta, sizes, align_corners)};
  const Expr grid = ops::call_with<ops::AffineGridAttrs>(
      "image.affine_grid", {theta}, context.span(), [&](ops::AffineGridAttrs& attrs) { attrs.target_shape = sizes; });
  return {ops::transpose(grid, {0, 2, 3, 1}, context.span())};
}

int64_t positive_attr(NodeContext& context, std::string_view name, int64_t otherwise) {
  const int64_t value = context.int_attr(name, otherwise);
  if (value < 1 || value > INT32_MAX) context.invalid("attribute '{}' is {}", name, value);
  return value;
}

// ONNX RoiAlign (10, 16, 22): relay's regions have their batch in front.
Exprs convert_roi_align(NodeContext& context) {
  const Expr x = context.input(0), rois = context.input(1);
  const Span& span = context.span();
  context.check_dtype(x, "data", is_float, "floating point");
  ops::ROIAlignAttrs attrs;
  attrs.pooled_size = {positive_attr(context, "output_height", 1), positive_attr(context, "output_width", 1)};
  attrs.spatial_scale = context.float_attr("spatial_scale", 1);
  attrs.sample_ratio = context.int_attr("sampling_ratio", 0);
  if (context.string_attr("mode", "avg") != "avg")
    context.refuse(HR_REASON_ATTRIBUTE_UNSUPPORTED,
                   "mode max, the greatest of weighted corners and not of samples, is not supported");
  const std::string coordinates =
      context.opset() < 16 ? "output_half_pixel" : context.string_attr("coordinate_transformation_mode", "half_pixel");
  if (coordinates != "half_pixel" && coordinates != "output_half_pixel")
    context.invalid("attribute 'coordinate_transformation_mode' is {}", printable(coordinates));
  attrs.aligned = coordinates == "half_pixel";
  const std::vector<PrimExpr> places = context.dims(context.input(2)), boxes = context.dims(rois);
  if (places.size() != 1 || (!boxes.empty() && arith::is_unequal(places[0], boxes[0])))
    context.invalid("its batch_indices have the shape {}, expected one for each of its rois {}",
                    ops::show_dims(Array<PrimExpr>(places)), ops::show_dims(Array<PrimExpr>(boxes)));
  const Expr batch = ops::expand_dims(ops::cast(context.input(2), context.dtype(x), span), 1, 1, span);
  const bool fits = context.dtype(rois) == context.dtype(x);
  const Expr regions = fits ? rois : ops::cast(rois, context.dtype(x), span);
  return {ops::roi_align(x, ops::concatenate({batch, regions}, 1, span), attrs, span)};
}

// ONNX MaxRoiPool (1, 22).
Exprs convert_max_roi_pool(NodeContext& context) {
  context.check_dtype(context.input(0), "data", is_float, "floating point");
  const auto size = context.ints_attr("pooled_shape");
  if (!size || size->size() != 2) context.invalid("attribute 'pooled_shape' must have 2 values");
  const double scale = context.float_attr("spatial_scale", 1);
  return {ops::roi_pool(context.input(0), context.input(1), *size, scale, context.span())};
}

// An optional limit of NonMaxSuppression, a tensor of one element, as a scalar.
Expr limit(NodeContext& context, size_t i, double otherwise, DataType dtype) {
  if (!context.has(i)) return context.scalar(otherwise, dtype);
  static constexpr std::string_view kNames[] = {"max_output_boxes_per_class", "iou_threshold", "score_threshold"};
  return context.one_number(i, kNames[i - 2]);
}

// ONNX NonMaxSuppression (10, 11): the rows in front, as many as a run finds; native code has such tensors as outputs
// of the model alone.
Exprs convert_non_max_suppression(NodeContext& context) {
  const Span& span = context.span();
  const bool has_centers = context.flag_attr("center_point_box", false);
  const Expr given = context.input(0), boxes = has_centers ? corners_of(context, given) : given;
  context.check_dtype(given, "a box", is_float, "floating point");
  const DataType dtype = context.dtype(given);
  const Expr found = ops::all_class_non_max_suppression(
      boxes, context.input(1), limit(context, 2, 0, DataType::int_(64)), limit(context, 3, 0, dtype),
      limit(context, 4, std::numeric_limits<double>::quiet_NaN(), dtype), span);
  const Expr rows = relay::make_tuple_get_item(found, 0, span), count = relay::make_tuple_get_item(found, 1, span);
  return {ops::strided_slice(rows, context.int_constant({1}, {0}), count, context.int_constant({1}, {1}), Shape{0},
                             "end", span)};
}

}  // namespace

std::span<const OpRow> region_rows() {
  static constexpr OpRow kRows[] = {
      {"GridSample", convert_grid_sample, 2, 2, 16},
      {"AffineGrid", convert_affine_grid, 2, 2, 20},
      {"RoiAlign", convert_roi_align, 3, 3, 10},
      {"MaxRoiPool", convert_max_roi_pool, 2, 2},
      {"NonMaxSuppression", convert_non_max_suppression, 2, 5, 10},
  };
  return kRows;
}

}  // namespace headrace::onnx
