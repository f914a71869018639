// Rules of ops that select elements: strided_slice, take, gather, gather_nd.
#include "ops/tensor/slice.h"

#include "lower/rules/rule.h"

namespace headrace::lower {

namespace {

// begin, end and strides of a slice: attributes, or constant arguments.
Shape slice_list(const RuleInput& input, const Shape& attribute, size_t argument) {
  if (input.call.args.size() == 1) return attribute;
  if (argument >= input.call.args.size()) return {};
  const auto values = constant_ints(input, argument);
  if (!values) {
    fail_rule(input,
              fmt::format("argument {} is computed by the model; native code needs it to be constant", argument));
  }
  return *values;
}

Compute strided_slice_rule(const RuleInput& input) {
  const auto& attrs = input.attrs<ops::StridedSliceAttrs>();
  const Array<PrimExpr>& shape = input.in_types[0]->shape;
  const Shape begin = slice_list(input, attrs.begin, 1);
  Shape steps = slice_list(input, attrs.strides, 3);
  if (steps.size() == 1) steps.resize(begin.size(), steps[0]);
  const bool by_size = attrs.slice_mode == "size";
  return map_rule(input, [&](const Index& i) {
    Index source = i;
    for (size_t k = 0; k < begin.size(); ++k) {
      const size_t axis = attrs.axes.empty() ? k : normal_axis(attrs.axes[k], shape.size());
      const int64_t step = steps.empty() || by_size ? 1 : steps[k];
      // Limits the step to the axis's length, which selects the same elements and cannot overflow.
      const bool is_single = is_int(input.out_types[0]->shape[axis], 1);
      const PrimExpr offset = is_single ? make_int(0) : i[axis] * step;
      const auto size = as_int(shape[axis]);
      const PrimExpr first = size           ? make_int(ops::slice_range(*size, begin[k], 0, step).begin)
                             : begin[k] < 0 ? shape[axis] + begin[k]
                                            : make_int(begin[k]);
      source[axis] = first + offset;
    }
    return load(input.inputs[0], source);
  });
}

// Clamps an index to [0, n), so that a read stays inside the buffer even if a check fails.
PrimExpr bounded(const PrimExpr& index, const PrimExpr& n) { return clamp(index, make_int(0), n - 1); }

// Counts a negative index from the end, then clamps it to [0, n).
PrimExpr python_index(const PrimExpr& index, const PrimExpr& n) {
  return bounded(make_select(make_binary(BinaryOp::lt, index, make_int(0)), index + n, index), n);
}

// Maps the index `given`, of any integer dtype, into [0, n) as `mode` says. Takes the remainder of an unsigned index
// before converting it, because it may not fit into the index type.
PrimExpr resolved(const PrimExpr& given, const PrimExpr& n, std::string_view mode) {
  if (mode != "wrap") return bounded(as_index(given), n);
  const bool is_uint64 = given->dtype == DataType::uint(64);
  if (!is_uint64) return floor_mod(as_index(given), n);
  return make_cast(kIndexType, make_binary(BinaryOp::floor_mod, given, make_cast(given->dtype, n)));
}

// Makes a stage that stops the kernel if an element of `indices` is not within [low, n).
ComputeStage check_indices(const RuleInput& input, const Array<PrimExpr>& extents, const PrimExpr& low,
                           const PrimExpr& n, const std::function<Index(const Index&)>& place) {
  const std::string message =
      fmt::format("{}: an index is out of range for an axis of {}", input.call.as_op()->name, to_string(n));
  return check_stage(extents, message,
                     [&](const Index& i) { return is_within(as_index(load(input.inputs[1], place(i))), low, n); });
}

Index same(const Index& index) { return index; }

// Puts `checks` before the stages of `compute`.
Compute checked(std::vector<ComputeStage> checks, Compute compute) {
  compute.stages.insert(compute.stages.begin(), checks.begin(), checks.end());
  return compute;
}

// Throws UserError at the call if it takes an element from an empty axis.
void check_axis(const RuleInput& input, const PrimExpr& n) {
  for (const PrimExpr& dim : input.out_types[0]->shape) {
    if (is_int(dim, 0)) return;
  }
  if (is_int(n, 0)) fail_rule(input, "an index selects from an axis that has no elements");
}

// Converts the row-major position `at` to an index into `shape`.
Index unravel(PrimExpr at, const Array<PrimExpr>& shape) {
  Index index(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    index[i] = i == 0 ? at : floor_mod(at, shape[i]);
    at = floor_div(at, shape[i]);
  }
  return index;
}

std::vector<ComputeStage> take_checks(const RuleInput& input, const PrimExpr& n) {
  if (input.attrs<ops::TakeAttrs>().mode != "fast") return {};
  return {check_indices(input, input.in_types[1]->shape, make_int(0), n, same)};
}

Compute take_rule(const RuleInput& input) {
  const auto& attrs = input.attrs<ops::TakeAttrs>();
  const Array<PrimExpr>& shape = input.in_types[0]->shape;
  const size_t picks = input.in_types[1]->shape.size();
  if (!attrs.axis) {
    PrimExpr total = make_int(1);
    for (const PrimExpr& dim : shape) total = total * dim;
    check_axis(input, total);
    return checked(take_checks(input, total), map_rule(input, [&](const Index& i) {
                     const PrimExpr index = resolved(load(input.inputs[1], i), total, attrs.mode);
                     return load(input.inputs[0], unravel(index, shape));
                   }));
  }
  const size_t axis = normal_axis(*attrs.axis, shape.size());
  const size_t batch = normal_axis(attrs.batch_dims, picks);
  check_axis(input, shape[axis]);
  return checked(take_checks(input, shape[axis]), map_rule(input, [&](const Index& i) {
                   Index pick, source;
                   for (size_t k = 0; k < picks; ++k) pick.push_back(k < batch ? i[k] : i[axis + k - batch]);
                   for (size_t k = 0; k < axis; ++k) source.push_back(i[k]);
                   source.push_back(resolved(load(input.inputs[1], pick), shape[axis], attrs.mode));
                   for (size_t k = axis + 1; k < shape.size(); ++k) source.push_back(i[k + picks - batch - 1]);
                   return load(input.inputs[0], source);
                 }));
}

Compute gather_rule(const RuleInput& input) {
  const Array<PrimExpr>& shape = input.in_types[0]->shape;
  const size_t axis = normal_axis(input.attrs<ops::GatherAttrs>().axis, shape.size());
  const PrimExpr n = shape[axis];
  check_axis(input, n);
  const ComputeStage check = check_indices(input, input.in_types[1]->shape, make_int(0) - n, n, same);
  return checked({check}, map_rule(input, [&](const Index& i) {
                   Index source = i;
                   source[axis] = python_index(as_index(load(input.inputs[1], i)), n);
                   return load(input.inputs[0], source);
                 }));
}

// indices[M, Y...]: column y holds the indices of its elements along the first M axes.
Compute gather_nd_rule(const RuleInput& input) {
  const Array<PrimExpr>& shape = input.in_types[0]->shape;
  const auto batch = static_cast<size_t>(input.attrs<ops::GatherNDAttrs>().batch_dims);
  const auto depth = static_cast<size_t>(static_dim(input, input.in_types[1]->shape[0]));
  const size_t picks = input.in_types[1]->shape.size() - 1;
  const Array<PrimExpr>& indices = input.in_types[1]->shape;
  std::vector<ComputeStage> checks;
  for (size_t m = 0; m < depth; ++m) {
    const PrimExpr n = shape[batch + m];
    check_axis(input, n);
    checks.push_back(check_indices(input, Array<PrimExpr>(indices.begin() + 1, indices.end()), make_int(0) - n, n,
                                   [&](const Index& i) {
                                     Index place{make_int(static_cast<int64_t>(m))};
                                     place.insert(place.end(), i.begin(), i.end());
                                     return place;
                                   }));
  }
  return checked(checks, map_rule(input, [&](const Index& i) {
                   Index source(i.begin(), i.begin() + static_cast<std::ptrdiff_t>(batch));
                   for (size_t m = 0; m < depth; ++m) {
                     Index pick{make_int(static_cast<int64_t>(m))};
                     pick.insert(pick.end(), i.begin(), i.begin() + static_cast<std::ptrdiff_t>(picks));
                     source.push_back(python_index(as_index(load(input.inputs[1], pick)), shape[batch + m]));
                   }
                   source.insert(source.end(), i.begin() + static_cast<std::ptrdiff_t>(picks), i.end());
                   return load(input.inputs[0], source);
                 }));
}

}  // namespace

void register_slice_rules() {
  set_rule("strided_slice", strided_slice_rule);
  set_rule("take", take_rule);
  set_rule("gather", gather_rule);
  set_rule("gather_nd", gather_nd_rule);
}

}  // namespace headrace::lower
