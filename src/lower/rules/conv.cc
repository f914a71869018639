// Convolutions.
#include "ops/nn/conv.h"

#include <bit>

#include "lower/machine_numbers.h"
#include "lower/rules/conv_parts.h"

namespace headrace::lower {

namespace {

// The share of a widest vector register that vectors along a row of `width` fill on average: full ones, then powers of
// two.
double row_use(int64_t width) {
  const int64_t vectors = width / kWidestLanes + std::popcount(static_cast<uint64_t>(width % kWidestLanes));
  return static_cast<double>(width) / static_cast<double>(vectors * kWidestLanes);
}

// Whether vectors should run over several rows of the result: when rows fill vectors badly, and windows overlap (else
// rows follow one another as it is). Between two joined rows lie windows of no use, and a pass takes the result out of
// the sums; with few terms a sum, only very short rows pay for it (depthwise 3x3: 14 columns 0.045 ms as they are,
// 0.061 joined; 7 columns 0.037 and 0.028).
bool joins_rows(const ConvAxes& axes, const Shape& taps, const Shape& out, int64_t terms) {
  constexpr double kPassCost = 0.15;
  if (taps.size() != 2) return false;
  if (axes.data[1] != 1 || axes.data[3] != 3 || taps[1] == 1 || out[0] <= 1) return false;
  if (terms <= 32) return out[1] < 8;
  const double joined_use = static_cast<double>(out[1]) / static_cast<double>(out[1] + taps[1] - 1);
  return row_use(out[1]) + kPassCost < joined_use;
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
    Index at = r;
    at.insert(at.begin(), k);
    return operand(input, load_by_letters(input.inputs[1], axes.weight, at));
  }
  std::vector<PrimExpr> extents() const { return {weight.begin() + 1, weight.end()}; }
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

Compute conv_rule(const RuleInput& input, const ops::ConvForm& form) {
  const ConvAxes axes = axes_of(form);
  const auto weight = ops::from_layout(input.in_types[1]->shape, axes.weight);
  const auto out = ops::from_layout(input.out_types[0]->shape, axes.out);
  Shape taps, sizes;
  int64_t terms = static_dim(input, weight[1]);
  for (size_t i = 0; i < form.spatial(); ++i) {
    taps.push_back(static_dim(input, weight[2 + i]));
    sizes.push_back(static_dim(input, out[2 + i]));
    terms *= taps[i];
  }
  const WindowedData data(input, {.data = input.inputs[0],
                                  .axes = axes.data,
                                  .window = ops::window_of(form.spatial(), form.strides, form.padding, form.dilation),
                                  .taps = taps,
                                  .count = {out.begin() + 2, out.end()},
                                  .fill = make_const(0, wide_type(input.out_types[0]->dtype)),
                                  .convert = [&](const PrimExpr& element) { return operand(input, element); },
                                  .reads_little = false,
                                  .ignores_taps = false,
                                  .joins_rows = joins_rows(axes, taps, sizes, terms)});
  const ConvSum sum{input, axes, form.groups, weight, floor_div(out[1], make_int(form.groups))};
  Compute compute{input.inputs, {}, {}};
  if (data.stage()) compute.stages.push_back(*data.stage());
  if (data.joins_rows()) {
    add_joined(compute, sum, data, out);
  } else {
    compute.stages.push_back(sum_products(input, axes, sum.extents(), [&](const Index& i, const Index& r) {
      const Index window(i.begin() + 2, i.end()), tap(r.begin() + 1, r.end());
      return data.at(i[0], sum.channel(i[1], r[0]), window, tap) * sum.tap(i[1], r);
    }));
  }
  compute.outputs = {compute.stages.back().output};
  return compute;
}

}  // namespace

void register_conv_rules() {
  set_rule("nn.conv2d",
           [](const RuleInput& input) { return conv_rule(input, ops::conv_form(input.attrs<ops::Conv2DAttrs>())); });
  for (const size_t spatial : {1u, 3u}) {
    set_rule(fmt::format("nn.conv{}d", spatial), [spatial](const RuleInput& input) {
      return conv_rule(input, ops::conv_form(input.attrs<ops::ConvNDAttrs>(), spatial, false));
    });
  }
  register_conv_transpose_rule();
}

}  // namespace headrace::lower
