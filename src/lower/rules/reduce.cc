// Rules of reductions over axes.
#include "ops/tensor/reduce.h"

#include "lower/rules/rule.h"

namespace headrace::lower {

namespace {

// The reduced axes of a call. Combines an index of the result and an index of the reduction to an index of the data.
struct Reduction {
  std::vector<bool> reduced;
  bool keepdims = false;
  std::vector<PrimExpr> extents;  // extents of the reduced axes

  Index data_index(const Index& out, const Index& reduce) const {
    Index index;
    size_t at_out = 0, at_reduce = 0;
    for (const bool is_reduced : reduced) {
      if (is_reduced) {
        index.push_back(reduce[at_reduce++]);
        at_out += keepdims ? 1 : 0;
      } else {
        index.push_back(out[at_out++]);
      }
    }
    return index;
  }
  PrimExpr size() const {
    PrimExpr size = make_int(1);
    for (const PrimExpr& extent : extents) size = size * extent;
    return size;
  }
  // Returns the row-major position of `reduce` among the reduced elements.
  PrimExpr position(const Index& reduce) const {
    PrimExpr position = make_int(0);
    for (size_t i = 0; i < extents.size(); ++i) position = position * extents[i] + reduce[i];
    return position;
  }
};

template <typename A>
Reduction reduction_of(const RuleInput& input) {
  const A& attrs = input.attrs<A>();
  const Array<PrimExpr>& shape = input.in_types[0]->shape;
  Reduction reduction;
  reduction.keepdims = attrs.keepdims;
  reduction.reduced.assign(shape.size(), attrs.axis ? attrs.exclude : !attrs.exclude);
  if (attrs.axis) {
    for (const int64_t axis : *attrs.axis) reduction.reduced[normal_axis(axis, shape.size())] = !attrs.exclude;
  }
  for (size_t i = 0; i < shape.size(); ++i) {
    if (reduction.reduced[i]) reduction.extents.push_back(shape[i]);
  }
  return reduction;
}

ComputeStage combine_data(const RuleInput& input, const Reduction& reduction, Combiner combiner, DataType dtype) {
  return reduce_stage(input.make_output(), combiner, reduction.extents, [&](const Index& i, const Index& r) {
    return make_cast(dtype, load(input.inputs[0], reduction.data_index(i, r)));
  });
}

ComputeRuleFn fold_rule(Combiner combiner) {
  return [combiner](const RuleInput& input) {
    const Reduction reduction = reduction_of<ops::ReduceAttrs>(input);
    return single_stage(input, rounded(combine_data(input, reduction, combiner, wide_type(input.in_types[0]->dtype))));
  };
}

Compute mean_rule(const RuleInput& input) {
  const Reduction reduction = reduction_of<ops::ReduceAttrs>(input);
  const DataType dtype = total_type(input.in_types[0]->dtype);
  return single_stage(input, finished(combine_data(input, reduction, Combiner::sum, dtype), [&](const PrimExpr& total) {
                        return divide(total, make_cast(dtype, reduction.size()));
                      }));
}

// Computes the extreme element first, then the first (or last) position that holds it. If any element is NaN, the
// extreme is NaN, which equals no element; then the positions of NaN elements are candidates.
ComputeRuleFn arg_rule(Combiner winner) {
  return [winner](const RuleInput& input) {
    const Reduction reduction = reduction_of<ops::ArgReduceAttrs>(input);
    const bool last = input.attrs<ops::ArgReduceAttrs>().select_last_index;
    const auto element = [&](const Index& i, const Index& r) {
      return wide(load(input.inputs[0], reduction.data_index(i, r)));
    };
    const DataType dtype = wide_type(input.in_types[0]->dtype);
    const Buffer best = make_buffer("best", dtype, input.out_types[0]->shape);
    const Combiner choice = last ? Combiner::max : Combiner::min;
    const DataType index = input.out_types[0]->dtype;
    Compute compute{input.inputs, {}, {input.make_output()}};
    compute.stages.push_back(reduce_stage(best, winner, reduction.extents, element));
    compute.stages.push_back(
        reduce_stage(compute.outputs[0], choice, reduction.extents, [&](const Index& i, const Index& r) {
          const PrimExpr x = element(i, r);
          PrimExpr is_best = make_binary(BinaryOp::eq, x, load(best, i));
          if (dtype.is_float()) {
            is_best =
                make_binary(BinaryOp::logical_or, is_best, make_intrinsic(Intrinsic::isnan, DataType::bool_(), {x}));
          }
          return make_select(is_best, make_cast(index, reduction.position(r)), tir::identity_of(choice, index));
        }));
    return compute;
  };
}

Compute variance_rule(const RuleInput& input) {
  const Reduction reduction = reduction_of<ops::VarianceAttrs>(input);
  const PrimExpr count = reduction.size() - (input.attrs<ops::VarianceAttrs>().unbiased ? 1 : 0);
  ComputeStage stage =
      reduce_stage(input.make_output(), Combiner::sum, reduction.extents, [&](const Index& i, const Index& r) {
        const Index at = reduction.data_index(i, r);
        const PrimExpr distance = wide(load(input.inputs[0], at)) - wide(load_broadcast(input.inputs[1], at));
        return distance * distance;
      });
  return single_stage(input, finished(std::move(stage), [&](const PrimExpr& total) {
                        return divide(total, make_cast(total->dtype, count));
                      }));
}

Compute collapse_sum_rule(const RuleInput& input) {
  const Array<PrimExpr>&from = input.in_types[0]->shape, &to = input.out_types[0]->shape;
  const size_t missing = from.size() - to.size();
  const auto is_reduced = [&](size_t axis) {
    return axis < missing || (is_int(to[axis - missing], 1) && !is_int(from[axis], 1));
  };
  std::vector<PrimExpr> extents;
  for (size_t i = 0; i < from.size(); ++i) {
    if (is_reduced(i)) extents.push_back(from[i]);
  }
  if (extents.empty()) return map_rule(input, [&](const Index& i) { return load(input.inputs[0], i); });
  return single_stage(
      input, rounded(reduce_stage(input.make_output(), Combiner::sum, extents, [&](const Index& i, const Index& r) {
        Index at;
        size_t next = 0;
        for (size_t k = 0; k < from.size(); ++k) at.push_back(is_reduced(k) ? r[next++] : i[k - missing]);
        return wide(load(input.inputs[0], at));
      })));
}

}  // namespace

void register_reduce_rules() {
  set_rule("sum", fold_rule(Combiner::sum));
  set_rule("prod", fold_rule(Combiner::prod));
  set_rule("max", fold_rule(Combiner::max));
  set_rule("min", fold_rule(Combiner::min));
  set_rule("all", fold_rule(Combiner::min));
  set_rule("any", fold_rule(Combiner::max));
  set_rule("mean", mean_rule);
  set_rule("argmax", arg_rule(Combiner::max));
  set_rule("argmin", arg_rule(Combiner::min));
  set_rule("variance", variance_rule);
  set_rule("collapse_sum_to", collapse_sum_rule);
  set_rule("collapse_sum_like", collapse_sum_rule);
}

}  // namespace headrace::lower
