// Resize and Upsample. A resize that image.resize1d, resize2d or resize3d computes exactly becomes that call; any other
// (other axes, a scale that is not the ratio of the sizes, a crop, an interpolated volume) becomes weighted sums of
// picked elements, axis by axis.
#include <algorithm>
#include <cmath>

#include "arith/canonical.h"
#include "frontend/onnx/file/field_reader.h"
#include "frontend/onnx/op_table.h"
#include "ops/image/image.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/slice.h"

namespace headrace::onnx {

namespace {

// The largest size of an axis whose positions become constants.
constexpr int64_t kMostPositions = int64_t{1} << 16;

constexpr double kMostScale = 1e9;

// Marks an axis of symbolic size, which must keep its size.
constexpr int64_t kSymbolic = -1;

// One axis; `begin` and `end` are its region of interest, in fractions.
struct Axis {
  int64_t in, out;
  double scale;
  bool is_scaled = false;  // the scale is given, not the ratio of the sizes
  double begin = 0, end = 1;
};

struct ResizeSpec {
  std::vector<Axis> axes;
  std::string mode;         // nearest, linear, cubic
  std::string coordinates;  // coordinate_transformation_mode
  std::string nearest;      // nearest_mode
  double cubic_a = -0.75;
  bool exclude_outside = false;
  bool antialias = false;
  double extrapolation = 0;
};

// By a given scale in float32, as sizes by scale are: the nearest element to 7 / 0.7 is then the one at 10, though the
// float32 nearest to 0.7 is below it.
double divided(double x, const Axis& axis) {
  return axis.is_scaled ? static_cast<float>(x) / static_cast<float>(axis.scale) : x / axis.scale;
}

// Resize-13, coordinate_transformation_mode: where output i reads the input.
double input_coordinate(const std::string& mode, const Axis& axis, int64_t i) {
  const auto x = static_cast<double>(i), in = static_cast<double>(axis.in), out = static_cast<double>(axis.out);
  if (mode == "align_corners") {
    // The data of the standard takes the size before it is rounded down.
    const double resized = axis.scale * in;
    return axis.out > 1 ? x * (in - 1) / (resized - 1) : 0;
  }
  if (mode == "asymmetric") return divided(x, axis);
  if (mode == "tf_half_pixel_for_nn") return divided(x + 0.5, axis);
  if (mode == "half_pixel_symmetric") {
    // The part lost by rounding the size down is cut off equally at both ends: the middles of both sides fall together.
    return (in - 1) / 2 + divided(x + 0.5 - out / 2, axis);
  }
  if (mode == "tf_crop_and_resize") {
    if (axis.out <= 1) return 0.5 * (axis.begin + axis.end) * (in - 1);
    return axis.begin * (in - 1) + x * (axis.end - axis.begin) * (in - 1) / (out - 1);
  }
  return mode == "pytorch_half_pixel" && axis.out <= 1 ? 0 : divided(x + 0.5, axis) - 0.5;
}

// Resize-10 reads the element above where it shrinks an axis, the one below where it does not.
constexpr std::string_view kOldNearest = "simple";

double nearest_of(const std::string& mode, double scale, double x) {
  if (mode == kOldNearest) return scale < 1 ? std::ceil(x) : std::floor(x);
  if (mode == "floor") return std::floor(x);
  if (mode == "ceil") return std::ceil(x);
  return mode == "round_prefer_ceil" ? std::floor(x + 0.5) : std::ceil(x - 0.5);
}

// The elements that each output of an axis is made of, all with as many.
struct Taps {
  std::vector<std::vector<int64_t>> positions;  // by tap, then output
  std::vector<std::vector<double>> weights;
  std::vector<bool> outside;  // whether the output's place lies outside of the input
};

// Keys 1981, as Resize-13 has it: weights of the 4 neighbours at distance t from the second.
std::vector<double> cubic_weights(double a, double t) {
  const auto near = [a](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  const auto far = [a](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  return {far(1 + t), near(t), near(1 - t), far(2 - t)};
}

// Resize-18, antialias: where an axis shrinks, the filter is as many times wider.
bool is_widened(const ResizeSpec& spec, const Axis& axis) {
  return spec.antialias && spec.mode != "nearest" && axis.scale < 1;
}

// The weights of a widened filter, of the elements from the floor minus their number / 2 - 1 on; their sum is 1.
std::vector<double> widened_weights(const ResizeSpec& spec, double scale, double t) {
  const double a = spec.cubic_a, reach = std::ceil((spec.mode == "linear" ? 1 : 2) / scale);
  const auto weight = [&](double d) {
    if (spec.mode == "linear") return std::max(1 - d, 0.0);
    if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
    return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
  };
  std::vector<double> weights;
  double total = 0;
  for (double k = 1 - reach; k <= reach; ++k) total += weights.emplace_back(weight(std::abs(k - t) * scale));
  for (double& own : weights) own /= total;
  return weights;
}

void add_output(const ResizeSpec& spec, const Axis& axis, double x, Taps& taps) {
  const double floor = spec.mode == "nearest" ? nearest_of(spec.nearest, axis.scale, x) : std::floor(x);
  const double t = x - floor;
  const std::vector<double> weights = spec.mode == "nearest"   ? std::vector<double>{1}
                                      : is_widened(spec, axis) ? widened_weights(spec, axis.scale, t)
                                      : spec.mode == "linear"  ? std::vector<double>{1 - t, t}
                                                               : cubic_weights(spec.cubic_a, t);
  taps.positions.resize(weights.size());
  taps.weights.resize(weights.size());
  const double before = spec.mode == "nearest" ? 0 : static_cast<double>(weights.size()) / 2 - 1;
  const double first = floor - before, last = static_cast<double>(axis.in - 1);
  double total = 0;
  std::vector<double> kept;
  for (size_t k = 0; k < weights.size(); ++k) {
    const double at = first + static_cast<double>(k);
    kept.push_back(spec.exclude_outside && (at < 0 || at > last) ? 0 : weights[k]);
    total += kept.back();
    // A neighbour that counts nothing is not read, lest it brings an infinity in.
    const double read = kept.back() == 0 ? floor : at;
    taps.positions[k].push_back(static_cast<int64_t>(std::clamp(read, 0.0, last)));
  }
  for (size_t k = 0; k < weights.size(); ++k)
    taps.weights[k].push_back(spec.exclude_outside ? kept[k] / total : kept[k]);
  taps.outside.push_back(x < 0 || x > last);
}

// Values along one axis of `rank`, the others being 1.
Shape along(size_t axis, size_t rank, int64_t size) {
  Shape shape(rank, 1);
  shape[axis] = size;
  return shape;
}

Expr weight_constant(NodeContext& context, const std::vector<double>& weights, const Shape& shape, DataType dtype) {
  const NDArray array = NDArray::empty(shape, dtype);
  for (size_t i = 0; i < weights.size(); ++i) set_element(array.tensor(), static_cast<int64_t>(i), weights[i]);
  return relay::make_constant(array, context.span());
}

// A scale this small would make a filter of too many elements.
constexpr double kLeastScale = 1.0 / 256;

Expr resize_axis(NodeContext& context, const ResizeSpec& spec, const Expr& x, size_t a, DataType dtype) {
  const Axis& axis = spec.axes[a];
  const size_t rank = spec.axes.size();
  const Span& span = context.span();
  if (axis.out == 0) context.refuse(HR_REASON_SHAPE_UNSUPPORTED, "resizing an axis to nothing is not supported");
  if (axis.out > kMostPositions)
    context.refuse(HR_REASON_SHAPE_UNSUPPORTED, "resizing an axis to {} is not supported", axis.out);
  if (is_widened(spec, axis) && axis.scale < kLeastScale)
    context.refuse(HR_REASON_SHAPE_UNSUPPORTED, "antialias with a scale of {} is not supported", axis.scale);
  Taps taps;
  for (int64_t i = 0; i < axis.out; ++i) add_output(spec, axis, input_coordinate(spec.coordinates, axis, i), taps);
  Expr sum;
  for (size_t k = 0; k < taps.positions.size(); ++k) {
    Expr part =
        ops::take(x, context.int_constant({axis.out}, taps.positions[k]), static_cast<int64_t>(a), "clip", 0, span);
    if (spec.mode != "nearest")
      part = ops::multiply(part, weight_constant(context, taps.weights[k], along(a, rank, axis.out), dtype), span);
    sum = sum ? ops::add(sum, part, span) : part;
  }
  if (spec.coordinates != "tf_crop_and_resize") return sum;
  const NDArray outside = NDArray::empty(along(a, rank, axis.out), DataType::bool_());
  for (int64_t i = 0; i < axis.out; ++i)
    set_element_int(outside.tensor(), i, taps.outside[static_cast<size_t>(i)] ? 1 : 0);
  return ops::where(relay::make_constant(outside, span), context.scalar(spec.extrapolation, dtype), sum, span);
}

bool is_identity(const ResizeSpec& spec, const Axis& axis) {
  return axis.in == axis.out && axis.scale == 1 &&
         (spec.coordinates != "tf_crop_and_resize" || (axis.begin == 0 && axis.end == 1));
}

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
  return std::all_of(spec.axes.begin() + 2, spec.axes.end(), [&](const Axis& axis) {
    return !is_widened(spec, axis) && !(is_old && axis.scale < 1) && !(shifts && is_identity(spec, axis)) &&
           axis.in > 0 && axis.out > 0 && axis.scale == static_cast<double>(axis.out) / static_cast<double>(axis.in);
  });
}

Expr resize(NodeContext& context, const ResizeSpec& spec) {
  Expr x = context.input(0);
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
  for (size_t a = 0; a < spec.axes.size(); ++a) {
    const Axis& axis = spec.axes[a];
    if (is_identity(spec, axis)) continue;
    if (axis.in == kSymbolic)
      context.refuse(HR_REASON_DYNAMIC_UNSUPPORTED, "axis {} is cropped and symbolic; fix the input shapes", a);
    if (axis.in == 0) context.invalid("axis {} has no elements to resize", a);
    x = resize_axis(context, spec, x, a, dtype);
  }
  return x;
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

std::vector<Axis> axes_by_scales(NodeContext& context, const std::vector<double>& given) {
  const Expr x = context.input(0);
  const size_t rank = context.rank(x);
  const std::vector<double> scales = spread(context, given, "scales", std::vector<double>(rank, 1));
  std::vector<Axis> axes;
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
void keep_aspect_ratio(NodeContext& context, std::vector<Axis>& axes) {
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

std::vector<Axis> axes_by_sizes(NodeContext& context) {
  const Expr x = context.input(0);
  const std::vector<PrimExpr> in = context.dims(x), sizes = spread(context, known_sizes(context), "sizes", in);
  std::vector<Axis> axes;
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
ResizeSpec old_spec(NodeContext& context, std::vector<Axis> axes) {
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

std::span<const OpRow> image_rows() {
  static constexpr OpRow kRows[] = {
      {"Resize", convert_resize, 1, 4},
      {"Upsample", convert_upsample, 1, 2},
  };
  return kRows;
}

}  // namespace headrace::onnx
