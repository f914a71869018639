#include "ops/image.h"

#include <cmath>

#include "ops/dims.h"
#include "ops/element.h"
#include "ops/families.h"
#include "ops/move.h"
#include "ops/window.h"

namespace headrace::ops {

void Resize2DAttrs::fields(FieldList<Resize2DAttrs>& f) {
  f.field<&Resize2DAttrs::size>("size",
                                {.default_value = Shape(), .has_default = true, .doc = "the result's height and width"})
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

namespace {

using relay::make_call;

void check_one_of(const RelationInput& input, std::string_view what, const std::string& got,
                  std::initializer_list<std::string_view> known) {
  if (std::find(known.begin(), known.end(), got) == known.end())
    input.fail(fmt::format("{} is '{}', expected one of {}", what, got, fmt::join(known, ", ")));
}

void check_resize_attrs(const RelationInput& input, const Resize2DAttrs& attrs) {
  check_one_of(input, "layout", attrs.layout, {"NCHW", "NHWC"});
  check_one_of(input, "method", attrs.method, {"nearest_neighbor", "linear", "cubic"});
  check_one_of(input, "coordinate_transformation_mode", attrs.coordinate_transformation_mode,
               {"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_half_pixel_for_nn"});
  check_one_of(input, "rounding_method", attrs.rounding_method, {"", "round", "floor", "ceil", "round_prefer_ceil"});
}

Array<PrimExpr> resize_size(const RelationInput& input, const Resize2DAttrs& attrs) {
  if (input.arg_types.size() == 1) {
    if (attrs.size.size() != 2)
      input.fail(fmt::format("size needs height and width, got {} numbers", attrs.size.size()));
    return to_dims(attrs.size);
  }
  if (input.arg_types.size() != 2)
    input.fail(fmt::format("takes data and size, got {} arguments", input.arg_types.size()));
  if (!attrs.size.empty()) input.fail("size is given twice, as attribute and as argument");
  const TensorType type = input.tensor(1);
  if (!type || !type->dtype.is_int() || as_shape(type->shape) != Shape{2})
    input.fail(fmt::format("size must be an integer tensor of two elements, got {}", to_string(input.arg_types[1])));
  const auto value = input.arg_value(1);
  return value ? Array<PrimExpr>(*value) : Array<PrimExpr>{make_any(), make_any()};
}

Type relate_resize2d(const RelationInput& input) {
  const auto& attrs = input.call.attrs_as<Resize2DAttrs>();
  check_resize_attrs(input, attrs);
  const TensorType data = input.tensor(0);
  if (!data) return {};
  if (data->shape.size() != 4)
    input.fail(fmt::format("data must have the 4 dimensions of {}, got {}", attrs.layout, show(data)));
  if (data->dtype.is_bool()) input.fail(fmt::format("data must be numbers, got {}", show(data)));
  const Array<PrimExpr> size = resize_size(input, attrs);
  const size_t first = axes_of(attrs.layout, "NCHW")[2];
  Array<PrimExpr> dims = data->shape;
  for (size_t i = 0; i < 2; ++i) {
    const auto from = as_int(dims[first + i]), to = as_int(size[i]);
    if (to && (*to < 0 || (*to > 0 && from == 0)))
      input.fail(fmt::format("{} cannot be resized to {}", show(data), show_dims(size)));
    dims.set(first + i, size[i]);
  }
  return make_tensor_type(dims, attrs.out_dtype.empty() ? data->dtype : DataType::parse(attrs.out_dtype));
}

int64_t round_coordinate(const Resize2DAttrs& attrs, double x) {
  std::string_view method = attrs.rounding_method;
  if (method.empty()) method = attrs.coordinate_transformation_mode == "asymmetric" ? "floor" : "round";
  // `round` takes the lower one of a tie, as ONNX's round_prefer_floor.
  if (method == "round") return static_cast<int64_t>(std::ceil(x - 0.5));
  if (method == "round_prefer_ceil") return static_cast<int64_t>(std::floor(x + 0.5));
  return static_cast<int64_t>(method == "ceil" ? std::ceil(x) : std::floor(x));
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

std::vector<NDArray> eval_resize2d(const EvalInput& input) {
  const auto& attrs = input.attrs<Resize2DAttrs>();
  const NDArray& data = input.args[0];
  NDArray result = input.make_output();
  const size_t h = axes_of(attrs.layout, "NCHW")[2], w = h + 1;
  const std::vector<Taps> rows = axis_taps(attrs, data.shape()[h], result.shape()[h]);
  const std::vector<Taps> columns = axis_taps(attrs, data.shape()[w], result.shape()[w]);
  const Shape strides = dense_strides(data.shape());
  int64_t next = 0;
  for_each_index(result.shape(), [&](const Shape& index) {
    const int64_t base = dot(index, strides) - index[h] * strides[h] - index[w] * strides[w];
    double sum = 0;
    for (const auto& [y, row_weight] : rows[static_cast<size_t>(index[h])]) {
      for (const auto& [x, column_weight] : columns[static_cast<size_t>(index[w])]) {
        const double weight = row_weight * column_weight;
        // A neighbour that counts nothing must not bring its infinity in.
        if (weight != 0) sum += weight * element_as_double(data.tensor(), base + y * strides[h] + x * strides[w]);
      }
    }
    set_element(result.tensor(), next++, result.dtype().is_float() ? sum : std::trunc(sum));
  });
  return {result};
}

Expr resize_call(Array<Expr> args, Shape size, const Resize2DOptions& options, Span span) {
  auto attrs = make_object<Resize2DAttrs>();
  attrs->size = std::move(size);
  attrs->layout = options.layout;
  attrs->method = options.method;
  attrs->coordinate_transformation_mode = options.coordinate_transformation_mode;
  attrs->rounding_method = options.rounding_method;
  attrs->cubic_alpha = options.cubic_alpha;
  attrs->cubic_exclude = options.cubic_exclude ? 1 : 0;
  return make_call("image.resize2d", std::move(args), attrs, std::move(span));
}

}  // namespace

double resize_coordinate(std::string_view mode, int64_t i, int64_t in, int64_t out) {
  const double at = static_cast<double>(i), scale = static_cast<double>(in) / static_cast<double>(out);
  if (mode == "align_corners") return out > 1 ? at * static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
  if (mode == "asymmetric") return at * scale;
  if (mode == "pytorch_half_pixel") return out > 1 ? (at + 0.5) * scale - 0.5 : 0;
  if (mode == "tf_half_pixel_for_nn") return (at + 0.5) * scale;
  return (at + 0.5) * scale - 0.5;
}

void register_image_ops() {
  OpBuilder("image.resize2d",
            "An image resampled: x[N,C,H,W] -> [N,C,size] (or NHWC). Coordinates and rounding as ONNX Resize-13 "
            "names them; the scale is the ratio of the sizes.")
      .arg("data")
      .arg("size", "Tensor", "optional: size as a tensor")
      .any_args()
      .attrs<Resize2DAttrs>()
      .relation(relate_resize2d)
      .fusion(FusionKind::injective)
      .eval(eval_resize2d);
}

Expr resize2d(Expr data, Shape size, const Resize2DOptions& options, Span span) {
  return resize_call({data}, size, options, span);
}
Expr resize2d(Expr data, Expr size, const Resize2DOptions& options, Span span) {
  return resize_call({data, size}, {}, options, span);
}

}  // namespace headrace::ops
