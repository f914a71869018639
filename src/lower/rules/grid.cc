// Rules of ops that sample at positions given as data.
#include "ops/image/grid.h"

#include "lower/rules/rule.h"
#include "ops/loops/window.h"
#include "tensor/strides.h"

namespace headrace::lower {

namespace {

using ops::GridSampleAttrs;
using tir::make_if;
using tir::make_seq;
using tir::Stmt;

// ---- affine_grid

PrimExpr coordinate(const PrimExpr& i, int64_t size, DataType dtype) {
  if (size == 1) return make_const(0, dtype);
  const PrimExpr place = divide(real(2) * make_cast(kReal, i), real(static_cast<double>(size - 1))) - real(1);
  return make_cast(dtype, place);
}

Compute affine_grid_rule(const RuleInput& input) {
  const Shape& target = input.attrs<ops::AffineGridAttrs>().target_shape;
  const DataType dtype = wide_type(input.out_types[0]->dtype);
  return map_rule(input, [&](const Index& i) {
    const auto factor = [&](int64_t k) { return wide(load(input.inputs[0], {i[0], i[1], make_int(k)})); };
    return factor(0) * coordinate(i[3], target[1], dtype) + factor(1) * coordinate(i[2], target[0], dtype) + factor(2);
  });
}

// ---- grid_sample

// Computes ops::reflected (grid.cc) with the same operations in the same order.
PrimExpr reflected(const GridSampleAttrs& attrs, const PrimExpr& x, int64_t size) {
  const double begin = attrs.align_corners ? 0 : -0.5,
               length = static_cast<double>(attrs.align_corners ? size - 1 : size);
  if (length == 0) return real(0);
  const PrimExpr low = real(begin), span = real(length), distance = call(Intrinsic::abs, x - low);
  const PrimExpr turns = call(Intrinsic::floor, divide(distance, span)), rest = distance - turns * span;
  const PrimExpr half = call(Intrinsic::floor, divide(turns, real(2)));
  const PrimExpr is_even = make_binary(BinaryOp::eq, turns - real(2) * half, real(0));
  return make_select(is_even, rest, span - rest) + low;
}

PrimExpr padded(const GridSampleAttrs& attrs, const PrimExpr& x, int64_t size) {
  if (attrs.padding_mode == "zeros") return x;
  const PrimExpr inside = attrs.padding_mode == "reflection" ? reflected(attrs, x, size) : x;
  return clamp(inside, real(0), real(static_cast<double>(size - 1)));
}

struct GridTap {
  PrimExpr at, weight;
};

// Returns the taps for the grid's coordinate x along an axis. A tap outside the data has the index -1.
std::vector<GridTap> taps_of(const GridSampleAttrs& attrs, const PrimExpr& x, int64_t size) {
  const auto tap = [&](const PrimExpr& at, const PrimExpr& weight) {
    const PrimExpr is_inside = is_within(at, real(0), real(static_cast<double>(size)));
    return GridTap{make_select(is_inside, make_cast(kIndexType, at), make_int(-1)), weight};
  };
  const PrimExpr one = real(1);
  if (attrs.method == "nearest") return {tap(call(Intrinsic::nearbyint, padded(attrs, x, size)), one)};
  if (attrs.method == "bilinear") {
    const PrimExpr inside = padded(attrs, x, size), floor = call(Intrinsic::floor, inside), t = inside - floor;
    return {tap(floor, one - t), tap(floor + one, t)};
  }
  const PrimExpr a = real(ops::kGridCubic), floor = call(Intrinsic::floor, x), t = x - floor;
  const auto near = [&](const PrimExpr& d) { return ((a + real(2)) * d - (a + real(3))) * d * d + one; };
  const auto far = [&](const PrimExpr& d) { return ((a * d - real(5) * a) * d + real(8) * a) * d - real(4) * a; };
  const PrimExpr weights[4] = {far(one + t), near(t), near(one - t), far(real(2) - t)};
  std::vector<GridTap> taps;
  for (int k = 0; k < 4; ++k) taps.push_back(tap(padded(attrs, floor + real(k - 1), size), weights[k]));
  return taps;
}

// Returns the taps of all axes for one position of the grid, axis by axis.
struct Taps {
  Line at, weight;
  int64_t each;
  Shape sizes;  // extents of the axes
};

Stmt fill_taps(const GridSampleAttrs& attrs, const Taps& taps, const Line& grid, const PrimExpr& image,
               const PrimExpr& place, int64_t places) {
  const auto spatial = static_cast<int64_t>(taps.sizes.size());
  std::vector<Stmt> stmts;
  for (int64_t k = 0; k < spatial; ++k) {
    const int64_t size = taps.sizes[static_cast<size_t>(k)];
    const auto n = static_cast<double>(size);
    // The grid's first row holds the coordinates along the last axis.
    const PrimExpr given = grid.item((image * spatial + (spatial - 1 - k)) * places + place);
    const PrimExpr raised = make_cast(kReal, given) + real(1);
    const PrimExpr x =
        attrs.align_corners ? divide(raised, real(2)) * real(n - 1) : divide(raised * real(n) - real(1), real(2));
    stmts.push_back(bind(x, [&](const PrimExpr& bound) {
      std::vector<Stmt> sets;
      int64_t next = k * taps.each;
      for (const GridTap& tap : taps_of(attrs, bound, size)) {
        sets.push_back(taps.at.set_item(make_int(next), tap.at));
        sets.push_back(taps.weight.set_item(make_int(next++), tap.weight));
      }
      return make_seq(sets);
    }));
  }
  return make_seq(stmts);
}

// Adds to `total` the weighted elements of all combinations of taps of the axes from `k` on. `at` is the offset that
// the taps of the axes before `k` selected.
Stmt add_weighted(const Taps& taps, const Line& data, size_t k, const PrimExpr& at, const PrimExpr& weight,
                  const Cell& total) {
  if (k == taps.sizes.size()) return total.set(total.get() + weight * make_cast(kReal, data.item(at)));
  return each(taps.each, [&](const PrimExpr& t) {
    const PrimExpr place = t + static_cast<int64_t>(k) * taps.each;
    return bind(taps.at.item(place), [&](const PrimExpr& own) {
      return bind(taps.weight.item(place), [&](const PrimExpr& own_weight) {
        const PrimExpr counts =
            both(make_binary(BinaryOp::ge, own, make_int(0)), make_binary(BinaryOp::ne, own_weight, real(0)));
        return make_if(counts, add_weighted(taps, data, k + 1, at * taps.sizes[k] + own, weight * own_weight, total));
      });
    });
  });
}

Stmt grid_sample_rule(const KernelInput& input) {
  const auto& attrs = input.attrs<GridSampleAttrs>();
  const Line &data = input.inputs[0], &grid = input.inputs[1], &out = input.outputs[0];
  const int64_t count = ops::grid_taps(attrs), images = out.shape[0], channels = data.shape[1];
  const Shape sizes(data.shape.begin() + 2, data.shape.end());
  const int64_t places = num_elements(Shape(out.shape.begin() + 2, out.shape.end()));
  if (out.size() == 0) return make_seq({});
  const Shape table{static_cast<int64_t>(sizes.size()), count};
  const auto place_of = [&](const PrimExpr& image, const PrimExpr& place, const Taps& taps) {
    const Stmt all = each(channels, [&](const PrimExpr& c) {
      return with_cell(kReal, [&](const Cell& total) {
        return bind(image * channels + c, [&](const PrimExpr& plane) {
          return make_seq({total.set(real(0)), add_weighted(taps, data, 0, plane, real(1), total),
                           out.set_item(plane * places + place, total.get())});
        });
      });
    });
    return make_seq({fill_taps(attrs, taps, grid, image, place, places), all});
  };
  return each_parallel(input, images * places, out.size() * 8, [&](const PrimExpr& i) {
    return bind(floor_div(i, make_int(places)), [&](const PrimExpr& image) {
      return with_scratch("at", kIndexType, table, [&](const Line& at) {
        return with_scratch("weight", kReal, table, [&](const Line& weight) {
          return place_of(image, i - image * places, {at, weight, count, sizes});
        });
      });
    });
  });
}

// ---- crop_and_resize

// Returns the position of index i of a crop between the edges of its box, as ops::crop_place (grid.cc).
PrimExpr crop_place(const PrimExpr& low, const PrimExpr& high, const PrimExpr& i, int64_t crop, int64_t size) {
  const PrimExpr last = real(static_cast<double>(size - 1));
  if (crop == 1) return real(0.5) * (low + high) * last;
  return low * last + make_cast(kReal, i) * divide((high - low) * last, real(static_cast<double>(crop - 1)));
}

// Interpolates between four elements at (y, x) of the plane that begins at `base`, with strides `row` and `column`.
PrimExpr between(const Line& data, const PrimExpr& base, const PrimExpr& y, const PrimExpr& x, int64_t row,
                 int64_t column, bool is_nearest) {
  const auto element = [&](const PrimExpr& r, const PrimExpr& c) {
    return make_cast(kReal, data.item(base + make_cast(kIndexType, r) * row + make_cast(kIndexType, c) * column));
  };
  const auto floor = [&](const PrimExpr& at) { return call(Intrinsic::floor, at); };
  if (is_nearest) return element(floor(y + real(0.5)), floor(x + real(0.5)));
  const PrimExpr top = floor(y), left = floor(x), bottom = call(Intrinsic::ceil, y), right = call(Intrinsic::ceil, x);
  const PrimExpr v = y - top, u = x - left, one = real(1);
  const PrimExpr upper = element(top, left) * (one - u) + element(top, right) * u;
  const PrimExpr lower = element(bottom, left) * (one - u) + element(bottom, right) * u;
  return upper * (one - v) + lower * v;
}

Stmt crop_and_resize_rule(const KernelInput& input) {
  const auto& attrs = input.attrs<ops::CropAndResizeAttrs>();
  const Line &data = input.inputs[0], &boxes = input.inputs[1], &indices = input.inputs[2], &out = input.outputs[0];
  const std::vector<size_t> axes = ops::axes_of(attrs.layout, "NCHW");
  const Shape strides = dense_strides(data.shape), to = dense_strides(out.shape);
  const auto pixel = [&](const PrimExpr& box, const PrimExpr& image, const Index& i) {
    const auto place = [&](size_t k) {
      const auto edge = [&](size_t side) { return make_cast(kReal, boxes.item(box * 4 + static_cast<int64_t>(side))); };
      return crop_place(edge(k), edge(k + 2), i[k], attrs.crop_size[k], data.shape[axes[k + 2]]);
    };
    const auto is_inside = [&](const PrimExpr& at, size_t k) {
      const PrimExpr last = real(static_cast<double>(data.shape[axes[k + 2]] - 1));
      return both(make_binary(BinaryOp::ge, at, real(0)), make_binary(BinaryOp::le, at, last));
    };
    return bind(place(0), [&](const PrimExpr& y) {
      return bind(place(1), [&](const PrimExpr& x) {
        return each(data.shape[axes[1]], [&](const PrimExpr& c) {
          const PrimExpr base = image * strides[0] + c * strides[axes[1]];
          const PrimExpr value =
              between(data, base, y, x, strides[axes[2]], strides[axes[3]], attrs.method == "nearest_neighbor");
          return out.set_item(box * to[0] + c * to[axes[1]] + i[0] * to[axes[2]] + i[1] * to[axes[3]],
                              guarded(both(is_inside(y, 0), is_inside(x, 1)), value, real(attrs.extrapolation_value)));
        });
      });
    });
  };
  return each_parallel(input, out.shape[0], out.size() * 8, [&](const PrimExpr& box) {
    return bind(as_index(indices.item(box)), [&](const PrimExpr& image) {
      return make_seq({tir::make_assert(is_within(image, make_int(0), make_int(data.shape[0])),
                                        "image.crop_and_resize: a box is of an image that data has not"),
                       each_index(attrs.crop_size, [&](const Index& i) { return pixel(box, image, i); })});
    });
  });
}

}  // namespace

void register_grid_rules() {
  set_rule("image.affine_grid", affine_grid_rule);
  set_kernel_rule("image.grid_sample", grid_sample_rule);
  set_kernel_rule("image.crop_and_resize", crop_and_resize_rule);
}

}  // namespace headrace::lower
