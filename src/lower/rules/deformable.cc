// The rule of nn.deformable_conv2d: the displaced taps of every window, then their products with the kernel.
#include "ops/nn/deformable.h"

#include "lower/rules/layout_index.h"
#include "lower/rules/rule.h"

namespace headrace::lower {

namespace {

// The neighbours of a coordinate along an axis, and how much the upper one counts.
struct TapNeighbours {
  PrimExpr low, high, part, is_inside;
  TapNeighbours(const PrimExpr& at, const PrimExpr& size) {
    const PrimExpr floor = call(Intrinsic::floor, at), limit = make_cast(kReal, size);
    is_inside = is_within(at, real(0), limit);
    // A coordinate outside, which may be beyond any integer, reads an element that does not count.
    low = make_cast(DataType::int_(64), clamp(floor, real(0), most(limit - real(1), real(0))));
    high = least(low + 1, size - 1);
    part = at - floor;
  }
};

// Makes the stage samples[n, c, r, s, p, q].
ComputeStage sample_stage(const RuleInput& input, const Buffer& samples, const Layout& layout) {
  const auto& attrs = input.attrs<ops::DeformableConv2DAttrs>();
  const ops::Window window = ops::deformable_window(attrs);
  const auto dims = whole_dims(input.in_types[0], layout, ops::kDeformableData);
  const PrimExpr per_offset = floor_div(dims[1], make_int(attrs.deformable_groups));
  return map_stage(samples, [&](const Index& i) {
    const PrimExpr pair =
        (floor_div(i[1], per_offset) * (samples->shape[2] * samples->shape[3]) + i[2] * samples->shape[3] + i[3]) * 2;
    const auto place = [&](size_t axis) {
      const PrimExpr begin =
          i[4 + axis] * window.strides[axis] + i[2 + axis] * window.dilation[axis] - window.pad_begin[axis];
      const PrimExpr offset = load_by_letters(input.inputs[1], layout, ops::kDeformableData,
                                              {i[0], pair + static_cast<int64_t>(axis), i[4], i[5]});
      return make_cast(kReal, begin) + make_cast(kReal, offset);
    };
    const TapNeighbours row(place(0), dims[2]), column(place(1), dims[3]);
    const auto at = [&](const PrimExpr& y, const PrimExpr& x) {
      return make_cast(kReal, load_by_letters(input.inputs[0], layout, ops::kDeformableData, {i[0], i[1], y, x}));
    };
    const auto between = [&](const PrimExpr& a, const PrimExpr& b, const PrimExpr& part) {
      return a * (real(1) - part) + b * part;
    };
    const PrimExpr upper = between(at(row.low, column.low), at(row.low, column.high), column.part);
    const PrimExpr lower = between(at(row.high, column.low), at(row.high, column.high), column.part);
    return guarded(both(row.is_inside, column.is_inside), make_cast(samples->dtype, between(upper, lower, row.part)),
                   make_const(0, samples->dtype));
  });
}

Compute deformable_rule(const RuleInput& input) {
  const auto& attrs = input.attrs<ops::DeformableConv2DAttrs>();
  const Layout layout = Layout::parse(attrs.data_layout), kernel_layout = Layout::parse(attrs.kernel_layout),
               out_layout = attrs.out_layout.empty() ? layout : Layout::parse(attrs.out_layout);
  const auto data = whole_dims(input.in_types[0], layout, ops::kDeformableData);
  const auto kernel = whole_dims(input.in_types[2], kernel_layout, ops::kDeformableKernel);
  const auto out = whole_dims(input.out_types[0], out_layout, ops::kDeformableData);
  const Buffer samples = make_stage_buffer("samples", kReal, {data[0], data[1], kernel[2], kernel[3], out[2], out[3]});
  const PrimExpr per_group = floor_div(kernel[0], make_int(attrs.groups));
  Compute compute{input.inputs, {}, {}};
  compute.stages.push_back(sample_stage(input, samples, layout));
  compute.stages.push_back(rounded(reduce_stage(
      input.make_output(), Combiner::sum, {kernel[1], kernel[2], kernel[3]}, [&](const Index& index, const Index& r) {
        const Index i = whole(axis_indices(out_layout, ops::kDeformableData, index));
        const PrimExpr channel = floor_div(i[1], per_group) * kernel[1] + r[0];
        const PrimExpr weight =
            load_by_letters(input.inputs[2], kernel_layout, ops::kDeformableKernel, {i[1], r[0], r[1], r[2]});
        return load(samples, {i[0], channel, r[1], r[2], i[2], i[3]}) * make_cast(kReal, weight);
      })));
  compute.outputs = {compute.stages.back().output};
  return compute;
}

}  // namespace

void register_deformable_rules() { set_rule("nn.deformable_conv2d", deformable_rule); }

}  // namespace headrace::lower
