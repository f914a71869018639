// Max, average and global pools.
#include "ops/nn/pool.h"

#include "lower/rules/window.h"

namespace headrace::lower {

namespace {

struct PoolShape {
  std::string_view letters;
  Layout layout, out_layout;
  ops::Window window;
  Shape taps;
};

template <typename A>
PoolShape shape_of(const RuleInput& input, size_t spatial) {
  const A& attrs = input.attrs<A>();
  const std::string_view letters = ops::letters_of(spatial), layout = ops::layout_or(attrs.layout, letters);
  return {
      letters, Layout::parse(layout), Layout::parse(ops::layout_or(attrs.out_layout, layout)),
      ops::window_of(spatial, ops::spread(attrs.strides, spatial), attrs.padding, ops::spread(attrs.dilation, spatial)),
      ops::spread(attrs.pool_size, spatial)};
}

PoolShape global_shape(const RuleInput& input) {
  const auto& attrs = input.attrs<ops::GlobalPool2DAttrs>();
  PoolShape shape{.letters = "NCHW",
                  .layout = Layout::parse(attrs.layout),
                  .out_layout = Layout::parse(ops::layout_or(attrs.out_layout, attrs.layout)),
                  .window = ops::window_of(2, {1, 1}, {0}, {1, 1}),
                  .taps = {}};
  const auto dims = whole_dims(input.in_types[0], shape.layout, shape.letters);
  shape.taps = {static_dim(input, dims[2]), static_dim(input, dims[3])};
  return shape;
}

// The windows combined in `dtype`; `finish` gets the combined value and the window's index in spatial axes.
Compute combine_windows(const RuleInput& input, const PoolShape& shape, Combiner combiner, DataType dtype,
                        const std::function<PrimExpr(const PrimExpr&, const Index&)>& finish) {
  const auto out = whole_dims(input.out_types[0], shape.out_layout, shape.letters);
  const WindowedData data(input, {.data = input.inputs[0],
                                  .layout = shape.layout,
                                  .window = shape.window,
                                  .taps = shape.taps,
                                  .count = {out.begin() + 2, out.end()},
                                  .fill = tir::identity_of(combiner, dtype),
                                  .convert = [dtype](const PrimExpr& value) { return make_cast(dtype, value); },
                                  .reads_little = true,
                                  .ignores_taps = true,
                                  .joins_rows = false});
  Compute compute{input.inputs, {}, {}};
  if (data.stage()) compute.stages.push_back(*data.stage());
  Index window;
  ComputeStage stage =
      reduce_stage(input.make_output(), combiner, data.tap_extents(), [&](const Index& i, const Index& tap) {
        const auto at = axis_indices(shape.out_layout, shape.letters, i);
        window = whole({at.begin() + 2, at.end()});
        return data.at(at[0], at[1], window, tap);
      });
  compute.stages.push_back(finished(std::move(stage), [&](const PrimExpr& value) { return finish(value, window); }));
  compute.outputs = {compute.stages.back().output};
  return compute;
}

Compute max_rule(const RuleInput& input, const PoolShape& shape) {
  return combine_windows(input, shape, Combiner::max, wide_type(input.in_types[0]->dtype),
                         [](const PrimExpr& value, const Index&) { return value; });
}

// How many taps of a window lie in [low, high), both positions in the data, -padding where `low` is none: taps that
// begin before `high` less those before `low`.
PrimExpr taps_within(const PoolShape& shape, size_t i, const PrimExpr& window, std::optional<int64_t> low,
                     int64_t high) {
  const ops::Window& w = shape.window;
  const auto taps_before = [&](int64_t limit) {
    const PrimExpr distance = make_int(limit + w.pad_begin[i]) - window * w.strides[i];
    const PrimExpr taps = floor_div(distance + (w.dilation[i] - 1), make_int(w.dilation[i]));
    return clamp(taps, make_int(0), make_int(shape.taps[i]));
  };
  return low ? taps_before(high) - taps_before(*low) : taps_before(high);
}

// By how much the sum of a window is divided along one axis: a constant where all windows agree.
PrimExpr divisor(const PoolShape& shape, size_t i, const PrimExpr& window, int64_t size, int64_t windows,
                 bool counts_padding) {
  const ops::Window& w = shape.window;
  const int64_t high = counts_padding ? size + w.pad_end[i] : size;
  // The first window begins first, the last one ends last.
  const int64_t last = (windows - 1) * w.strides[i] - w.pad_begin[i] + (shape.taps[i] - 1) * w.dilation[i];
  const bool all_full = (counts_padding || w.pad_begin[i] == 0) && last < high;
  if (all_full) return make_int(shape.taps[i]);
  return taps_within(shape, i, window, counts_padding ? std::nullopt : std::optional<int64_t>(0), high);
}

Compute avg_rule(const RuleInput& input, const PoolShape& shape, bool counts_padding) {
  const auto out = whole_dims(input.out_types[0], shape.out_layout, shape.letters);
  const auto dims = whole_dims(input.in_types[0], shape.layout, shape.letters);
  const DataType dtype = total_type(input.in_types[0]->dtype);
  return combine_windows(input, shape, Combiner::sum, dtype, [&](const PrimExpr& total, const Index& window) {
    PrimExpr count = make_int(1);
    for (size_t i = 0; i < window.size(); ++i) {
      count = count * divisor(shape, i, window[i], static_dim(input, dims[2 + i]), static_dim(input, out[2 + i]),
                              counts_padding);
    }
    count = most(count, make_int(1));
    return divide(total, make_cast(dtype, count));
  });
}

}  // namespace

void register_pool_rules() {
  for (size_t spatial : {1u, 2u, 3u}) {
    set_rule(fmt::format("nn.max_pool{}d", spatial), [spatial](const RuleInput& input) {
      return max_rule(input, shape_of<ops::MaxPoolAttrs>(input, spatial));
    });
    set_rule(fmt::format("nn.avg_pool{}d", spatial), [spatial](const RuleInput& input) {
      return avg_rule(input, shape_of<ops::AvgPoolAttrs>(input, spatial),
                      input.attrs<ops::AvgPoolAttrs>().count_include_pad);
    });
  }
  set_rule("nn.global_max_pool2d", [](const RuleInput& input) { return max_rule(input, global_shape(input)); });
  set_rule("nn.global_avg_pool2d", [](const RuleInput& input) { return avg_rule(input, global_shape(input), false); });
}

}  // namespace headrace::lower
