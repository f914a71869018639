// Rules of ops that choose an element by its position.
#include "ops/tensor/mask.h"

#include "lower/rules/rule.h"

namespace headrace::lower {

namespace {

PrimExpr equal(const PrimExpr& a, const PrimExpr& b) { return make_binary(BinaryOp::eq, a, b); }

Compute one_hot_rule(const RuleInput& input) {
  const size_t axis = normal_axis(input.attrs<ops::OneHotAttrs>().axis, input.out_types[0]->shape.size());
  return map_rule(input, [&](const Index& i) {
    Index pick = i;
    pick.erase(pick.begin() + static_cast<std::ptrdiff_t>(axis));
    return make_select(equal(as_index(load(input.inputs[0], pick)), i[axis]), load(input.inputs[1], {}),
                       load(input.inputs[2], {}));
  });
}

Compute trilu_rule(const RuleInput& input) {
  const bool upper = input.attrs<ops::TriluAttrs>().upper;
  return map_rule(input, [&](const Index& i) {
    const PrimExpr diagonal = i.back() - i[i.size() - 2], k = as_index(load(input.inputs[1], {}));
    const PrimExpr x = load(input.inputs[0], i);
    return make_select(make_binary(upper ? BinaryOp::ge : BinaryOp::le, diagonal, k), x, make_const(0, x->dtype));
  });
}

Compute sequence_mask_rule(const RuleInput& input) {
  const auto& attrs = input.attrs<ops::SequenceMaskAttrs>();
  const auto axis = static_cast<size_t>(attrs.axis);
  return map_rule(input, [&](const Index& i) {
    const PrimExpr length = make_cast(DataType::float_(64), load(input.inputs[1], {i[1 - axis]}));
    const PrimExpr x = load(input.inputs[0], i);
    return make_select(make_binary(BinaryOp::lt, make_cast(length->dtype, i[axis]), length), x,
                       make_cast(x->dtype, make_float(attrs.mask_value, length->dtype)));
  });
}

Compute matrix_set_diag_rule(const RuleInput& input) {
  const auto& attrs = input.attrs<ops::MatrixSetDiagAttrs>();
  const Shape shape = static_shape(input, input.out_types[0]->shape);
  const int64_t m = shape[shape.size() - 2], n = shape.back();
  return map_rule(input, [&](const Index& i) {
    const PrimExpr row = i[i.size() - 2], column = i.back(), d = column - row;
    const PrimExpr zero = make_int(0), is_above = make_binary(BinaryOp::ge, d, zero);
    // Computes the offset as ops::diagonal_offset does.
    const PrimExpr length = least(least(d, zero) + m, make_int(n) - most(d, zero));
    const PrimExpr pushed = make_int(ops::longest_diagonal(attrs, m, n)) - length;
    const PrimExpr offset =
        make_select(is_above, attrs.super_diag_right_align ? pushed : zero, attrs.sub_diag_right_align ? pushed : zero);
    Index place(i.begin(), i.end() - 2);
    if (attrs.k1 != attrs.k2) place.push_back(make_int(attrs.k2) - d);
    place.push_back(least(row, column) + offset);
    return guarded(is_within(d, make_int(attrs.k1), make_int(attrs.k2 + 1)), load(input.inputs[1], place),
                   load(input.inputs[0], i));
  });
}

// begin and the step of an axis, as Python's slice has them; the values are known when the kernel runs.
struct SliceAxis {
  PrimExpr n, begin, end, step;

  SliceAxis(const RuleInput& input, size_t axis) : n(input.in_types[0]->shape[axis]) {
    const auto part = [&](size_t argument) {
      return as_index(load(input.inputs[argument], {make_int(static_cast<int64_t>(axis))}));
    };
    step = part(4);
    begin = bounded(part(2));
    end = bounded(part(3));
  }
  PrimExpr is_forward() const { return make_binary(BinaryOp::gt, step, make_int(0)); }
  PrimExpr bounded(const PrimExpr& given) const {
    const PrimExpr at = make_select(make_binary(BinaryOp::lt, given, make_int(0)), given + n, given);
    return make_select(is_forward(), clamp(at, make_int(0), n), clamp(at, make_int(-1), n - 1));
  }
  // Limits the step to the axis's length, which selects the same elements and cannot overflow.
  PrimExpr short_step() const { return clamp(step, make_int(0) - n - 1, n + 1); }
  PrimExpr count() const {
    const PrimExpr span = make_select(is_forward(), end - begin, begin - end), s = short_step();
    const PrimExpr stride = make_select(is_forward(), s, make_int(0) - s);
    const PrimExpr steps = floor_div(span + stride - 1, most(stride, make_int(1)));
    return make_select(make_binary(BinaryOp::gt, span, make_int(0)), steps, make_int(0));
  }
};

Compute strided_set_rule(const RuleInput& input) {
  const Array<PrimExpr>& shape = input.in_types[1]->shape;
  std::vector<SliceAxis> axes;
  std::vector<ComputeStage> checks;
  for (size_t k = 0; k < shape.size(); ++k) {
    axes.emplace_back(input, k);
    checks.push_back(check_stage(
        {make_int(1)}, fmt::format("strided_set: axis {} of the slice is not as long as v's", k), [&](const Index&) {
          return make_binary(BinaryOp::logical_and, make_binary(BinaryOp::ne, axes[k].step, make_int(0)),
                             equal(axes[k].count(), shape[k]));
        }));
  }
  Compute compute = map_rule(input, [&](const Index& i) {
    std::vector<PrimExpr> conditions;
    Index source;
    for (size_t k = 0; k < shape.size(); ++k) {
      const PrimExpr distance = i[k] - axes[k].begin, step = axes[k].short_step();
      const PrimExpr at = floor_div(distance, step);
      conditions.push_back(equal(floor_mod(distance, step), make_int(0)));
      conditions.push_back(is_within(at, make_int(0), shape[k]));
      source.push_back(at);
    }
    return guarded(all_of(conditions), load(input.inputs[1], source), load(input.inputs[0], i));
  });
  compute.stages.insert(compute.stages.begin(), checks.begin(), checks.end());
  return compute;
}

}  // namespace

void register_mask_rules() {
  set_rule("one_hot", one_hot_rule);
  set_rule("trilu", trilu_rule);
  set_rule("sequence_mask", sequence_mask_rule);
  set_rule("matrix_set_diag", matrix_set_diag_rule);
  set_rule("strided_set", strided_set_rule);
}

}  // namespace headrace::lower
