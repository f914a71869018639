// Rules of max, average and global pools.
#include "ops/nn/pool.h"

#include "lower/rules/window.h"

namespace headrace::lower {

namespace {

using ops::PoolForm;

PoolForm form_of(const RuleInput& input) { return ops::pool_form(input.attrs<ops::PoolAttrs>()); }

PoolForm global_form(const RuleInput& input) {
  const auto& attrs = input.attrs<ops::GlobalPool2DAttrs>();
  const auto dims = whole_dims(input.in_types[0], Layout::parse(attrs.layout), "NCHW");
  return ops::global_pool_form(attrs, {static_dim(input, dims[2]), static_dim(input, dims[3])});
}

// Combines the elements of each window in `dtype`. `finish` receives the combined value and the window's index in the
// spatial axes.
Compute combine_windows(const RuleInput& input, const PoolForm& form, Combiner combiner, DataType dtype,
                        const std::function<PrimExpr(const PrimExpr&, const Index&)>& finish) {
  const auto out = whole_dims(input.out_types[0], form.out_layout, form.letters);
  const WindowedData data(input, {.data = input.inputs[0],
                                  .layout = form.layout,
                                  .window = form.window,
                                  .taps = form.taps,
                                  .count = {out.begin() + 2, out.end()},
                                  .fill = tir::identity_of(combiner, dtype),
                                  .convert = [dtype](const PrimExpr& value) { return make_cast(dtype, value); }});
  Index window;
  WindowReadPtr windows;
  ComputeStage stage =
      reduce_stage(input.make_output(), combiner, data.tap_extents(), [&](const Index& i, const Index& tap) {
        const auto at = axis_indices(form.out_layout, form.letters, i);
        window = whole({at.begin() + 2, at.end()});
        windows = data.read(at[0], at[1], window, tap, 0);
        return windows->read;
      });
  windows->ignores_taps = true;
  stage.windows = windows;
  return single_stage(input, finished(std::move(stage), [&](const PrimExpr& value) { return finish(value, window); }));
}

Compute max_rule(const RuleInput& input, const PoolForm& form) {
  return combine_windows(input, form, Combiner::max, wide_type(input.in_types[0]->dtype),
                         [](const PrimExpr& value, const Index&) { return value; });
}

// Returns how many taps of a window lie in the positions [low, high) of the data: the taps before `high` minus those
// before `low`. An absent `low` means -padding.
PrimExpr taps_within(const PoolForm& form, size_t i, const PrimExpr& window, std::optional<int64_t> low, int64_t high) {
  const ops::Window& w = form.window;
  const auto taps_before = [&](int64_t limit) {
    const PrimExpr distance = make_int(limit + w.pad_begin[i]) - window * w.strides[i];
    const PrimExpr taps = floor_div(distance + (w.dilation[i] - 1), make_int(w.dilation[i]));
    return clamp(taps, make_int(0), make_int(form.taps[i]));
  };
  return low ? taps_before(high) - taps_before(*low) : taps_before(high);
}

// Returns the number of taps that count along one axis. It is a constant if all windows have the same number.
PrimExpr axis_divisor(const PoolForm& form, size_t i, const PrimExpr& window, int64_t size, int64_t windows,
                      bool counts_padding) {
  const ops::Window& w = form.window;
  const int64_t high = counts_padding ? size + w.pad_end[i] : size;
  // Checking the first and the last window suffices: they begin first and end last.
  const int64_t last = (windows - 1) * w.strides[i] - w.pad_begin[i] + (form.taps[i] - 1) * w.dilation[i];
  const bool all_full = (counts_padding || w.pad_begin[i] == 0) && last < high;
  if (all_full) return make_int(form.taps[i]);
  return taps_within(form, i, window, counts_padding ? std::nullopt : std::optional<int64_t>(0), high);
}

// Returns the divisor of the average of the window at `place` of the spatial axes. Dimensions are by letters.
PrimExpr divisor(const RuleInput& input, const PoolForm& form, const std::vector<PrimExpr>& data,
                 const std::vector<PrimExpr>& windows, const Index& place, bool counts_padding) {
  PrimExpr count = make_int(1);
  for (size_t i = 0; i < place.size(); ++i)
    count = count * axis_divisor(form, i, place[i], static_dim(input, data[2 + i]), static_dim(input, windows[2 + i]),
                                 counts_padding);
  return most(count, make_int(1));
}

Compute avg_rule(const RuleInput& input, const PoolForm& form, bool counts_padding) {
  const auto out = whole_dims(input.out_types[0], form.out_layout, form.letters);
  const auto dims = whole_dims(input.in_types[0], form.layout, form.letters);
  const DataType dtype = total_type(input.in_types[0]->dtype);
  return combine_windows(input, form, Combiner::sum, dtype, [&](const PrimExpr& total, const Index& window) {
    return divide(total, make_cast(dtype, divisor(input, form, dims, out, window, counts_padding)));
  });
}

// ---- gradients

// The operands and sizes of a pool's gradient. Argument 0 is the gradient of the result, argument 1 the data. Buffers
// between the stages that hold one value for each window are indexed [n, c, p, q].
struct PoolGrad {
  const RuleInput& input;
  PoolForm form;
  std::vector<PrimExpr> data, windows;  // dimensions by letters
  DataType dtype;                       // the dtype of the computation

  explicit PoolGrad(const RuleInput& input)
      : input(input),
        form(form_of(input)),
        data(whole_dims(input.in_types[1], form.layout, form.letters)),
        windows(whole_dims(input.in_types[0], form.out_layout, form.letters)),
        dtype(wide_type(input.in_types[1]->dtype)) {}

  PrimExpr zero() const { return make_const(0, dtype); }
  PrimExpr gradient(const Index& window) const {
    return wide(load_by_letters(input.inputs[0], form.out_layout, form.letters, {window.begin(), window.end()}));
  }
  std::vector<PrimExpr> taps() const {
    std::vector<PrimExpr> extents;
    for (const int64_t count : form.taps) extents.push_back(make_int(count));
    return extents;
  }
  // Returns the number of a tap in its window.
  PrimExpr number(const Index& tap) const { return tap[0] * form.taps[1] + tap[1]; }
  // Returns the element that a tap of a window reads, or `otherwise` outside the data.
  PrimExpr read(const Index& window, const Index& tap, const std::function<PrimExpr(const PrimExpr&)>& of,
                const PrimExpr& otherwise) const {
    const TapPlace place = tap_place(form.window, window[0], window[1], {window[2], window[3]}, tap, data);
    const PrimExpr x = wide(load_by_letters(input.inputs[1], form.layout, form.letters, place.at));
    return guarded(place.is_inside, of(x), otherwise);
  }
  // Makes the result: for each element, the sum of of(window, tap) over all windows and taps that read the element.
  ComputeStage sum_over_windows(const std::function<PrimExpr(const Index&, const Index&)>& of) const {
    return rounded(reduce_stage(input.make_output(), Combiner::sum, taps(), [&](const Index& i, const Index& tap) {
      const Index at = whole(axis_indices(form.layout, form.letters, i));
      Index window{at[0], at[1]};
      std::vector<PrimExpr> conditions;
      for (size_t k = 0; k < 2; ++k) {
        const ops::Window& w = form.window;
        const PrimExpr distance = at[2 + k] + w.pad_begin[k] - tap[k] * w.dilation[k], stride = make_int(w.strides[k]);
        window.push_back(floor_div(distance, stride));
        conditions.push_back(is_within(window[2 + k], make_int(0), windows[2 + k]));
        if (w.strides[k] > 1) conditions.push_back(make_binary(BinaryOp::eq, floor_mod(distance, stride), make_int(0)));
      }
      return guarded(all_of(conditions), of(window, tap), zero());
    }));
  }
};

// Computes the greatest element of each window, then the first tap that holds it, then for each element the sum of the
// gradients of the windows that chose it.
Compute max_grad_rule(const RuleInput& input) {
  const PoolGrad p(input);
  const Buffer best = make_stage_buffer("best", p.dtype, p.windows);
  const Buffer chosen = make_stage_buffer("chosen", DataType::int_(64), p.windows);
  const PrimExpr least = tir::identity_of(Combiner::max, p.dtype), none = make_int(p.form.taps[0] * p.form.taps[1]);
  Compute compute{input.inputs, {}, {}};
  compute.stages.push_back(reduce_stage(best, Combiner::max, p.taps(), [&](const Index& window, const Index& tap) {
    return p.read(window, tap, [](const PrimExpr& x) { return x; }, least);
  }));
  compute.stages.push_back(reduce_stage(chosen, Combiner::min, p.taps(), [&](const Index& window, const Index& tap) {
    const auto if_greatest = [&](const PrimExpr& x) {
      const PrimExpr is_best = make_binary(BinaryOp::eq, x, load(best, window));
      const PrimExpr is_nan = make_binary(BinaryOp::ne, x, x);
      return guarded(make_binary(BinaryOp::logical_or, is_best, is_nan), p.number(tap), none);
    };
    return p.read(window, tap, if_greatest, none);
  }));
  compute.stages.push_back(p.sum_over_windows([&](const Index& window, const Index& tap) {
    const PrimExpr is_chosen = make_binary(BinaryOp::eq, load(chosen, window), p.number(tap));
    return guarded(is_chosen, p.gradient(window), p.zero());
  }));
  compute.outputs = {compute.stages.back().output};
  return compute;
}

// Computes the share of each window's gradient that one tap receives, then for each element the sum of its shares.
Compute avg_grad_rule(const RuleInput& input) {
  const PoolGrad p(input);
  const bool counts_padding = input.attrs<ops::PoolAttrs>().count_include_pad;
  const Buffer share = make_stage_buffer("share", p.dtype, p.windows);
  Compute compute{input.inputs, {}, {}};
  compute.stages.push_back(map_stage(share, [&](const Index& window) {
    const PrimExpr count = divisor(input, p.form, p.data, p.windows, {window[2], window[3]}, counts_padding);
    return make_binary(BinaryOp::div, p.gradient(window), make_cast(p.dtype, count));
  }));
  compute.stages.push_back(p.sum_over_windows([&](const Index& window, const Index&) { return load(share, window); }));
  compute.outputs = {compute.stages.back().output};
  return compute;
}

}  // namespace

void register_pool_rules() {
  for (size_t spatial : {1u, 2u, 3u}) {
    set_rule(fmt::format("nn.max_pool{}d", spatial),
             [](const RuleInput& input) { return max_rule(input, form_of(input)); });
    set_rule(fmt::format("nn.avg_pool{}d", spatial), [](const RuleInput& input) {
      return avg_rule(input, form_of(input), input.attrs<ops::PoolAttrs>().count_include_pad);
    });
  }
  set_rule("nn.max_pool2d_grad", max_grad_rule);
  set_rule("nn.avg_pool2d_grad", avg_grad_rule);
  set_rule("nn.global_max_pool2d", [](const RuleInput& input) { return max_rule(input, global_form(input)); });
  set_rule("nn.global_avg_pool2d", [](const RuleInput& input) { return avg_rule(input, global_form(input), false); });
}

}  // namespace headrace::lower
