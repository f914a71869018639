// Rules of transposed convolutions, computed as gathers.
#include "lower/rules/conv_parts.h"
#include "ops/nn/conv.h"

namespace headrace::lower {

namespace {

// The operands and sizes that both forms below use.
struct Transposed {
  const RuleInput& input;
  const ops::ConvForm& form;
  ConvLayouts layouts;
  ops::Window window;
  std::vector<PrimExpr> data, weight, out;  // N C H W; I O H W; N C H W
  Shape taps;

  Transposed(const RuleInput& input, const ops::ConvForm& form)
      : input(input),
        form(form),
        layouts(layouts_of(form)),
        window(ops::window_of(form.spatial(), form.strides, form.padding, form.dilation)),
        data(whole_dims(input.in_types[0], layouts.data, form.letters)),
        weight(whole_dims(input.in_types[1], layouts.weight, form.kernel_letters)),
        out(whole_dims(input.out_types[0], layouts.out, form.letters)) {
    for (size_t i = 0; i < form.spatial(); ++i) taps.push_back(static_dim(input, weight[2 + i]));
  }

  double elements_around() const { return count_elements(data) + count_elements(out); }
  PrimExpr zero() const { return make_const(0, wide_type(input.out_types[0]->dtype)); }
  PrimExpr group_inputs() const { return floor_div(weight[0], make_int(form.groups)); }
  // Returns the input channel that term c of output channel k reads.
  PrimExpr channel(const PrimExpr& k, const PrimExpr& c) const {
    return form.groups > 1 ? floor_div(k, weight[1]) * group_inputs() + c : c;
  }
  size_t spatial() const { return form.spatial(); }
  PrimExpr tap(const PrimExpr& channel, const PrimExpr& k, const Index& taps_at) const {
    const PrimExpr own = form.groups > 1 ? floor_mod(k, weight[1]) : k;
    std::vector<AxisIndex> at{channel, own};
    at.insert(at.end(), taps_at.begin(), taps_at.end());
    return operand(input, load_by_letters(input.inputs[1], layouts.weight, form.kernel_letters, at));
  }
};

// Computes a convolution with stride 1 of spread data, in which element i is at i * stride, with zeros between.
//
//   spread[n, c, y, x] = data[n, c, (y - before) / stride, ...] where that is whole
//   out[n, k, p, q] = sum over c, r, s of spread[n, c, p + (R - 1 - r) * dilation, ...] * weight[c, k, r, s]
//
// The spread data is a stage of its own. If it would be disproportionately large (is_wasteful), its elements are
// computed where they are read.
class SpreadForm {
 public:
  explicit SpreadForm(const Transposed& t) : t_(t) {
    std::vector<PrimExpr> dims{t.data[0], t.data[1]};
    for (size_t i = 0; i < t.spatial(); ++i) dims.push_back(t.out[2 + i] + (t.taps[i] - 1) * t.window.dilation[i]);
    if (is_wasteful(count_elements(dims), t.elements_around())) return;
    stage_ =
        map_stage(make_stage_buffer("spread", t.zero()->dtype, dims), [&](const Index& at) { return element(at); });
    stage_->is_layout = true;
  }

  Compute make() const {
    Compute compute{t_.input.inputs, {}, {}};
    if (stage_) compute.stages.push_back(*stage_);
    std::vector<PrimExpr> extents(t_.weight.begin() + 1, t_.weight.end());
    extents[0] = t_.group_inputs();
    compute.stages.push_back(sum_products(t_.input, t_.form, extents, [&](const auto& by_letter, const Index& r) {
      const Index i = whole(by_letter);
      const PrimExpr channel = t_.channel(i[1], r[0]);
      Index taps, at{i[0], channel};
      for (size_t k = 0; k < t_.spatial(); ++k) {
        // Takes the taps from the last to the first, so that the data is read in ascending order.
        taps.push_back(make_int(t_.taps[k] - 1) - r[1 + k]);
        at.push_back(i[2 + k] + r[1 + k] * t_.window.dilation[k]);
      }
      return (stage_ ? load(stage_->output, at) : element(at)) * t_.tap(channel, i[1], taps);
    }));
    compute.outputs = {compute.stages.back().output};
    return compute;
  }

 private:
  // Returns the element of the spread data at a position.
  PrimExpr element(const Index& at) const {
    const ops::Window& w = t_.window;
    std::vector<AxisIndex> position{at[0], at[1]};
    std::vector<PrimExpr> conditions;
    for (size_t i = 0; i < t_.spatial(); ++i) {
      const PrimExpr y = at[2 + i] + (w.pad_begin[i] - (t_.taps[i] - 1) * w.dilation[i]),
                     stride = make_int(w.strides[i]);
      const PrimExpr row = floor_div(y, stride);
      conditions.push_back(is_within(row, make_int(0), t_.data[2 + i]));
      if (w.strides[i] > 1) conditions.push_back(make_binary(BinaryOp::eq, floor_mod(y, stride), make_int(0)));
      position.emplace_back(row);
    }
    const PrimExpr x = load_by_letters(t_.input.inputs[0], t_.layouts.data, t_.form.letters, position);
    return guarded(all_of(conditions), operand(t_.input, x), t_.zero());
  }

  const Transposed& t_;
  std::optional<ComputeStage> stage_;
};

// Without dilation: computes each phase of the stride as a separate convolution, and interleaves the phases.
//
//   phases[n, k, a, b, y, x] = sum over c, j, l of data[n, c, y - j, x - l] * weight[c, k, a + j * stride, ...]
//   out[n, k, p, q] = phases[n, k, (p + pad) % stride, ..., (p + pad) / stride, ...]
class PhaseForm {
 public:
  explicit PhaseForm(const Transposed& t) : t_(t) {
    for (size_t i = 0; i < 2; ++i) {
      const int64_t stride = t.window.strides[i], pad = t.window.pad_begin[i];
      first_[i] = pad / stride;
      count_[i] = (static_dim(t.input, t.out[2 + i]) - 1 + pad) / stride - first_[i] + 1;
      steps_[i] = (t.taps[i] + stride - 1) / stride;
    }
  }

  // Returns whether the phases have far more elements than the result takes from them.
  bool is_out_of_proportion() const {
    double elements = count_elements({t_.out[0], t_.out[1]});
    for (size_t i = 0; i < 2; ++i)
      elements *= static_cast<double>(t_.window.strides[i]) * static_cast<double>(count_[i]);
    return is_wasteful(elements, t_.elements_around());
  }

  Compute make() const {
    const RuleInput& input = t_.input;
    const WindowedData data(input,
                            {.data = input.inputs[0],
                             .layout = t_.layouts.data,
                             .window = {{1, 1}, {1, 1}, {steps_[0] - 1 - first_[0], steps_[1] - 1 - first_[1]}, {0, 0}},
                             .taps = {steps_[0], steps_[1]},
                             .count = {make_int(count_[0]), make_int(count_[1])},
                             .fill = t_.zero(),
                             .convert = [&](const PrimExpr& element) { return operand(input, element); }});
    Compute compute{input.inputs, {}, {}};
    const auto& strides = t_.window.strides;
    const Buffer phases = make_stage_buffer(
        "phases", t_.zero()->dtype,
        {t_.out[0], t_.out[1], make_int(strides[0]), make_int(strides[1]), make_int(count_[0]), make_int(count_[1])});
    WindowReadPtr windows;
    compute.stages.push_back(reduce_stage(phases, Combiner::sum,
                                          {t_.group_inputs(), make_int(steps_[0]), make_int(steps_[1])},
                                          [&](const Index& i, const Index& r) {
                                            const PrimExpr channel = t_.channel(i[1], r[0]);
                                            windows = data.read(i[0], channel, {i[4], i[5]}, r, 1);
                                            return product(windows->read, channel, i, r);
                                          }));
    compute.stages.back().windows = windows;
    const Buffer result = input.make_output();
    compute.stages.push_back(map_stage(result, [&](const Index& index) {
      const Index i = whole(axis_indices(t_.layouts.out, t_.form.letters, index));
      Index phase, place;
      for (size_t k = 0; k < 2; ++k) {
        const PrimExpr at = i[2 + k] + t_.window.pad_begin[k], stride = make_int(strides[k]);
        phase.push_back(floor_mod(at, stride));
        place.push_back(floor_div(at, stride) - first_[k]);
      }
      return make_cast(result->dtype, load(phases, {i[0], i[1], phase[0], phase[1], place[0], place[1]}));
    }));
    compute.outputs = {result};
    return compute;
  }

 private:
  // Returns the product of an element of the data and its tap. Steps run from the last to the first, so that the data
  // is read in ascending order. A phase may have one tap less than others; that product is skipped, because multiplying
  // an infinite element by a zero tap would give NaN.
  PrimExpr product(const PrimExpr& element, const PrimExpr& channel, const Index& i, const Index& r) const {
    Index at;
    std::vector<PrimExpr> conditions;
    for (size_t k = 0; k < 2; ++k) {
      const int64_t stride = t_.window.strides[k];
      at.push_back(i[2 + k] + (make_int(steps_[k] - 1) - r[1 + k]) * stride);
      if (t_.taps[k] % stride != 0) {
        conditions.push_back(make_binary(BinaryOp::lt, at[k], make_int(t_.taps[k])));
      }
    }
    return guarded(all_of(conditions), element * t_.tap(channel, i[1], at), t_.zero());
  }

  const Transposed& t_;
  int64_t first_[2];  // place of the first result
  int64_t count_[2];  // places in a phase
  int64_t steps_[2];  // taps of a phase
};

Compute conv_transpose_rule(const RuleInput& input, const ops::ConvForm& form) {
  const Transposed t(input, form);
  const bool is_empty = num_elements(static_shape(input, input.out_types[0]->shape)) == 0;
  const bool is_dilated =
      std::any_of(t.window.dilation.begin(), t.window.dilation.end(), [](int64_t d) { return d != 1; });
  // Uses phases for two spatial axes only; one and three axes are rare and use the spread form.
  const bool spreads = form.spatial() != 2 || is_dilated || is_empty || PhaseForm(t).is_out_of_proportion();
  return spreads ? SpreadForm(t).make() : PhaseForm(t).make();
}

}  // namespace

void register_conv_transpose_rule() {
  for (const char* op : {"nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose"}) {
    set_rule(op, [](const RuleInput& input) {
      return conv_transpose_rule(input, ops::conv_form(input.attrs<ops::ConvAttrs>()));
    });
  }
}

}  // namespace headrace::lower
