// Rules of convolutions and their weight gradients.
#include "ops/nn/conv.h"

#include <bit>

#include "lower/rules/conv_parts.h"

namespace headrace::lower {

namespace {

// Returns how much of the widest vector register the vectors along a row of `width` use on average. A row is cut into
// full vectors, then into vectors of smaller powers of two.
double row_use(int64_t width) {
  const int64_t vectors = width / kWidestLanes + std::popcount(static_cast<uint64_t>(width % kWidestLanes));
  return static_cast<double>(width) / static_cast<double>(vectors * kWidestLanes);
}

// Returns whether vectors should run over several rows of the result: if single rows fill vectors badly, and if windows
// overlap (otherwise rows are contiguous anyway). Joining has a cost: windows between two rows are computed in vain,
// and a second stage copies the result out of the sums. With few terms in a sum, it pays only for very short rows
// (depthwise 3x3: 14 columns take 0.045 ms, joined 0.061 ms; 7 columns take 0.037 ms, joined 0.028 ms).
bool joins_rows(const ops::ConvForm& form, const Shape& taps, const Shape& out, int64_t terms) {
  constexpr double kPassCost = 0.15;
  if (form.data_layout != "NCHW" || taps[1] == 1 || out[0] <= 1) return false;
  if (terms <= 32) return out[1] < 8;
  const double joined_use = static_cast<double>(out[1]) / static_cast<double>(out[1] + taps[1] - 1);
  return row_use(out[1]) + kPassCost < joined_use;
}

// The products of one window with the weights of output channel k. The reduction runs over the outermost part of the
// input channels, then the taps, then the other parts of the input channels.
struct ConvSum {
  const RuleInput& input;
  const ops::ConvForm& form;
  ConvLayouts layouts;
  std::vector<PrimExpr> weight;  // O I H W, whole
  PrimExpr per_group;            // output channels

  // Returns the data's channel that term `r` of output channel `k` reads.
  AxisIndex channel(const AxisIndex& k, const Index& r) const {
    const bool is_one = is_int(weight[1], 1);
    if (form.groups == 1) return is_one ? AxisIndex(make_int(0)) : input_channel(r);
    if (is_one && is_int(per_group, 1)) return k;
    const PrimExpr first = floor_div(k.whole(), per_group) * weight[1];
    return is_one ? first : first + input_channel(r).whole();
  }
  Index taps(const Index& r) const {
    return {r.begin() + 1, r.begin() + 1 + static_cast<std::ptrdiff_t>(form.spatial())};
  }
  PrimExpr tap(const AxisIndex& k, const Index& r) const {
    std::vector<AxisIndex> at{k, input_channel(r)};
    for (const PrimExpr& place : taps(r)) at.emplace_back(place);
    return operand(input, load_by_letters(input.inputs[1], layouts.weight, form.kernel_letters, at));
  }
  std::vector<PrimExpr> extents() const {
    std::vector<PrimExpr> extents{input.in_types[1]->shape[*layouts.weight.find('I')]};
    extents.insert(extents.end(), weight.begin() + 2, weight.end());
    for (const int64_t factor : layouts.weight.factors('I')) extents.push_back(make_int(factor));
    return extents;
  }

 private:
  // Returns the weight's input channel in the reduction's index `r`.
  AxisIndex input_channel(const Index& r) const {
    Index parts{r[0]};
    parts.insert(parts.end(), r.begin() + 1 + static_cast<std::ptrdiff_t>(form.spatial()), r.end());
    return {std::move(parts), layouts.weight.factors('I')};
  }
};

// Makes the stage that copies the result out of the sums of all joined windows.
void add_joined(Compute& compute, const ConvSum& sum, const WindowedData& data, const std::vector<PrimExpr>& out) {
  const RuleInput& input = sum.input;
  const Buffer sums = make_stage_buffer("sums", wide_type(input.out_types[0]->dtype),
                                        {out[0], out[1], make_int(data.joined_windows())});
  compute.stages.push_back(reduce_stage(sums, Combiner::sum, sum.extents(), [&](const Index& i, const Index& r) {
    return data.at_joined(i[0], sum.channel(i[1], r).whole(), i[2], sum.taps(r)) * sum.tap(i[1], r);
  }));
  const Buffer result = input.make_output();
  compute.stages.push_back(map_stage(result, [&](const Index& index) {
    const Index i = whole(axis_indices(sum.layouts.out, sum.form.letters, index));
    return make_cast(result->dtype, load(sums, {i[0], i[1], data.joined_window(i[2], i[3])}));
  }));
}

Compute conv_rule(const RuleInput& input, const ops::ConvForm& form) {
  const ConvLayouts layouts = layouts_of(form);
  const auto weight = whole_dims(input.in_types[1], layouts.weight, form.kernel_letters);
  const auto out = whole_dims(input.out_types[0], layouts.out, form.letters);
  Shape taps, sizes;
  int64_t terms = static_dim(input, weight[1]);
  for (size_t i = 0; i < form.spatial(); ++i) {
    taps.push_back(static_dim(input, weight[2 + i]));
    sizes.push_back(static_dim(input, out[2 + i]));
    terms *= taps[i];
  }
  const WindowedData data(input, {.data = input.inputs[0],
                                  .layout = layouts.data,
                                  .window = ops::window_of(form.spatial(), form.strides, form.padding, form.dilation),
                                  .taps = taps,
                                  .count = {out.begin() + 2, out.end()},
                                  .fill = make_const(0, wide_type(input.out_types[0]->dtype)),
                                  .convert = [&](const PrimExpr& element) { return operand(input, element); },
                                  .reads_little = false,
                                  .ignores_taps = false,
                                  .joins_rows = joins_rows(form, taps, sizes, terms)});
  const ConvSum sum{input, form, layouts, weight, floor_div(out[1], make_int(form.groups))};
  Compute compute{input.inputs, {}, {}};
  if (data.stage()) compute.stages.push_back(*data.stage());
  if (data.joins_rows()) {
    add_joined(compute, sum, data, out);
  } else {
    compute.stages.push_back(sum_products(input, form, sum.extents(), [&](const auto& i, const Index& r) {
      const Index window = whole({i.begin() + 2, i.end()});
      return data.at(i[0], sum.channel(i[1], r), window, sum.taps(r)) * sum.tap(i[1], r);
    }));
  }
  compute.outputs = {compute.stages.back().output};
  return compute;
}

// weight[k, c, r, s] = sum over n, p, q of grad[n, k, p, q] * data[n, group(k) + c, position of tap (r, s) at (p, q)]
Compute backward_weight_rule(const RuleInput& input) {
  const ops::ConvForm form = ops::conv_form(input.attrs<ops::ConvAttrs>());
  const ConvLayouts layouts = layouts_of(form);
  const ops::Window window = ops::window_of(2, form.strides, form.padding, form.dilation);
  const auto grad = whole_dims(input.in_types[0], layouts.out, form.letters);
  const auto data = whole_dims(input.in_types[1], layouts.data, form.letters);
  const PrimExpr per_group = floor_div(grad[1], make_int(form.groups)),
                 group_inputs = floor_div(data[1], make_int(form.groups));
  const auto product = [&](const Index& i, const Index& r) {
    const Index w = whole(axis_indices(layouts.weight, form.kernel_letters, i));
    const PrimExpr channel = form.groups == 1 ? w[1] : floor_div(w[0], per_group) * group_inputs + w[1];
    const TapPlace tap = tap_place(window, r[0], channel, {r[1], r[2]}, {w[2], w[3]}, data);
    const PrimExpr x = operand(input, load_by_letters(input.inputs[1], layouts.data, form.letters, tap.at));
    const PrimExpr g =
        operand(input, load_by_letters(input.inputs[0], layouts.out, form.letters, {r[0], w[0], r[1], r[2]}));
    return guarded(tap.is_inside, x * g, make_const(0, wide_type(input.out_types[0]->dtype)));
  };
  return single_stage(input,
                      rounded(reduce_stage(input.make_output(), Combiner::sum, {grad[0], grad[2], grad[3]}, product)));
}

}  // namespace

void register_conv_rules() {
  for (const char* op : {"nn.conv1d", "nn.conv2d", "nn.conv3d"}) {
    set_rule(op,
             [](const RuleInput& input) { return conv_rule(input, ops::conv_form(input.attrs<ops::ConvAttrs>())); });
  }
  set_rule("nn.conv2d_backward_weight", backward_weight_rule);
  register_conv_transpose_rule();
}

}  // namespace headrace::lower
