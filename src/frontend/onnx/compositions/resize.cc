#include "frontend/onnx/compositions/resize.h"

#include <algorithm>
#include <cmath>

#include "ops/tensor/broadcast.h"
#include "ops/tensor/slice.h"

namespace headrace::onnx {

bool is_widened(const ResizeSpec& spec, const ResizeAxis& axis) {
  return spec.antialias && spec.mode != "nearest" && axis.scale < 1;
}

bool is_identity(const ResizeSpec& spec, const ResizeAxis& axis) {
  return axis.in == axis.out && axis.scale == 1 &&
         (spec.coordinates != "tf_crop_and_resize" || (axis.begin == 0 && axis.end == 1));
}

namespace {

// The largest size of an axis whose positions become constants.
constexpr int64_t kMostPositions = int64_t{1} << 16;

// By a given scale in float32, as sizes by scale are: the nearest element to 7 / 0.7 is then the one at 10, though the
// float32 nearest to 0.7 is below it.
double divided(double x, const ResizeAxis& axis) {
  return axis.is_scaled ? static_cast<float>(x) / static_cast<float>(axis.scale) : x / axis.scale;
}

// Resize-13, coordinate_transformation_mode: where output i reads the input.
double input_coordinate(const std::string& mode, const ResizeAxis& axis, int64_t i) {
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

void add_output(const ResizeSpec& spec, const ResizeAxis& axis, double x, Taps& taps) {
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
  const ResizeAxis& axis = spec.axes[a];
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

}  // namespace

Expr resize_by_axes(NodeContext& context, const ResizeSpec& spec) {
  Expr x = context.input(0);
  const DataType dtype = context.dtype(x);
  for (size_t a = 0; a < spec.axes.size(); ++a) {
    const ResizeAxis& axis = spec.axes[a];
    if (is_identity(spec, axis)) continue;
    if (axis.in == kSymbolic)
      context.refuse(HR_REASON_DYNAMIC_UNSUPPORTED, "axis {} is cropped and symbolic; fix the input shapes", a);
    if (axis.in == 0) context.invalid("axis {} has no elements to resize", a);
    x = resize_axis(context, spec, x, a, dtype);
  }
  return x;
}

}  // namespace headrace::onnx
