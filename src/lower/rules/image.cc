// Rules of ops that resample images.
#include "ops/image/image.h"

#include "lower/rules/rule.h"

namespace headrace::lower {

namespace {

using ops::Resize2DAttrs;

// Returns the coordinate that output index i reads along an axis. Has the operations of ops::resize_coordinate in the
// same order.
PrimExpr coordinate(const std::string& mode, const PrimExpr& i, int64_t in, int64_t out) {
  const PrimExpr at = make_cast(kReal, i);
  const PrimExpr scale = real(static_cast<double>(in) / static_cast<double>(out));
  if (mode == "align_corners") {
    if (out <= 1) return real(0);
    return divide(at * real(static_cast<double>(in - 1)), real(static_cast<double>(out - 1)));
  }
  if (mode == "asymmetric") return at * scale;
  if (mode == "pytorch_half_pixel" && out <= 1) return real(0);
  const PrimExpr middle = (at + real(0.5)) * scale;
  return mode == "tf_half_pixel_for_nn" ? middle : middle - real(0.5);
}

PrimExpr nearest(const Resize2DAttrs& attrs, const PrimExpr& x) {
  const std::string_view method = ops::rounding_method(attrs);
  if (method == "round_prefer_floor") return call(Intrinsic::ceil, x - real(0.5));
  if (method == "round" || method == "round_prefer_ceil") return call(Intrinsic::floor, x + real(0.5));
  return method == "ceil" ? call(Intrinsic::ceil, x - real(ops::kNearIndex))
                          : call(Intrinsic::floor, x + real(ops::kNearIndex));
}

// An element that an output index reads, and its weight (null: 1).
struct Tap {
  PrimExpr at, weight;
};

PrimExpr within(const PrimExpr& at, int64_t in) {
  return clamp(make_cast(kIndexType, at), make_int(0), make_int(in - 1));
}

std::vector<Tap> cubic_taps(const Resize2DAttrs& attrs, const PrimExpr& x, int64_t in) {
  const PrimExpr a = real(attrs.cubic_alpha), floor = call(Intrinsic::floor, x), t = x - floor, one = real(1);
  const auto near = [&](const PrimExpr& d) { return ((a + real(2)) * d - (a + real(3))) * d * d + one; };
  const auto far = [&](const PrimExpr& d) { return ((a * d - real(5) * a) * d + real(8) * a) * d - real(4) * a; };
  const PrimExpr weights[4] = {far(one + t), near(t), near(one - t), far(real(2) - t)};
  std::vector<Tap> taps;
  PrimExpr total = real(0);
  for (int k = 0; k < 4; ++k) {
    const PrimExpr at = floor + real(k - 1);
    PrimExpr weight = weights[k];
    if (attrs.cubic_exclude != 0) {
      weight = make_select(is_within(at, real(0), real(static_cast<double>(in))), weight, real(0));
    }
    total = total + weight;
    taps.push_back({within(at, in), weight});
  }
  if (attrs.cubic_exclude != 0) {
    for (Tap& tap : taps) tap.weight = divide(tap.weight, total);
  }
  return taps;
}

std::vector<Tap> taps_of(const Resize2DAttrs& attrs, const PrimExpr& i, int64_t in, int64_t out) {
  const PrimExpr x = coordinate(attrs.coordinate_transformation_mode, i, in, out);
  if (attrs.method == "cubic") return cubic_taps(attrs, x, in);
  if (attrs.method != "linear") return {{within(nearest(attrs, x), in), {}}};
  const PrimExpr inside = clamp(x, real(0), real(static_cast<double>(in - 1)));
  const PrimExpr floor = call(Intrinsic::floor, inside), rest = inside - floor;
  return {{within(floor, in), real(1) - rest}, {within(floor + real(1), in), rest}};
}

// The taps of every output index of an axis, as tables [tap, index] that stages fill.
struct AxisTables {
  Buffer at, weight;
  int64_t taps;
};

AxisTables add_tables(Compute& compute, const Resize2DAttrs& attrs, int64_t in, int64_t out, DataType dtype) {
  const auto taps = static_cast<int64_t>(taps_of(attrs, make_int(0), in, out).size());
  AxisTables tables{make_buffer("at", kIndexType, to_dims({taps, out})),
                    make_buffer("weight", dtype, to_dims({taps, out})), taps};
  for (int64_t k = 0; k < taps; ++k) {
    const auto fill = [&](const Buffer& table, const std::function<PrimExpr(const Tap&)>& part) {
      compute.stages.push_back(part_stage(table, {make_int(k), make_int(0)}, to_dims({1, out}), [&](const Index& i) {
        return part(taps_of(attrs, i[1], in, out)[static_cast<size_t>(k)]);
      }));
    };
    fill(tables.at, [](const Tap& tap) { return tap.at; });
    if (taps > 1) fill(tables.weight, [&](const Tap& tap) { return make_cast(dtype, tap.weight); });
  }
  return tables;
}

Compute resize_rule(const RuleInput& input, const Resize2DAttrs& attrs) {
  const Shape in = static_shape(input, input.in_types[0]->shape), out = static_shape(input, input.out_types[0]->shape);
  const std::vector<size_t> axes = ops::resized_axes(attrs, in.size());
  const DataType from = input.in_types[0]->dtype, to = input.out_types[0]->dtype;
  const DataType dtype = from.is_float() && to.is_float() && from.bits() <= 32 ? DataType::float_(32) : kReal;
  Compute compute{input.inputs, {}, {input.make_output()}};
  if (num_elements(out) == 0) {
    compute.stages.push_back(map_stage(compute.outputs[0], [&](const Index&) { return make_const(0, to); }));
    return compute;
  }
  std::vector<AxisTables> tables;
  std::vector<PrimExpr> extents;
  for (const size_t axis : axes) {
    tables.push_back(add_tables(compute, attrs, in[axis], out[axis], dtype));
    extents.push_back(make_int(tables.back().taps));
  }
  const auto element = [&](Index i, const Index& taps) {
    for (size_t k = 0; k < axes.size(); ++k) i[axes[k]] = load(tables[k].at, {taps[k], i[axes[k]]});
    return make_cast(dtype, load(input.inputs[0], i));
  };
  if (tables[0].taps == 1) {
    compute.stages.push_back(map_stage(compute.outputs[0], [&](const Index& i) {
      return make_cast(to, element(i, Index(axes.size(), make_int(0))));
    }));
    return compute;
  }
  ComputeStage stage = reduce_stage(compute.outputs[0], Combiner::sum, extents, [&](const Index& i, const Index& r) {
    PrimExpr weight = load(tables[0].weight, {r[0], i[axes[0]]});
    for (size_t k = 1; k < axes.size(); ++k) weight = weight * load(tables[k].weight, {r[k], i[axes[k]]});
    // A neighbour of weight zero is skipped, because an infinite one would give NaN.
    return make_select(make_binary(BinaryOp::ne, weight, number_like(0, weight)), weight * element(i, r),
                       number_like(0, weight));
  });
  compute.stages.push_back(rounded(std::move(stage)));
  return compute;
}

}  // namespace

void register_image_rules() {
  for (const int spatial : {1, 2, 3}) {
    set_rule(fmt::format("image.resize{}d", spatial),
             [](const RuleInput& input) { return resize_rule(input, input.attrs<Resize2DAttrs>()); });
  }
  set_rule("nn.upsampling", [](const RuleInput& input) {
    return resize_rule(input, ops::resize_attrs(input.attrs<ops::UpSamplingAttrs>()));
  });
  set_rule("nn.upsampling3d", [](const RuleInput& input) {
    return resize_rule(input, ops::resize_attrs(input.attrs<ops::UpSampling3DAttrs>()));
  });
}

}  // namespace headrace::lower
