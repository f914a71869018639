// Rules of normalisations over groups of axes.
#include "ops/nn/group_norm.h"

#include "lower/rules/rule.h"

namespace headrace::lower {

namespace {

// Makes stages of shape [N, groups] that reduce all elements of a group.
struct Groups {
  const RuleInput& input;
  ops::GroupNormView view;
  Shape shape;
  DataType dtype;

  Groups(const RuleInput& input, const ops::GroupNormView& view)
      : input(input),
        view(view),
        shape(static_shape(input, input.in_types[0]->shape)),
        dtype(wide_type(input.in_types[0]->dtype)) {}

  PrimExpr data(const Index& i) const { return wide(load(input.inputs[0], i)); }
  PrimExpr of_group(const ComputeStage& stage, const Index& i) const {
    return load(stage.output, {i[0], floor_div(i[view.axis], make_int(view.per_group))});
  }
  int64_t groups() const { return shape[view.axis] / view.per_group; }
  int64_t count() const {
    int64_t count = view.per_group;
    for (size_t i = 1; i < shape.size(); ++i) count *= i == view.axis ? 1 : shape[i];
    return count;
  }
  ComputeStage combine(const char* name, const std::function<PrimExpr(const Index&)>& value) const {
    std::vector<PrimExpr> extents{make_int(view.per_group)};
    for (size_t i = 1; i < shape.size(); ++i) {
      if (i != view.axis) extents.push_back(make_int(shape[i]));
    }
    const Buffer buffer = make_stage_buffer(name, dtype, {make_int(shape[0]), make_int(groups())});
    return reduce_stage(buffer, Combiner::sum, extents, [&](const Index& i, const Index& r) {
      Index at{i[0]};
      size_t next = 1;
      for (size_t k = 1; k < shape.size(); ++k) at.push_back(k == view.axis ? i[1] * view.per_group + r[0] : r[next++]);
      return value(at);
    });
  }
};

template <typename A>
Compute norm_rule(const RuleInput& input) {
  const auto& attrs = input.attrs<A>();
  const Array<PrimExpr>& dims = input.in_types[0]->shape;
  const int64_t channels = static_dim(input, dims[normal_axis(attrs.axis, dims.size())]);
  const Groups groups(input, ops::view_of(attrs, dims.size(), channels));
  if (num_elements(groups.shape) == 0) return map_rule(input, [&](const Index& i) { return load(input.inputs[0], i); });
  const PrimExpr count = make_float(static_cast<double>(groups.count()), groups.dtype);
  const ComputeStage mean = finished(groups.combine("mean", [&](const Index& i) { return groups.data(i); }),
                                     [&](const PrimExpr& sum) { return divide(sum, count); });
  const ComputeStage deviation =
      finished(groups.combine("deviation",
                              [&](const Index& i) {
                                const PrimExpr d = groups.data(i) - groups.of_group(mean, i);
                                return d * d;
                              }),
               [&](const PrimExpr& sum) {
                 return call(Intrinsic::sqrt, divide(sum, count) + number_like(groups.view.epsilon, sum));
               });
  const Buffer out = input.make_output();
  const ComputeStage result = map_stage(out, [&](const Index& i) {
    const PrimExpr c = i[groups.view.axis];
    PrimExpr y = divide(groups.data(i) - groups.of_group(mean, i), groups.of_group(deviation, i));
    if (groups.view.scale) y = y * wide(load(input.inputs[1], {c}));
    if (groups.view.center) y = y + wide(load(input.inputs[2], {c}));
    return make_cast(out->dtype, y);
  });
  return {input.inputs, {mean, deviation, result}, {out}};
}

Compute l2_normalize_rule(const RuleInput& input) {
  const auto& attrs = input.attrs<ops::L2NormalizeAttrs>();
  const Array<PrimExpr>& shape = input.in_types[0]->shape;
  std::vector<bool> summed(shape.size(), attrs.axis.empty());
  for (const int64_t axis : attrs.axis) summed[normal_axis(axis, shape.size())] = true;
  std::vector<PrimExpr> kept, extents;
  for (size_t i = 0; i < shape.size(); ++i) (summed[i] ? extents : kept).push_back(shape[i]);
  const Buffer lengths = make_stage_buffer("lengths", wide_type(input.in_types[0]->dtype), kept);
  const auto finish = [&](const PrimExpr& sum) {
    return call(Intrinsic::sqrt, most(sum, number_like(attrs.eps, sum)));
  };
  const auto square = [&](const Index& i) {
    const PrimExpr x = wide(load(input.inputs[0], i));
    return x * x;
  };
  const ComputeStage length =
      extents.empty() ? map_stage(lengths, [&](const Index& i) { return finish(square(i)); })
                      : finished(reduce_stage(lengths, Combiner::sum, extents,
                                              [&](const Index& i, const Index& r) {
                                                Index at;
                                                size_t next_kept = 0, next_summed = 0;
                                                for (size_t k = 0; k < shape.size(); ++k)
                                                  at.push_back(summed[k] ? r[next_summed++] : i[next_kept++]);
                                                return square(at);
                                              }),
                                 finish);
  const Buffer out = input.make_output();
  const ComputeStage result = map_stage(out, [&](const Index& i) {
    Index at;
    for (size_t k = 0; k < shape.size(); ++k) {
      if (!summed[k]) at.push_back(i[k]);
    }
    return make_cast(out->dtype, divide(wide(load(input.inputs[0], i)), load(lengths, at)));
  });
  return {input.inputs, {length, result}, {out}};
}

}  // namespace

void register_group_norm_rules() {
  set_rule("nn.group_norm", norm_rule<ops::GroupNormAttrs>);
  set_rule("nn.instance_norm", norm_rule<ops::InstanceNormAttrs>);
  set_rule("nn.l2_normalize", l2_normalize_rule);
}

}  // namespace headrace::lower
