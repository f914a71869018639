// The rule of nn.correlation.
#include "ops/nn/correlation.h"

#include "lower/rules/window.h"

namespace headrace::lower {

namespace {

Compute correlation_rule(const RuleInput& input) {
  const auto& attrs = input.attrs<ops::CorrelationAttrs>();
  const ops::Window window = ops::window_of(2, {1, 1}, attrs.padding, {1, 1});
  const Array<PrimExpr>& shape = input.in_types[0]->shape;
  const DataType dtype = wide_type(input.out_types[0]->dtype);
  const PrimExpr zero = make_const(0, dtype);
  const auto element = [&](size_t operand, const PrimExpr& n, const PrimExpr& c, const PrimExpr& row,
                           const PrimExpr& column) {
    const PrimExpr is_inside = both(is_within(row, make_int(0), shape[2]), is_within(column, make_int(0), shape[3]));
    return guarded(is_inside, wide(load(input.inputs[operand], {n, c, row, column})), zero);
  };
  const int64_t steps = ops::displacement_steps(attrs);
  const PrimExpr size = make_int(attrs.kernel_size), width = make_int(2 * steps + 1);
  const auto term = [&](const Index& i, const Index& r) {
    const auto place = [&](size_t axis) {
      return i[2 + axis] * attrs.stride1 + r[1 + axis] + (attrs.max_displacement - window.pad_begin[axis]);
    };
    const PrimExpr down = (floor_div(i[1], width) - steps) * attrs.stride2,
                   across = (floor_mod(i[1], width) - steps) * attrs.stride2;
    const PrimExpr a = element(0, i[0], r[0], place(0), place(1));
    const PrimExpr b = element(1, i[0], r[0], place(0) + down, place(1) + across);
    return attrs.is_multiply ? a * b : call(Intrinsic::abs, a - b);
  };
  ComputeStage stage = reduce_stage(input.make_output(), Combiner::sum, {shape[1], size, size}, term);
  const PrimExpr count = make_cast(dtype, shape[1] * (attrs.kernel_size * attrs.kernel_size));
  return single_stage(input, finished(std::move(stage), [&](const PrimExpr& sum) { return divide(sum, count); }));
}

}  // namespace

void register_correlation_rules() { set_rule("nn.correlation", correlation_rule); }

}  // namespace headrace::lower
