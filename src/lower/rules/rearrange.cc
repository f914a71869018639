// Rules of ops that move elements to other positions.
#include "ops/tensor/rearrange.h"

#include "ir/layout.h"
#include "lower/rules/rule.h"

namespace headrace::lower {

namespace {

PrimExpr less(const PrimExpr& a, const PrimExpr& b) { return make_binary(BinaryOp::lt, a, b); }

Compute move_rule(const RuleInput& input, const std::function<Index(const Index&)>& source) {
  return map_rule(input, [&](const Index& i) { return load(input.inputs[0], source(i)); });
}

Compute layout_transform_rule(const RuleInput& input) {
  const auto& attrs = input.attrs<ops::LayoutTransformAttrs>();
  const Layout src = Layout::parse(attrs.src_layout), dst = Layout::parse(attrs.dst_layout);
  return move_rule(input, [&](const Index& i) { return map_index(Array<PrimExpr>(i), dst, src).to_vector(); });
}

Compute sliding_window_rule(const RuleInput& input) {
  const auto& attrs = input.attrs<ops::SlidingWindowAttrs>();
  const size_t rank = input.in_types[0]->shape.size(), axis = normal_axis(attrs.axis, rank);
  return move_rule(input, [&](const Index& i) {
    Index source(i.begin(), i.begin() + static_cast<std::ptrdiff_t>(axis));
    for (size_t k = axis; k < rank; ++k) source.push_back(i[k] * attrs.strides[k - axis] + i[k + rank - axis]);
    return source;
  });
}

Compute reverse_sequence_rule(const RuleInput& input) {
  const auto& attrs = input.attrs<ops::ReverseSequenceAttrs>();
  const Array<PrimExpr>& shape = input.in_types[0]->shape;
  const size_t steps = normal_axis(attrs.seq_axis, shape.size()), batch = normal_axis(attrs.batch_axis, shape.size());
  return move_rule(input, [&](Index i) {
    const PrimExpr length = least(as_index(load(input.inputs[1], {i[batch]})), shape[steps]);
    i[steps] = make_select(less(i[steps], length), length - 1 - i[steps], i[steps]);
    return i;
  });
}

Compute meshgrid_rule(const RuleInput& input) {
  Compute compute{input.inputs, {}, {}};
  for (size_t k = 0; k < input.inputs.size(); ++k) {
    const size_t axis = input.inputs.size() < 2 ? k : ops::meshgrid_axis(input.attrs<ops::MeshgridAttrs>(), k);
    compute.outputs.push_back(input.make_output(k));
    compute.stages.push_back(map_stage(compute.outputs.back(), [&](const Index& i) {
      return load(input.inputs[k], input.inputs[k]->shape.empty() ? Index{} : Index{i[axis]});
    }));
  }
  return compute;
}

Compute adv_index_rule(const RuleInput& input) {
  const size_t count = input.inputs.size() - 1;
  const Array<PrimExpr>& shape = input.in_types[0]->shape;
  const size_t common = input.out_types[0]->shape.size() - (shape.size() - count);
  std::vector<ComputeStage> checks;
  for (size_t k = 0; k < count; ++k) {
    const Buffer& indices = input.inputs[k + 1];
    const PrimExpr n = shape[k];
    if (is_int(n, 0)) fail_rule(input, "an index selects from an axis that has no elements");
    checks.push_back(
        check_stage(indices->shape, fmt::format("adv_index: an index is out of range for an axis of {}", to_string(n)),
                    [&](const Index& i) { return is_within(as_index(load(indices, i)), make_int(0) - n, n); }));
  }
  Compute compute = move_rule(input, [&](const Index& i) {
    const Index pick(i.begin(), i.begin() + static_cast<std::ptrdiff_t>(common));
    Index source;
    for (size_t k = 0; k < count; ++k) {
      const PrimExpr at = as_index(load_broadcast(input.inputs[k + 1], pick));
      source.push_back(clamp(make_select(less(at, make_int(0)), at + shape[k], at), make_int(0), shape[k] - 1));
    }
    source.insert(source.end(), i.begin() + static_cast<std::ptrdiff_t>(common), i.end());
    return source;
  });
  compute.stages.insert(compute.stages.begin(), checks.begin(), checks.end());
  return compute;
}

Compute unravel_index_rule(const RuleInput& input) {
  const Buffer &indices = input.inputs[0], &shape = input.inputs[1];
  const int64_t rank = static_dim(input, shape->shape[0]);
  const auto size_of = [&](int64_t k) { return as_index(load(shape, {make_int(k)})); };
  // Returns the stride of axis k, in elements.
  const auto stride_of = [&](int64_t k) {
    PrimExpr stride = make_int(1);
    for (int64_t i = k + 1; i < rank; ++i) stride = stride * size_of(i);
    return stride;
  };
  const Buffer out = input.make_output();
  Compute compute{input.inputs, {}, {out}};
  compute.stages.push_back(
      check_stage(indices->shape, "unravel_index: an index is out of range for the shape",
                  [&](const Index& i) { return is_within(as_index(load(indices, i)), make_int(0), stride_of(-1)); }));
  for (int64_t k = 0; k < rank; ++k) {
    std::vector<PrimExpr> origin(out->shape.size(), make_int(0)), extents = out->shape.to_vector();
    origin[0] = make_int(k);
    extents[0] = make_int(1);
    compute.stages.push_back(part_stage(out, origin, Array<PrimExpr>(extents), [&](const Index& i) {
      const PrimExpr at = as_index(load(indices, Index(i.begin() + 1, i.end())));
      return make_cast(out->dtype, floor_mod(floor_div(at, stride_of(k)), size_of(k)));
    }));
  }
  return compute;
}

Compute reinterpret_rule(const RuleInput& input) {
  const DataType dtype = input.out_types[0]->dtype;
  return map_rule(input, [&](const Index& i) {
    const PrimExpr x = load(input.inputs[0], i);
    return x->dtype == dtype ? x : make_intrinsic(Intrinsic::reinterpret, dtype, {x});
  });
}

}  // namespace

void register_rearrange_rules() {
  set_rule("layout_transform", layout_transform_rule);
  set_rule("sliding_window", sliding_window_rule);
  set_rule("reverse_sequence", reverse_sequence_rule);
  set_rule("meshgrid", meshgrid_rule);
  set_rule("adv_index", adv_index_rule);
  set_rule("unravel_index", unravel_index_rule);
  set_rule("slice_like", [](const RuleInput& input) { return move_rule(input, [](const Index& i) { return i; }); });
  set_rule("reinterpret", reinterpret_rule);
}

}  // namespace headrace::lower
