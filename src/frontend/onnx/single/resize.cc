// Resize and Upsample. A resize that image.resize1d, resize2d or resize3d computes exactly becomes that call; any other
// (other axes, a scale that is not the ratio of the sizes, a crop, an interpolated volume) becomes weighted sums of
// picked elements, axis by axis.
#include <algorithm>
#include <cmath>

#include "arith/canonical.h"
#include "frontend/onnx/compositions/resize.h"
#include "frontend/onnx/file/field_reader.h"
#include "frontend/onnx/single/rows.h"
#include "ops/image/image.h"

namespace headrace::onnx {

namespace {

constexpr double kMostScale = 1e9;

// Returns whether an op over all spatial axes computes the same: image.resize1d, resize2d or resize3d, which take the
// ratio of the sizes for the scale. Resizes of volumes other than by the nearest element go axis by axis, because
// resize3d reads 8 or 64 elements for each of its results.
bool is_one_resize(const ResizeSpec& spec) {
  const size_t rank = spec.axes.size();
  if (rank < 3 || rank > 5 || (rank == 5 && spec.mode != "nearest")) return false;
  if (spec.coordinates == "tf_crop_and_resize" || spec.coordinates == "half_pixel_symmetric") return false;
  if (!is_identity(spec, spec.axes[0]) || !is_identity(spec, spec.axes[1])) return false;
  // This mode puts the elements of an axis that keeps its size half an element off in Relay; ONNX keeps them.
  const bool shifts = spec.coordinates == "tf_half_pixel_for_nn", is_old = spec.nearest == kOldNearest;
  return std::all_of(spec.axes.begin() + 2, spec.axes.end(), [&](const ResizeAxis& axis) {
    return !is_widened(spec, axis) && !(is_old && axis.scale < 1) && !(shifts && is_identity(spec, axis)) &&
           axis.in > 0 && axis.out > 0 && axis.scale == static_cast<double>(axis.out) / static_cast<double>(axis.in);
  });
}

Expr resize(NodeContext& context, const ResizeSpec& spec) {
  const Expr x = context.input(0);
  const DataType dtype = context.dtype(x);
  context.check_dtype(x, "data", is_number, "numbers");
  if (spec.mode != "nearest" && !dtype.is_float())
    context.refuse(HR_REASON_DTYPE_UNSUPPORTED, "mode {} of {} is not supported", spec.mode, dtype);
  if (is_one_resize(spec)) {
    Shape size;
    for (size_t a = 2; a < spec.axes.size(); ++a) size.push_back(spec.axes[a].out);
    return ops::resize(x, size,
                       {.method = spec.mode == "nearest" ? "nearest_neighbor" : spec.mode,
                        .coordinate_transformation_mode = spec.coordinates,
                        .rounding_method = spec.nearest == kOldNearest ? "floor" : spec.nearest,
                        .cubic_alpha = spec.cubic_a,
                        .cubic_exclude = spec.exclude_outside},
                       context.span());
  }
  return resize_by_axes(context, spec);
}

std::vector<double> numbers(NodeContext& context, size_t i, std::string_view name) {
  std::vector<double> result;
  if (!context.has(i)) return result;
  const NDArray data = context.constant(i, name);
  for (int64_t k = 0; k < data.num_elements(); ++k) result.push_back(element_as_double(data.tensor(), k));
  return result;
}

// The axes that opset 18 may name, which scales, sizes and the region are of; else all.
std::vector<size_t> named_axes(NodeContext& context) {
  const size_t rank = context.rank(context.input(0));
  std::vector<size_t> axes;
  if (const auto named = context.opset() >= 18 ? context.ints_attr("axes") : std::nullopt) {
    for (const int64_t axis : *named) {
      axes.push_back(context.axis_of(axis, rank, "axes: axis"));
      if (std::count(axes.begin(), axes.end(), axes.back()) > 1)
        context.invalid("attribute 'axes' names axis {} twice", axes.back());
    }
  } else {
    for (size_t i = 0; i < rank; ++i) axes.push_back(i);
  }
  return axes;
}

// One value an axis named, spread over all axes.
template <typename T>
std::vector<T> spread(NodeContext& context, const std::vector<T>& values, std::string_view what,
                      std::vector<T> otherwise) {
  const std::vector<size_t> axes = named_axes(context);
  if (values.size() != axes.size()) context.invalid("it has {} {} for {} dimensions", values.size(), what, axes.size());
  for (size_t i = 0; i < axes.size(); ++i) otherwise[axes[i]] = values[i];
  return otherwise;
}

std::vector<ResizeAxis> axes_by_scales(NodeContext& context, const std::vector<double>& given) {
  const Expr x = context.input(0);
  const size_t rank = context.rank(x);
  const std::vector<double> scales = spread(context, given, "scales", std::vector<double>(rank, 1));
  std::vector<ResizeAxis> axes;
  for (size_t i = 0; i < rank; ++i) {
    if (scales[i] == 1 && !as_int(context.dims(x)[i])) {
      axes.push_back({kSymbolic, kSymbolic, 1});
      continue;
    }
    const int64_t in = context.known_dim(x, i);
    if (!(scales[i] > 0 && scales[i] < kMostScale)) context.invalid("one of its scales is {}", scales[i]);
    // The size is computed in float32, as exporters and other runtimes do.
    const float out = std::floor(static_cast<float>(in) * static_cast<float>(scales[i]));
    if (out > 0x1p31F) context.invalid("one of its scales is {}", scales[i]);
    axes.push_back({in, static_cast<int64_t>(out), scales[i], true});
  }
  return axes;
}

// The input `sizes`, whose elements may be symbolic.
std::vector<PrimExpr> known_sizes(NodeContext& context) {
  const auto values = context.facts().values(context.input(3));
  if (values && std::none_of(values->begin(), values->end(), is_any)) return *values;
  return to_dims(context.ints(3, "sizes")).to_vector();
}

// Resize-18: the least or the greatest of the scales that the sizes ask for becomes that of all axes named.
void keep_aspect_ratio(NodeContext& context, std::vector<ResizeAxis>& axes) {
  const std::string policy =
      context.opset() < 18 ? "stretch" : context.string_attr("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch") return;
  if (policy != "not_larger" && policy != "not_smaller")
    context.invalid("attribute 'keep_aspect_ratio_policy' is {}", printable(policy));
  const std::vector<size_t> named = named_axes(context);
  if (named.empty()) return;
  double scale = axes[named[0]].scale;
  for (const size_t i : named) {
    if (axes[i].in == kSymbolic) context.refuse(HR_REASON_DYNAMIC_UNSUPPORTED, "axis {} is symbolic", i);
    scale = policy == "not_larger" ? std::min(scale, axes[i].scale) : std::max(scale, axes[i].scale);
  }
  for (const size_t i : named) {
    const double size = std::floor(scale * static_cast<double>(axes[i].in) + 0.5);
    if (!(size >= 0 && size < 0x1p31)) context.invalid("its sizes ask for a scale of {}", scale);
    axes[i] = {axes[i].in, static_cast<int64_t>(size), scale};
  }
}

std::vector<ResizeAxis> axes_by_sizes(NodeContext& context) {
  const Expr x = context.input(0);
  const std::vector<PrimExpr> in = context.dims(x), sizes = spread(context, known_sizes(context), "sizes", in);
  std::vector<ResizeAxis> axes;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!as_int(in[i]) && arith::is_equal(in[i], sizes[i])) {
      axes.push_back({kSymbolic, kSymbolic, 1});
      continue;
    }
    const int64_t from = context.known_dim(x, i);
    const auto to = as_int(sizes[i]);
    if (!to) context.refuse(HR_REASON_DYNAMIC_UNSUPPORTED, "the size of axis {} is symbolic; fix the input shapes", i);
    if (*to < 0 || *to > INT32_MAX) context.invalid("one of its sizes is {}", *to);
    axes.push_back({from, *to, from == 0 ? 1 : static_cast<double>(*to) / static_cast<double>(from)});
  }
  keep_aspect_ratio(context, axes);
  return axes;
}

void check_one_of(NodeContext& context, std::string_view name, const std::string& got,
                  std::initializer_list<std::string_view> known) {
  if (std::find(known.begin(), known.end(), got) == known.end())
    context.refuse(HR_REASON_ATTRIBUTE_UNSUPPORTED, "attribute '{}' is {}, expected one of {}", name, printable(got),
                   fmt::join(known, ", "));
}

// Modes up to opset 10: coordinates are divided by the scale.
ResizeSpec old_spec(NodeContext& context, std::vector<ResizeAxis> axes) {
  ResizeSpec spec{.axes = std::move(axes),
                  .mode = context.string_attr("mode", "nearest"),
                  .coordinates = "asymmetric",
                  .nearest = std::string(kOldNearest)};
  check_one_of(context, "mode", spec.mode, {"nearest", "linear", "bilinear"});
  if (spec.mode == "bilinear") spec.mode = "linear";
  return spec;
}

Exprs resize_by_scales_input(NodeContext& context) {
  return {resize(context, old_spec(context, axes_by_scales(context, numbers(context, 1, "scales"))))};
}

// ONNX Upsample (7, 9): the scales are an attribute, later an input.
Exprs convert_upsample(NodeContext& context) {
  if (context.opset() >= 9) return resize_by_scales_input(context);
  const auto scales = context.floats_attr("scales");
  if (!scales) context.invalid("attribute 'scales' is missing");
  return {resize(context, old_spec(context, axes_by_scales(context, {scales->begin(), scales->end()})))};
}

void read_region(NodeContext& context, ResizeSpec& spec) {
  const std::vector<double> roi = numbers(context, 1, "roi");
  const std::vector<size_t> named = named_axes(context);
  if (roi.size() != 2 * named.size())
    context.invalid("its roi has {} numbers for {} dimensions", roi.size(), named.size());
  for (const double edge : roi) {
    if (!std::isfinite(edge)) context.invalid("its roi has {}", edge);
  }
  for (size_t i = 0; i < named.size(); ++i) {
    spec.axes[named[i]].begin = roi[i];
    spec.axes[named[i]].end = roi[i + named.size()];
  }
}

// ONNX Resize (10, 11, 13, 18, 19).
Exprs convert_resize(NodeContext& context) {
  if (context.opset() == 10) return resize_by_scales_input(context);
  const std::vector<double> scales = numbers(context, 2, "scales");
  const bool has_sizes = context.has(3) && as_shape(context.type(context.input(3))->shape) != std::optional(Shape{0});
  if (!scales.empty() && has_sizes) context.invalid("it has scales and sizes; only one of them may be given");
  ResizeSpec spec;
  spec.axes = scales.empty() ? axes_by_sizes(context) : axes_by_scales(context, scales);
  spec.mode = context.string_attr("mode", "nearest");
  spec.coordinates = context.string_attr("coordinate_transformation_mode", "half_pixel");
  spec.nearest = context.string_attr("nearest_mode", "round_prefer_floor");
  spec.cubic_a = context.float_attr("cubic_coeff_a", -0.75);
  spec.exclude_outside = context.flag_attr("exclude_outside", false);
  spec.extrapolation = context.float_attr("extrapolation_value", 0);
  if (context.opset() >= 18) {
    spec.antialias = context.flag_attr("antialias", false);
    context.ignore_attrs({"keep_aspect_ratio_policy"});  // affects sizes alone
  }
  check_one_of(context, "mode", spec.mode, {"nearest", "linear", "cubic"});
  check_one_of(context, "coordinate_transformation_mode", spec.coordinates,
               {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn",
                "tf_crop_and_resize", "half_pixel_symmetric"});
  check_one_of(context, "nearest_mode", spec.nearest, {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
  // The region is asked for by this mode alone, though others carry it along.
  if (spec.coordinates == "tf_crop_and_resize") read_region(context, spec);
  return {resize(context, spec)};
}

}  // namespace

std::span<const OpRow> resize_rows() {
  static constexpr OpRow kRows[] = {
      {"Resize", convert_resize, 1, 4, 10},
      {"Upsample", convert_upsample, 1, 2},
  };
  return kRows;
}

}  // namespace headrace::onnx
