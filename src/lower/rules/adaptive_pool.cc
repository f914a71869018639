// Rules of pools whose windows are derived from the size of the result.
#include "ops/nn/adaptive_pool.h"

#include "lower/rules/layout_index.h"
#include "lower/rules/rule.h"
#include "ops/loops/window.h"

namespace headrace::lower {

namespace {

// The windows along one spatial axis: the largest number of elements of a window, and the bounds of window i.
struct Axis {
  int64_t in, out, longest = 0;

  Axis(int64_t in, int64_t out) : in(in), out(out) {
    if (out != 0) longest = (in + out - 1) / out + (is_even() ? 0 : 1);
  }
  bool is_even() const { return out != 0 && in % out == 0; }
  PrimExpr begin(const PrimExpr& i) const { return is_even() ? i * longest : floor_div(i * in, make_int(out)); }
  PrimExpr end(const PrimExpr& i) const { return floor_div((i + 1) * in + (out - 1), make_int(out)); }
  PrimExpr count(const PrimExpr& i) const { return is_even() ? make_int(longest) : end(i) - begin(i); }
};

Compute adaptive_pool_rule(const RuleInput& input, bool takes_max) {
  const auto& attrs = input.attrs<ops::AdaptivePoolAttrs>();
  const size_t spatial = attrs.spatial;
  const std::string_view letters = ops::letters_of(spatial);
  const Layout data_layout = Layout::parse(attrs.layout),
               out_layout = Layout::parse(ops::layout_or(attrs.out_layout, attrs.layout));
  const auto sizes = [&](const TensorType& type, const Layout& own) {
    return static_shape(input, Array<PrimExpr>(whole_dims(type, own, letters)));
  };
  const Shape in = sizes(input.in_types[0], data_layout), out = sizes(input.out_types[0], out_layout);
  std::vector<Axis> axes;
  std::vector<PrimExpr> extents;
  for (size_t i = 0; i < spatial; ++i) {
    axes.emplace_back(in[2 + i], out[2 + i]);
    extents.push_back(make_int(axes[i].longest));
  }
  const Combiner combiner = takes_max ? Combiner::max : Combiner::sum;
  const DataType data = input.in_types[0]->dtype, dtype = takes_max ? wide_type(data) : total_type(data);
  Index at;
  ComputeStage stage = reduce_stage(input.make_output(), combiner, extents, [&](const Index& index, const Index& tap) {
    std::vector<AxisIndex> source = axis_indices(out_layout, letters, index);
    at = whole(source);
    std::vector<PrimExpr> conditions;
    for (size_t i = 0; i < spatial; ++i) {
      source[2 + i] = axes[i].begin(at[2 + i]) + tap[i];
      if (!axes[i].is_even()) conditions.push_back(make_binary(BinaryOp::lt, tap[i], axes[i].count(at[2 + i])));
    }
    const PrimExpr x = make_cast(dtype, load_by_letters(input.inputs[0], data_layout, letters, source));
    return guarded(all_of(conditions), x, tir::identity_of(combiner, dtype));
  });
  if (takes_max) return single_stage(input, rounded(std::move(stage)));
  return single_stage(input, finished(std::move(stage), [&](const PrimExpr& total) {
                        PrimExpr count = make_int(1);
                        for (size_t i = 0; i < spatial; ++i) count = count * axes[i].count(at[2 + i]);
                        return divide(total, make_cast(dtype, count));
                      }));
}

}  // namespace

void register_adaptive_pool_rules() {
  for (const size_t spatial : {1u, 2u, 3u}) {
    for (const bool takes_max : {true, false}) {
      set_rule(fmt::format("nn.adaptive_{}_pool{}d", takes_max ? "max" : "avg", spatial),
               [=](const RuleInput& input) { return adaptive_pool_rule(input, takes_max); });
    }
  }
}

}  // namespace headrace::lower
