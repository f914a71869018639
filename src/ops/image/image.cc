#include "ops/image/image.h"

#include <cmath>

#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "ops/loops/move.h"
#include "ops/loops/window.h"

namespace headrace::ops {

void Resize2DAttrs::fields(FieldList<Resize2DAttrs>& f) {
  f.field<&Resize2DAttrs::size>("size",
                                {.default_value = Shape(), .has_default = true, .doc = "the result's spatial axes"})
      .field<&Resize2DAttrs::roi>(
          "roi", {.default_value = Array<double>(), .has_default = true, .doc = "not used: kept for old programs"})
      .field<&Resize2DAttrs::layout>("layout",
                                     {.default_value = "", .has_default = true, .doc = "empty: NCW, NCHW or NCDHW"})
      .field<&Resize2DAttrs::method>(
          "method", {.default_value = "linear", .has_default = true, .doc = "nearest_neighbor, linear or cubic"})
      .field<&Resize2DAttrs::coordinate_transformation_mode>(
          "coordinate_transformation_mode",
          {.default_value = "half_pixel",
           .has_default = true,
           .doc = "half_pixel, align_corners, asymmetric, pytorch_half_pixel or tf_half_pixel_for_nn"})
      .field<&Resize2DAttrs::rounding_method>("rounding_method",
                                              {.default_value = "round",
                                               .has_default = true,
                                               .doc = "the rounding of nearest_neighbor: round (ties away from zero), "
                                                      "round_prefer_floor, round_prefer_ceil, floor, ceil; "
                                                      "empty: round for align_corners, else floor"})
      .field<&Resize2DAttrs::cubic_alpha>(
          "cubic_alpha", {.default_value = -0.5, .has_default = true, .doc = "the cubic's coefficient"})
      .field<&Resize2DAttrs::cubic_exclude>(
          "cubic_exclude",
          {.default_value = 0, .has_default = true, .doc = "1: weights outside the image count nothing"})
      .field<&Resize2DAttrs::out_dtype>(
          "out_dtype", {.optional = true, .default_value = Value(), .has_default = true, .doc = "None: as data"});
}

void UpSamplingAttrs::fields(FieldList<UpSamplingAttrs>& f) {
  using A = UpSamplingAttrs;
  f.field<&A::scale_h>("scale_h", {.default_value = 1.0, .has_default = true, .doc = "times the height"})
      .field<&A::scale_w>("scale_w", {.default_value = 1.0, .has_default = true, .doc = "times the width"})
      .field<&A::layout>("layout", {.default_value = "NCHW", .has_default = true, .doc = "an order of N C H W"})
      .field<&A::method>(
          "method",
          {.default_value = "nearest_neighbor", .has_default = true, .doc = "nearest_neighbor, bilinear or bicubic"})
      .field<&A::align_corners>("align_corners",
                                {.default_value = false, .has_default = true, .doc = "corners stay where they are"});
}

void UpSampling3DAttrs::fields(FieldList<UpSampling3DAttrs>& f) {
  using A = UpSampling3DAttrs;
  f.field<&A::scale_d>("scale_d", {.default_value = 1.0, .has_default = true, .doc = "times the depth"})
      .field<&A::scale_h>("scale_h", {.default_value = 1.0, .has_default = true, .doc = "times the height"})
      .field<&A::scale_w>("scale_w", {.default_value = 1.0, .has_default = true, .doc = "times the width"})
      .field<&A::layout>("layout", {.default_value = "NCDHW", .has_default = true, .doc = "an order of N C D H W"})
      .field<&A::method>(
          "method", {.default_value = "nearest_neighbor", .has_default = true, .doc = "nearest_neighbor or trilinear"})
      .field<&A::coordinate_transformation_mode>(
          "coordinate_transformation_mode",
          {.default_value = "half_pixel", .has_default = true, .doc = "half_pixel, align_corners or asymmetric"});
}

static Resize2DAttrs make_resize_attrs(std::string layout, const std::string& method, std::string coordinates) {
  Resize2DAttrs attrs;
  attrs.layout = std::move(layout);
  attrs.method = method.ends_with("linear") ? "linear" : method == "bicubic" ? "cubic" : method;
  attrs.coordinate_transformation_mode = std::move(coordinates);
  attrs.rounding_method = "";
  return attrs;
}

Resize2DAttrs resize_attrs(const UpSamplingAttrs& attrs) {
  return make_resize_attrs(attrs.layout, attrs.method, attrs.align_corners ? "align_corners" : "asymmetric");
}
Resize2DAttrs resize_attrs(const UpSampling3DAttrs& attrs) {
  return make_resize_attrs(attrs.layout, attrs.method, attrs.coordinate_transformation_mode);
}

std::vector<size_t> resized_axes(const Resize2DAttrs& attrs, size_t rank) {
  const std::string_view letters = letters_of(rank - 2);
  std::vector<size_t> axes = axes_of(layout_or(attrs.layout, letters), letters);
  axes.erase(axes.begin(), axes.begin() + 2);
  return axes;
}

namespace {

using relay::make_call;

void check_resize_attrs(const RelationInput& input, const Resize2DAttrs& attrs) {
  check_one_of(input, "method", attrs.method, {"nearest_neighbor", "linear", "cubic"});
  check_one_of(input, "coordinate_transformation_mode", attrs.coordinate_transformation_mode,
               {"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_half_pixel_for_nn"});
  check_one_of(input, "rounding_method", attrs.rounding_method,
               {"", "round", "round_prefer_floor", "floor", "ceil", "round_prefer_ceil"});
}

// Returns the axes of data that are resampled, after checking data and layout.
std::vector<size_t> checked_axes(const RelationInput& input, const TensorType& data, const Resize2DAttrs& attrs,
                                 size_t spatial) {
  const std::string_view letters = letters_of(spatial), layout = layout_or(attrs.layout, letters);
  layout_axes(input, "layout", layout, letters);
  if (data->shape.size() != spatial + 2)
    input.fail(fmt::format("data must have the {} dimensions of {}, got {}", spatial + 2, layout, show(data)));
  if (data->dtype.is_bool()) input.fail(fmt::format("data must be numbers, got {}", show(data)));
  return resized_axes(attrs, spatial + 2);
}

Array<PrimExpr> resize_size(const RelationInput& input, const Resize2DAttrs& attrs, size_t spatial) {
  if (input.arg_types.size() == 1) {
    if (attrs.size.size() != spatial)
      input.fail(fmt::format("size needs {} numbers, one a spatial axis, got {}", spatial, attrs.size.size()));
    return to_dims(attrs.size);
  }
  if (input.arg_types.size() > 3)
    input.fail(fmt::format("takes data, size and roi, got {} arguments", input.arg_types.size()));
  if (!attrs.size.empty()) input.fail("size is given twice, as attribute and as argument");
  const TensorType type = input.tensor(1);
  if (!type || !type->dtype.is_int() || as_shape(type->shape) != Shape{static_cast<int64_t>(spatial)})
    input.fail(
        fmt::format("size must be an integer tensor of {} elements, got {}", spatial, to_string(input.arg_types[1])));
  const auto value = input.arg_value(1);
  return value ? Array<PrimExpr>(*value) : Array<PrimExpr>(std::vector<PrimExpr>(spatial, make_any()));
}

Type relate_resize(const RelationInput& input, size_t spatial) {
  const auto& attrs = input.call.attrs_as<Resize2DAttrs>();
  check_resize_attrs(input, attrs);
  const TensorType data = input.tensor(0);
  if (!data) return {};
  const std::vector<size_t> axes = checked_axes(input, data, attrs, spatial);
  const Array<PrimExpr> size = resize_size(input, attrs, spatial);
  Array<PrimExpr> dims = data->shape;
  for (size_t i = 0; i < spatial; ++i) {
    const auto from = as_int(dims[axes[i]]), to = as_int(size[i]);
    if (to && (*to < 0 || (*to > 0 && from == 0)))
      input.fail(fmt::format("{} cannot be resized to {}", show(data), show_dims(size)));
    dims.set(axes[i], size[i]);
  }
  return make_tensor_type(dims, attrs.out_dtype.value_or(data->dtype));
}

Type scaled_type(const RelationInput& input, const Resize2DAttrs& attrs, const std::vector<double>& scales) {
  check_one_of(input, "coordinate_transformation_mode", attrs.coordinate_transformation_mode,
               {"half_pixel", "align_corners", "asymmetric"});
  const TensorType data = input.tensor(0);
  if (!data) return {};
  const std::vector<size_t> axes = checked_axes(input, data, attrs, scales.size());
  Array<PrimExpr> dims = data->shape;
  for (size_t i = 0; i < scales.size(); ++i) {
    const auto size = as_int(dims[axes[i]]);
    const double scaled = std::round(static_cast<double>(size.value_or(1)) * scales[i]);
    if (!(scales[i] > 0) || !(scaled < 0x1p31) || (scaled < 1 && size != 0))
      input.fail(fmt::format("a scale of {} gives {} no size", scales[i], show(data)));
    const bool is_whole = scales[i] == std::floor(scales[i]);
    dims.set(axes[i], size       ? make_int(static_cast<int64_t>(scaled))
                      : is_whole ? dims[axes[i]] * static_cast<int64_t>(scales[i])
                                 : make_any());
  }
  return make_tensor_type(dims, data->dtype);
}

Type relate_upsampling(const RelationInput& input) {
  const auto& attrs = input.call.attrs_as<UpSamplingAttrs>();
  check_one_of(input, "method", attrs.method, {"nearest_neighbor", "bilinear", "bicubic"});
  return scaled_type(input, resize_attrs(attrs), {attrs.scale_h, attrs.scale_w});
}

Type relate_upsampling3d(const RelationInput& input) {
  const auto& attrs = input.call.attrs_as<UpSampling3DAttrs>();
  check_one_of(input, "method", attrs.method, {"nearest_neighbor", "trilinear"});
  return scaled_type(input, resize_attrs(attrs), {attrs.scale_d, attrs.scale_h, attrs.scale_w});
}

int64_t round_coordinate(const Resize2DAttrs& attrs, double x) {
  const std::string_view method = rounding_method(attrs);
  if (method == "round_prefer_floor") return static_cast<int64_t>(std::ceil(x - 0.5));
  // `round` takes ties away from zero, as Relay's te.round. That differs from round_prefer_ceil below zero only, where
  // all coordinates read the first element.
  if (method == "round" || method == "round_prefer_ceil") return static_cast<int64_t>(std::floor(x + 0.5));
  return static_cast<int64_t>(method == "ceil" ? std::ceil(x - kNearIndex) : std::floor(x + kNearIndex));
}

// The elements of an axis that one output index reads, with their weights.
using Taps = std::vector<std::pair<int64_t, double>>;

Taps cubic_taps(const Resize2DAttrs& attrs, double x, int64_t in) {
  const double a = attrs.cubic_alpha, floor = std::floor(x), t = x - floor;
  const auto near = [&](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  const auto far = [&](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  const double weights[4] = {far(1 + t), near(t), near(1 - t), far(2 - t)};
  Taps taps;
  double total = 0;
  for (int k = 0; k < 4; ++k) {
    const int64_t at = static_cast<int64_t>(floor) - 1 + k;
    const bool outside = at < 0 || at >= in;
    const double weight = outside && attrs.cubic_exclude != 0 ? 0 : weights[k];
    total += weight;
    taps.emplace_back(std::clamp<int64_t>(at, 0, in - 1), weight);
  }
  if (attrs.cubic_exclude != 0) {
    for (auto& tap : taps) tap.second /= total;
  }
  return taps;
}

std::vector<Taps> axis_taps(const Resize2DAttrs& attrs, int64_t in, int64_t out) {
  std::vector<Taps> result;
  for (int64_t i = 0; i < out; ++i) {
    const double x = resize_coordinate(attrs.coordinate_transformation_mode, i, in, out);
    if (attrs.method == "cubic") {
      result.push_back(cubic_taps(attrs, x, in));
    } else if (attrs.method == "linear") {
      const double clamped = std::clamp(x, 0.0, static_cast<double>(in - 1)), floor = std::floor(clamped);
      const auto at = static_cast<int64_t>(floor);
      result.push_back({{at, 1 - (clamped - floor)}, {std::min(at + 1, in - 1), clamped - floor}});
    } else {
      result.push_back({{std::clamp<int64_t>(round_coordinate(attrs, x), 0, in - 1), 1.0}});
    }
  }
  return result;
}

// Adds to `sum` the weighted elements that the taps of the axes from `k` on name, from offset `at` on.
void add_weighted(const NDArray& data, const std::vector<const Taps*>& taps, const Shape& strides, size_t k, int64_t at,
                  double weight, double& sum) {
  if (k == taps.size()) {
    sum += weight * element_as_double(data.tensor(), at);
    return;
  }
  for (const auto& [place, own] : *taps[k]) {
    // A neighbour that counts nothing must not bring its infinity in.
    if (own * weight != 0) add_weighted(data, taps, strides, k + 1, at + place * strides[k], weight * own, sum);
  }
}

std::vector<NDArray> resample(const EvalInput& input, const Resize2DAttrs& attrs) {
  const NDArray& data = input.args[0];
  const NDArray result = input.make_output();
  const std::vector<size_t> axes = resized_axes(attrs, data.shape().size());
  std::vector<std::vector<Taps>> tables;
  const Shape strides = dense_strides(data.shape());
  Shape own_strides;
  for (const size_t axis : axes) {
    tables.push_back(axis_taps(attrs, data.shape()[axis], result.shape()[axis]));
    own_strides.push_back(strides[axis]);
  }
  int64_t next = 0;
  std::vector<const Taps*> taps(axes.size());
  for_each_index(result.shape(), [&](const Shape& index) {
    int64_t base = dot(index, strides);
    for (size_t k = 0; k < axes.size(); ++k) {
      base -= index[axes[k]] * own_strides[k];
      taps[k] = &tables[k][static_cast<size_t>(index[axes[k]])];
    }
    int64_t taps_of_all = 1;
    for (const Taps* own : taps) taps_of_all *= std::ssize(*own);
    input.spend(taps_of_all);
    double sum = 0;
    add_weighted(data, taps, own_strides, 0, base, 1, sum);
    set_element(result.tensor(), next++, result.dtype().is_float() ? sum : std::trunc(sum));
  });
  return {result};
}

Expr resize_call(std::string_view op, Array<Expr> args, Shape size, const Resize2DOptions& options, Span span) {
  auto attrs = make_object<Resize2DAttrs>();
  attrs->size = std::move(size);
  attrs->layout = options.layout;
  attrs->method = options.method;
  attrs->coordinate_transformation_mode = options.coordinate_transformation_mode;
  attrs->rounding_method = options.rounding_method;
  attrs->cubic_alpha = options.cubic_alpha;
  attrs->cubic_exclude = options.cubic_exclude ? 1 : 0;
  return make_call(std::string(op), std::move(args), attrs, std::move(span));
}

}  // namespace

std::string_view rounding_method(const Resize2DAttrs& attrs) {
  if (!attrs.rounding_method.empty()) return attrs.rounding_method;
  return attrs.coordinate_transformation_mode == "align_corners" ? "round" : "floor";
}

double resize_coordinate(std::string_view mode, int64_t i, int64_t in, int64_t out) {
  const double at = static_cast<double>(i), scale = static_cast<double>(in) / static_cast<double>(out);
  if (mode == "align_corners") return out > 1 ? at * static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
  if (mode == "asymmetric") return at * scale;
  if (mode == "pytorch_half_pixel") return out > 1 ? (at + 0.5) * scale - 0.5 : 0;
  if (mode == "tf_half_pixel_for_nn") return (at + 0.5) * scale;
  return (at + 0.5) * scale - 0.5;
}

void register_image_ops() {
  for (const size_t spatial : {1u, 2u, 3u}) {
    static constexpr std::string_view kShapes[] = {"N,C,W", "N,C,H,W", "N,C,D,H,W"};
    OpBuilder(fmt::format("image.resize{}d", spatial),
              fmt::format("An image resampled: x[{}] -> [N,C,size], or in another layout. Coordinates and rounding as "
                          "ONNX Resize-13 names them; the scale is the ratio of the sizes.",
                          kShapes[spatial - 1]))
        .arg("data", "Tensor", fmt::format("T[{}], numbers, or in another layout: the image", kShapes[spatial - 1]))
        .arg("size", "Tensor", fmt::format("int[{}], optional: size as a tensor", spatial))
        .arg("roi", "Tensor", "f[2 * spatial axes], optional, after a size: not used, kept for old programs")
        .any_args()
        .attrs<Resize2DAttrs>()
        .relation([spatial](const RelationInput& input) { return relate_resize(input, spatial); })
        .fusion(FusionKind::injective)
        .level(5)
        .eval([](const EvalInput& input) { return resample(input, input.attrs<Resize2DAttrs>()); });
  }
  OpBuilder("nn.upsampling",
            "An image resampled by factors: x[N,C,H,W] -> [N,C,round(H * scale_h),round(W * scale_w)]; as "
            "image.resize2d with asymmetric coordinates, or with aligned corners.")
      .arg("data", "Tensor", "T[N, C, H, W], numbers, or in another layout: the image")
      .attrs<UpSamplingAttrs>()
      .relation(relate_upsampling)
      .fusion(FusionKind::injective)
      .level(2)
      .eval([](const EvalInput& input) { return resample(input, resize_attrs(input.attrs<UpSamplingAttrs>())); });
  OpBuilder("nn.upsampling3d",
            "A volume resampled by factors: x[N,C,D,H,W] -> [N,C,round(D * scale_d),...]; as image.resize3d.")
      .arg("data", "Tensor", "T[N, C, D, H, W], numbers, or in another layout: the volume")
      .attrs<UpSampling3DAttrs>()
      .relation(relate_upsampling3d)
      .fusion(FusionKind::injective)
      .level(2)
      .eval([](const EvalInput& input) { return resample(input, resize_attrs(input.attrs<UpSampling3DAttrs>())); });
}

Expr resize2d(Expr data, Shape size, const Resize2DOptions& options, Span span) {
  return resize_call("image.resize2d", {data}, size, options, span);
}
Expr resize2d(Expr data, Expr size, const Resize2DOptions& options, Span span) {
  return resize_call("image.resize2d", {data, size}, {}, options, span);
}
Expr resize(Expr data, Shape size, const Resize2DOptions& options, Span span) {
  static constexpr std::string_view kLayouts[] = {"NCW", "NCHW", "NCDHW"};
  HEADRACE_CHECK(!size.empty() && size.size() <= 3, "a resize over {} axes", size.size());
  Resize2DOptions own = options;
  own.layout = kLayouts[size.size() - 1];
  const std::string op = fmt::format("image.resize{}d", size.size());
  return resize_call(op, {std::move(data)}, std::move(size), own, std::move(span));
}

}  // namespace headrace::ops
