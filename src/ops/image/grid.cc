#include "ops/image/grid.h"

#include <algorithm>
#include <cmath>

#include "arith/canonical.h"
#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "ops/loops/index_value.h"
#include "ops/loops/move.h"
#include "ops/loops/window.h"
#include "ops/families.h"
#include "relay/expr.h"

namespace headrace::ops {

void AffineGridAttrs::fields(FieldList<AffineGridAttrs>& f) {
  f.field<&AffineGridAttrs::target_shape>("target_shape", {.doc = "height and width of the grid"});
}

void GridSampleAttrs::fields(FieldList<GridSampleAttrs>& f) {
  using A = GridSampleAttrs;
  f.field<&A::method>("method",
                      {.default_value = "bilinear", .has_default = true, .doc = "bilinear, nearest or bicubic"})
      .field<&A::layout>("layout", {.default_value = "NCHW", .has_default = true, .doc = "NCHW or NCDHW"})
      .field<&A::padding_mode>("padding_mode",
                               {.default_value = "zeros",
                                .has_default = true,
                                .doc = "the elements outside: zeros, border (the nearest element) or reflection"})
      .field<&A::align_corners>("align_corners", {.default_value = true,
                                                  .has_default = true,
                                                  .doc = "-1 and 1 are the middles of the corner elements, not their "
                                                         "edges"});
}

void CropAndResizeAttrs::fields(FieldList<CropAndResizeAttrs>& f) {
  using A = CropAndResizeAttrs;
  f.field<&A::crop_size>("crop_size", {.doc = "height and width of a crop"})
      .field<&A::layout>("layout", {.default_value = "NCHW", .has_default = true, .doc = "NCHW or NHWC"})
      .field<&A::method>("method",
                         {.default_value = "bilinear", .has_default = true, .doc = "bilinear or nearest_neighbor"})
      .field<&A::extrapolation_value>("extrapolation_value",
                                      {.default_value = 0.0, .has_default = true, .doc = "outside of the image"})
      .field<&A::out_dtype>("out_dtype",
                            {.optional = true, .default_value = Value(), .has_default = true, .doc = "None: as data"});
}

int64_t grid_taps(const GridSampleAttrs& attrs) {
  return attrs.method == "nearest" ? 1 : attrs.method == "bilinear" ? 2 : 4;
}

double grid_coordinate(int64_t i, int64_t size) {
  return size > 1 ? 2 * static_cast<double>(i) / static_cast<double>(size - 1) - 1 : 0;
}

namespace {

// ---- affine_grid

Type relate_affine_grid(const RelationInput& input) {
  const Shape& target = input.call.attrs_as<AffineGridAttrs>().target_shape;
  check_sizes(input, "target_shape", target, 2, 1);
  const TensorType data = input.tensor(0);
  if (!data) return {};
  if (data->shape.size() != 3 || !data->dtype.is_float() || arith::is_unequal(data->shape[1], make_int(2)) ||
      arith::is_unequal(data->shape[2], make_int(3)))
    input.fail(fmt::format("data must be float matrices [N, 2, 3], got {}", show(data)));
  return make_tensor_type(Array<PrimExpr>{data->shape[0], make_int(2), make_int(target[0]), make_int(target[1])},
                          data->dtype);
}

std::vector<NDArray> eval_affine_grid(const EvalInput& input) {
  const NDArray out = input.make_output();
  const Shape& to = out.shape();
  dispatch_float(out.dtype(), [&]<typename T>() {
    using C = Compute<T>;
    const Elements<T> m(input.args[0]), y(out);
    int64_t next = 0;
    for_each_index(to, [&](const Shape& i) {
      const int64_t row = (i[0] * 2 + i[1]) * 3;
      const C across = static_cast<C>(grid_coordinate(i[3], to[3])),
              down = static_cast<C>(grid_coordinate(i[2], to[2]));
      y.set(next++, m[row] * across + m[row + 1] * down + m[row + 2]);
    });
  });
  return {out};
}

// ---- grid_sample

Type relate_grid_sample(const RelationInput& input) {
  const auto& attrs = input.call.attrs_as<GridSampleAttrs>();
  check_one_of(input, "layout", attrs.layout, {"NCHW", "NCDHW"});
  check_one_of(input, "method", attrs.method, {"bilinear", "nearest", "bicubic"});
  check_one_of(input, "padding_mode", attrs.padding_mode, {"zeros", "border", "reflection"});
  const size_t rank = attrs.layout.size();
  if (attrs.method == "bicubic" && rank == 5) input.fail("method bicubic is for planes, and the layout is NCDHW");
  const TensorType data = input.tensor(0), grid = input.tensor(1);
  if (!data || !grid) return {};
  if (data->shape.size() != rank || !data->dtype.is_float())
    input.fail(fmt::format("data must be floats in the layout {}, got {}", attrs.layout, show(data)));
  if (grid->shape.size() != rank || !grid->dtype.is_float() || arith::is_unequal(grid->shape[0], data->shape[0]) ||
      arith::is_unequal(grid->shape[1], make_int(static_cast<int64_t>(rank) - 2)))
    input.fail(fmt::format("grid must be floats [N, {}, ...] of the {} dimensions of {}, got {}", rank - 2, rank,
                           show(data), show(grid)));
  Array<PrimExpr> dims = grid->shape;
  dims.set(1, data->shape[1]);
  return make_tensor_type(dims, data->dtype);
}

// An element along one axis, and how much it counts; index -1: outside, it counts nothing.
struct Tap {
  int64_t at;
  double weight;
};

// Goes back and forth between the edges of an axis.
double reflected(const GridSampleAttrs& attrs, double x, int64_t size) {
  const double low = attrs.align_corners ? 0 : -0.5, span = static_cast<double>(attrs.align_corners ? size - 1 : size);
  if (span == 0) return 0;
  const double distance = std::abs(x - low), turns = std::floor(distance / span), rest = distance - turns * span;
  const bool is_even = turns - 2 * std::floor(turns / 2) == 0;
  return (is_even ? rest : span - rest) + low;
}

// Maps x into the data by the padding mode.
double padded(const GridSampleAttrs& attrs, double x, int64_t size) {
  if (attrs.padding_mode == "zeros") return x;
  const double inside = attrs.padding_mode == "reflection" ? reflected(attrs, x, size) : x;
  return std::min(std::max(inside, 0.0), static_cast<double>(size - 1));
}

Tap tap_at(double x, double weight, int64_t size) {
  const bool is_inside = x >= 0 && x < static_cast<double>(size);
  return {is_inside ? static_cast<int64_t>(x) : -1, weight};
}

// Returns the taps of coordinate `place` of the grid along an axis.
std::vector<Tap> axis_taps(const GridSampleAttrs& attrs, double place, int64_t size) {
  const auto n = static_cast<double>(size);
  const double x = attrs.align_corners ? (place + 1) / 2 * (n - 1) : ((place + 1) * n - 1) / 2;
  if (attrs.method == "nearest") return {tap_at(std::nearbyint(padded(attrs, x, size)), 1, size)};
  if (attrs.method == "bilinear") {
    const double inside = padded(attrs, x, size), floor = std::floor(inside), t = inside - floor;
    return {tap_at(floor, 1 - t, size), tap_at(floor + 1, t, size)};
  }
  const double a = kGridCubic, floor = std::floor(x), t = x - floor;
  const auto near = [&](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  const auto far = [&](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  const double weights[4] = {far(1 + t), near(t), near(1 - t), far(2 - t)};
  std::vector<Tap> taps;
  for (int k = 0; k < 4; ++k) taps.push_back(tap_at(padded(attrs, floor + (k - 1), size), weights[k], size));
  return taps;
}

// Adds to `sum` the elements that the taps of the axes from `k` on name, below element `at` of those before.
void add_weighted(const NDArray& data, const std::vector<std::vector<Tap>>& taps, size_t k, int64_t at, double weight,
                  double& sum) {
  if (k == taps.size()) {
    sum += weight * element_as_double(data.tensor(), at);
    return;
  }
  const int64_t size = data.shape()[k + 2];
  for (const Tap& tap : taps[k]) {
    // A neighbour that counts nothing must not bring its infinity in.
    if (tap.at >= 0 && tap.weight != 0) add_weighted(data, taps, k + 1, at * size + tap.at, weight * tap.weight, sum);
  }
}

std::vector<NDArray> eval_grid_sample(const EvalInput& input) {
  const auto& attrs = input.attrs<GridSampleAttrs>();
  const NDArray &data = input.args[0], &grid = input.args[1], out = input.make_output();
  const size_t spatial = data.shape().size() - 2;
  const int64_t places = num_elements(Shape(out.shape().begin() + 2, out.shape().end()));
  for (int64_t n = 0; n < out.shape()[0]; ++n) {
    for (int64_t p = 0; p < places; ++p) {
      std::vector<std::vector<Tap>> taps;
      for (size_t k = 0; k < spatial; ++k) {
        // The grid's first row is along the last axis.
        const auto row = n * static_cast<int64_t>(spatial) + static_cast<int64_t>(spatial - 1 - k);
        taps.push_back(axis_taps(attrs, element_as_double(grid.tensor(), row * places + p), data.shape()[k + 2]));
      }
      for (int64_t c = 0; c < data.shape()[1]; ++c) {
        const int64_t plane = n * data.shape()[1] + c;
        double sum = 0;
        add_weighted(data, taps, 0, plane, 1, sum);
        set_element(out.tensor(), plane * places + p, sum);
      }
    }
  }
  return {out};
}

// ---- crop_and_resize

Type relate_crop_and_resize(const RelationInput& input) {
  const auto& attrs = input.call.attrs_as<CropAndResizeAttrs>();
  check_sizes(input, "crop_size", attrs.crop_size, 2, 1);
  check_one_of(input, "layout", attrs.layout, {"NCHW", "NHWC"});
  check_one_of(input, "method", attrs.method, {"bilinear", "nearest_neighbor"});
  if (attrs.out_dtype && !attrs.out_dtype->is_float())
    input.fail(fmt::format("out_dtype must be floating point, got {}", *attrs.out_dtype));
  const TensorType data = input.tensor(0), boxes = input.tensor(1), indices = input.tensor(2);
  if (!data || !boxes || !indices) return {};
  if (data->shape.size() != 4 || !data->dtype.is_float())
    input.fail(fmt::format("data must be floats in the layout {}, got {}", attrs.layout, show(data)));
  if (boxes->shape.size() != 2 || !boxes->dtype.is_float() || arith::is_unequal(boxes->shape[1], make_int(4)))
    input.fail(fmt::format("boxes must be floats [boxes, 4]: top, left, bottom, right; got {}", show(boxes)));
  if (indices->shape.size() != 1 || !indices->dtype.is_int() || arith::is_unequal(indices->shape[0], boxes->shape[0]))
    input.fail(fmt::format("box_indices must be integers, one a box of {}, got {}", show(boxes), show(indices)));
  const std::vector<size_t> axes = axes_of(attrs.layout, "NCHW");
  Array<PrimExpr> dims = data->shape;
  dims.set(0, boxes->shape[0]);
  for (size_t i = 0; i < 2; ++i) {
    if (is_int(data->shape[axes[i + 2]], 0)) input.fail(fmt::format("the plane of {} is empty", show(data)));
    dims.set(axes[i + 2], make_int(attrs.crop_size[i]));
  }
  return make_tensor_type(dims, attrs.out_dtype.value_or(data->dtype));
}

// Returns the position of index i of a crop along an axis of an image.
double crop_place(double low, double high, int64_t i, int64_t crop, int64_t size) {
  const auto last = static_cast<double>(size - 1);
  if (crop == 1) return 0.5 * (low + high) * last;
  return low * last + static_cast<double>(i) * ((high - low) * last / static_cast<double>(crop - 1));
}

std::vector<NDArray> eval_crop_and_resize(const EvalInput& input) {
  const auto& attrs = input.attrs<CropAndResizeAttrs>();
  const NDArray &data = input.args[0], &boxes = input.args[1], &indices = input.args[2], out = input.make_output();
  const std::vector<size_t> axes = axes_of(attrs.layout, "NCHW");
  const Shape strides = dense_strides(data.shape());
  const int64_t channels_stride = strides[axes[1]], row = strides[axes[2]], column = strides[axes[3]];
  for (int64_t box = 0; box < indices.num_elements(); ++box) {
    const int64_t image = index_at(indices, box);
    if (image < 0 || image >= data.shape()[0])
      throw_at(input.call.span, "image.crop_and_resize",
               fmt::format("box {} is of image {}, and data has {}", box, index_text(indices, box), data.shape()[0]));
  }
  int64_t next = 0;
  for_each_index(out.shape(), [&](const Shape& i) {
    const int64_t image = element_as_int(indices.tensor(), i[0]);
    double at[2];
    bool is_inside = true;
    for (size_t k = 0; k < 2; ++k) {
      const auto edge = [&](size_t side) {
        return element_as_double(boxes.tensor(), i[0] * 4 + static_cast<int64_t>(side));
      };
      const int64_t size = data.shape()[axes[k + 2]];
      at[k] = crop_place(edge(k), edge(k + 2), i[axes[k + 2]], attrs.crop_size[k], size);
      is_inside = is_inside && at[k] >= 0 && at[k] <= static_cast<double>(size - 1);
    }
    const int64_t base = image * strides[0] + i[axes[1]] * channels_stride;
    const auto element = [&](double y, double x) {
      return element_as_double(data.tensor(), base + static_cast<int64_t>(y) * row + static_cast<int64_t>(x) * column);
    };
    double value = attrs.extrapolation_value;
    if (is_inside && attrs.method == "bilinear") {
      const double top = std::floor(at[0]), left = std::floor(at[1]), bottom = std::ceil(at[0]),
                   right = std::ceil(at[1]), v = at[0] - top, u = at[1] - left;
      const double upper = element(top, left) * (1 - u) + element(top, right) * u;
      const double lower = element(bottom, left) * (1 - u) + element(bottom, right) * u;
      value = upper * (1 - v) + lower * v;
    } else if (is_inside) {
      value = element(std::floor(at[0] + 0.5), std::floor(at[1] + 0.5));
    }
    set_element(out.tensor(), next++, value);
  });
  return {out};
}

}  // namespace

void register_grid_ops() {
  OpBuilder("image.affine_grid",
            "Where an affine map takes the places of a grid, for grid_sample: data f[N,2,3] -> f[N,2,target_shape], x "
            "and y of data * (x, y, 1) with x and y from -1 to 1. Jaderberg et al. 2015.")
      .arg("data", "Tensor", "f[N, 2, 3]: a map of each batch, x and y by x, y and 1")
      .attrs<AffineGridAttrs>()
      .relation(relate_affine_grid)
      .fusion(FusionKind::injective)
      .level(5)
      .eval(eval_affine_grid);
  OpBuilder("image.grid_sample",
            "An image read at places between its elements: data f[N,C,H,W], grid f[N,2,P,Q] (x, y from -1 to 1) -> "
            "f[N,C,P,Q]; or data f[N,C,D,H,W], grid f[N,3,O,P,Q] (x, y, z) -> f[N,C,O,P,Q]. nearest takes the even one "
            "of a tie; a place that is NaN reads 0.")
      .arg("data", "Tensor", "f[N, C, H, W], or [N, C, D, H, W]: the image")
      .arg("grid", "Tensor", "f[N, 2, P, Q], or [N, 3, O, P, Q]: the places that are read, x first, from -1 to 1")
      .attrs<GridSampleAttrs>()
      .relation(relate_grid_sample)
      .fusion(FusionKind::opaque)
      .level(5)
      .eval(eval_grid_sample);
  OpBuilder("image.crop_and_resize",
            "Boxes of images resampled to one size: data f[N,C,H,W], boxes f[B,4] (top, left, bottom, right, as parts "
            "of the plane's last row and column), box_indices i[B] (the image) -> f[B,C,crop_size]. The edges of a box "
            "are the middles of the crop's corners; what lies outside of the image is extrapolation_value.")
      .arg("data", "Tensor", "f[N, C, H, W], or in another layout: the images")
      .arg("boxes", "Tensor", "f[B, 4]: top, left, bottom and right of each box, as parts of the plane")
      .arg("box_indices", "Tensor", "int[B]: the image that each box is of")
      .attrs<CropAndResizeAttrs>()
      .relation(relate_crop_and_resize)
      .fusion(FusionKind::opaque)
      .level(5)
      .eval(eval_crop_and_resize);
}

}  // namespace headrace::ops
