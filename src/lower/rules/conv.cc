// Convolutions.
#include "ops/conv.h"

#include "lower/rules/window.h"

namespace headrace::lower {

namespace {

// Where the letters of the three layouts stand.
struct ConvAxes {
  std::vector<size_t> data, weight, out;  // N C H W; O I H W (I O H W); N C H W
};

template <typename A>
ConvAxes axes_of(const A& attrs, std::string_view kernel_letters) {
  return {ops::axes_of(attrs.data_layout, "NCHW"), ops::axes_of(attrs.kernel_layout, kernel_letters),
          ops::axes_of(attrs.out_layout.empty() ? attrs.data_layout : attrs.out_layout, "NCHW")};
}

PrimExpr load_by_letters(const Buffer& buffer, const std::vector<size_t>& axes, const Index& by_letter) {
  return load(buffer, ops::to_layout(by_letter, axes));
}

// An element of an operand as eval takes it: in the result's dtype, then in the dtype that is summed in.
PrimExpr operand(const RuleInput& input, const PrimExpr& element) {
  return wide(make_cast(input.out_types[0]->dtype, element));
}

// The reduction over input channels and taps, in the order that lets its last loop run along the weight.
ComputeStage sum_products(const RuleInput& input, const ConvAxes& axes, const std::vector<PrimExpr>& extents,
                          const std::function<PrimExpr(const Index&, const Index&)>& product) {
  return rounded(reduce_stage(input.make_output(), Combiner::sum, extents, [&](const Index& i, const Index& r) {
    return product(ops::from_layout(i, axes.out), r);
  }));
}

// Whether vectors should run over several rows of the result: when rows are short, and windows overlap (else rows
// follow one another as it is).
bool joins_rows(const ConvAxes& axes, const Shape& taps, const Shape& out) {
  constexpr int64_t kShortRow = 32;
  return axes.data[1] == 1 && axes.data[3] == 3 && taps[1] > 1 && out[0] > 1 && out[1] < kShortRow;
}

// The products of one window with the weight of output channel k, summed over input channels and taps.
struct ConvSum {
  const RuleInput& input;
  const ConvAxes& axes;
  int64_t groups;
  std::vector<PrimExpr> weight;  // O I H W
  PrimExpr per_group;            // output channels

  PrimExpr channel(const PrimExpr& k, const PrimExpr& c) const {
    const PrimExpr first = groups == 1 ? make_int(0) : floor_div(k, per_group) * weight[1];
    return is_int(weight[1], 1) ? first : first + c;
  }
  PrimExpr tap(const PrimExpr& k, const Index& r) const {
    return operand(input, load_by_letters(input.inputs[1], axes.weight, {k, r[0], r[1], r[2]}));
  }
  std::vector<PrimExpr> extents() const { return {weight[1], weight[2], weight[3]}; }
};

// The result taken out of the sums of all joined windows.
void add_joined(Compute& compute, const ConvSum& sum, const WindowedData& data, const std::vector<PrimExpr>& out) {
  const RuleInput& input = sum.input;
  const Buffer sums = make_stage_buffer("sums", wide_type(input.out_types[0]->dtype),
                                        {out[0], out[1], make_int(data.joined_windows())});
  compute.stages.push_back(reduce_stage(sums, Combiner::sum, sum.extents(), [&](const Index& i, const Index& r) {
    return data.at_joined(i[0], sum.channel(i[1], r[0]), i[2], {r[1], r[2]}) * sum.tap(i[1], r);
  }));
  const Buffer result = input.make_output();
  compute.stages.push_back(map_stage(result, [&](const Index& index) {
    const Index i = ops::from_layout(index, sum.axes.out);
    return make_cast(result->dtype, load(sums, {i[0], i[1], data.joined_window(i[2], i[3])}));
  }));
}

Compute conv2d_rule(const RuleInput& input) {
  const auto& attrs = input.attrs<ops::Conv2DAttrs>();
  const ConvAxes axes = axes_of(attrs, "OIHW");
  const auto weight = ops::from_layout(input.in_types[1]->shape, axes.weight);
  const auto out = ops::from_layout(input.out_types[0]->shape, axes.out);
  const Shape taps{static_dim(input, weight[2]), static_dim(input, weight[3])};
  const bool joins = joins_rows(axes, taps, {static_dim(input, out[2]), static_dim(input, out[3])});
  const WindowedData data(input, {.data = input.inputs[0],
                                  .axes = axes.data,
                                  .window = ops::window_of(2, attrs.strides, attrs.padding, attrs.dilation),
                                  .taps = taps,
                                  .count = {out[2], out[3]},
                                  .fill = make_const(0, wide_type(input.out_types[0]->dtype)),
                                  .convert = [&](const PrimExpr& element) { return operand(input, element); },
                                  .joins_rows = joins});
  const ConvSum sum{input, axes, attrs.groups, weight, floor_div(out[1], make_int(attrs.groups))};
  Compute compute{input.inputs, {}, {}};
  if (data.stage()) compute.stages.push_back(*data.stage());
  if (joins) {
    add_joined(compute, sum, data, out);
  } else {
    compute.stages.push_back(sum_products(input, axes, sum.extents(), [&](const Index& i, const Index& r) {
      return data.at(i[0], sum.channel(i[1], r[0]), {i[2], i[3]}, {r[1], r[2]}) * sum.tap(i[1], r);
    }));
  }
  compute.outputs = {compute.stages.back().output};
  return compute;
}

// As a convolution with stride 1 of the data spread out: element i stands at i * stride, with zeros between.
//
//   spread[n, c, y, x] = data[n, c, (y - before) / stride, ...] where that is whole
//   out[n, k, p, q] = sum over c, r, s of spread[n, c, p + (R - 1 - r) * dilation, ...] * weight[c, k, r, s]
ComputeStage spread_data(const RuleInput& input, const ops::Conv2DTransposeAttrs& attrs, const ConvAxes& axes,
                         const Shape& taps, const std::vector<PrimExpr>& out) {
  const ops::Window w = ops::window_of(2, attrs.strides, attrs.padding, attrs.dilation);
  const auto shape = ops::from_layout(input.in_types[0]->shape, axes.data);
  const PrimExpr zero = make_const(0, wide_type(input.out_types[0]->dtype));
  std::vector<PrimExpr> dims{shape[0], shape[1]};
  for (size_t i = 0; i < 2; ++i) dims.push_back(out[2 + i] + (taps[i] - 1) * w.dilation[i]);
  ComputeStage stage = map_stage(make_stage_buffer("spread", zero->dtype, dims), [&](const Index& at) {
    Index position{at[0], at[1]};
    std::vector<PrimExpr> conditions;
    for (size_t i = 0; i < 2; ++i) {
      const PrimExpr y = at[2 + i] + (w.pad_begin[i] - (taps[i] - 1) * w.dilation[i]), stride = make_int(w.strides[i]);
      const PrimExpr row = floor_div(y, stride);
      conditions.push_back(is_within(row, make_int(0), shape[2 + i]));
      if (w.strides[i] > 1) conditions.push_back(make_binary(BinaryOp::eq, floor_mod(y, stride), make_int(0)));
      position.push_back(row);
    }
    return guarded(all_of(conditions), operand(input, load_by_letters(input.inputs[0], axes.data, position)), zero);
  });
  stage.is_layout = true;
  return stage;
}

Compute conv2d_transpose_rule(const RuleInput& input) {
  const auto& attrs = input.attrs<ops::Conv2DTransposeAttrs>();
  const ConvAxes axes = axes_of(attrs, "IOHW");
  const auto weight = ops::from_layout(input.in_types[1]->shape, axes.weight);
  const auto out = ops::from_layout(input.out_types[0]->shape, axes.out);
  const Shape taps{static_dim(input, weight[2]), static_dim(input, weight[3])};
  const Shape dilation = attrs.dilation;
  const PrimExpr group_inputs = floor_div(weight[0], make_int(attrs.groups));
  const ComputeStage spread = spread_data(input, attrs, axes, taps, out);
  Compute compute{input.inputs, {spread}, {}};
  compute.stages.push_back(
      sum_products(input, axes, {group_inputs, weight[2], weight[3]}, [&](const Index& i, const Index& r) {
        const bool grouped = attrs.groups > 1;
        const PrimExpr channel = grouped ? floor_div(i[1], weight[1]) * group_inputs + r[0] : r[0];
        const PrimExpr k = grouped ? floor_mod(i[1], weight[1]) : i[1];
        // The taps from the last to the first, so that the data is read upwards.
        const PrimExpr tap = load_by_letters(input.inputs[1], axes.weight,
                                             {channel, k, make_int(taps[0] - 1) - r[1], make_int(taps[1] - 1) - r[2]});
        return load(spread.output, {i[0], channel, i[2] + r[1] * dilation[0], i[3] + r[2] * dilation[1]}) *
               operand(input, tap);
      }));
  compute.outputs = {compute.stages.back().output};
  return compute;
}

}  // namespace

void register_conv_rules() {
  set_rule("nn.conv2d", conv2d_rule);
  set_rule("nn.conv2d_transpose", conv2d_transpose_rule);
}

}  // namespace headrace::lower
