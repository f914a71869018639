// Rules of convolutions and their weight gradients.
#include "ops/nn/conv.h"

#include "lower/rules/conv_parts.h"

namespace headrace::lower {

namespace {

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
  PrimExpr tap(const AxisIndex& k, const Index& r) const {
    std::vector<AxisIndex> at{k, input_channel(r)};
    for (size_t i = 0; i < form.spatial(); ++i) at.emplace_back(r[1 + i]);
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

Compute conv_rule(const RuleInput& input, const ops::ConvForm& form) {
  const ConvLayouts layouts = layouts_of(form);
  const auto weight = whole_dims(input.in_types[1], layouts.weight, form.kernel_letters);
  const auto out = whole_dims(input.out_types[0], layouts.out, form.letters);
  Shape taps;
  for (size_t i = 0; i < form.spatial(); ++i) taps.push_back(static_dim(input, weight[2 + i]));
  const WindowedData data(input, {.data = input.inputs[0],
                                  .layout = layouts.data,
                                  .window = ops::window_of(form.spatial(), form.strides, form.padding, form.dilation),
                                  .taps = taps,
                                  .count = {out.begin() + 2, out.end()},
                                  .fill = make_const(0, wide_type(input.out_types[0]->dtype)),
                                  .convert = [&](const PrimExpr& element) { return operand(input, element); }});
  const ConvSum sum{input, form, layouts, weight, floor_div(out[1], make_int(form.groups))};
  WindowReadPtr windows;
  ComputeStage stage = sum_products(input, form, sum.extents(), [&](const auto& i, const Index& r) {
    windows = data.read(i[0], sum.channel(i[1], r), whole({i.begin() + 2, i.end()}), r, 1);
    return windows->read * sum.tap(i[1], r);
  });
  windows->batch_axes = layouts.out.positions('N');
  windows->channel_axes = layouts.out.positions('C');
  stage.windows = windows;
  return single_stage(input, std::move(stage));
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
