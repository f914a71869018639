// Gradients of reductions over axes, of running sums and products, of sorts.
#include "ops/algorithm/scan.h"
#include "ops/algorithm/scatter.h"
#include "ops/algorithm/sort.h"
#include "ops/op_handles.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/reduce.h"
#include "ops/tensor/repeat.h"
#include "ops/tensor/shape.h"
#include "passes/gradient/rule_tools.h"

namespace headrace::passes::gradient_rules {

using ops::divide;
using ops::multiply;
using ops::subtract;

namespace {

// Returns which axes of the first argument a reduction reduces.
template <typename Attrs>
std::vector<bool> reduced_axes(const GradientSite& s) {
  const auto& attrs = s.call.attrs_as<Attrs>();
  const size_t rank = tensor_of(s.arg(0)).shape.size();
  std::vector<bool> reduced(rank, !attrs.axis.has_value());
  if (attrs.axis) {
    for (const int64_t axis : *attrs.axis) reduced[ops::normal_axis(axis, rank)] = true;
    if (attrs.exclude) reduced.flip();
  }
  return reduced;
}

// Returns a tensor of the result's shape with the reduced axes as axes of one element.
template <typename Attrs>
Expr with_axes(const Expr& reduced, const GradientSite& s) {
  if (s.call.attrs_as<Attrs>().keepdims) return reduced;
  const std::vector<bool> axes = reduced_axes<Attrs>(s);
  if (const auto shape = known_shape_of(s.arg(0))) {
    Shape kept = *shape;
    for (size_t i = 0; i < kept.size(); ++i) kept[i] = axes[i] ? 1 : kept[i];
    return ops::reshape(reduced, kept, num_elements(kept) == 0);
  }
  Expr result = reduced;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i]) result = ops::expand_dims(result, static_cast<int64_t>(i));
  }
  return result;
}
Expr spread(const Expr& reduced, const GradientSite& s) {
  return broadcast_as(with_axes<ops::ReduceAttrs>(reduced, s), s.arg(0));
}

Gradients grad_sum(const GradientSite& s) { return {spread(s.gradient, s)}; }
Gradients grad_mean(const GradientSite& s) {
  return {divide(spread(s.gradient, s), elements_each(s.arg(0), s.result, s))};
}
// The gradient goes to the greatest (least) element; among several, to all in equal parts.
Gradients grad_extreme(const GradientSite& s) {
  const Expr is_it = ops::cast(ops::binary(op::kEqual, s.arg(0), spread(s.result, s)), tensor_of(s.result).dtype);
  const auto* attrs = s.call.attrs.as<ops::ReduceAttrs>();
  const Expr count = ops::reduce(op::kSum, is_it, attrs->axis, attrs->keepdims, attrs->exclude);
  return {multiply(is_it, spread(divide(s.gradient, count), s))};
}
// The product of the other elements, as the product of those before and those behind, which also works for several
// zeros.
Gradients grad_prod(const GradientSite& s) {
  const std::vector<bool> reduced = reduced_axes<ops::ReduceAttrs>(s);
  const Shape shape = s.arg_shape(0);
  Shape order, back(shape.size());
  int64_t kept = 1, gone = 1;
  for (const bool last : {false, true}) {
    for (size_t i = 0; i < shape.size(); ++i) {
      if (reduced[i] != last) continue;
      back[i] = static_cast<int64_t>(order.size());
      order.push_back(static_cast<int64_t>(i));
      (last ? gone : kept) *= shape[i];
    }
  }
  if (kept * gone == 0) return {zeros_as(s.arg(0))};
  const Expr lines = ops::reshape(ordered(s.arg(0), order), {kept, gone});
  const Expr behind = ops::reverse(ops::scan(op::kCumprod, ops::reverse(lines, 1), 1, true), 1);
  const Expr others = multiply(ops::scan(op::kCumprod, lines, 1, true), behind);
  Shape turned;
  for (const int64_t axis : order) turned.push_back(shape[static_cast<size_t>(axis)]);
  return {multiply(spread(s.gradient, s), ordered(ops::reshape(others, turned), back))};
}
// mean of (x - m)^2: 2 (x - m) / n, and the opposite summed up for m
Gradients grad_variance(const GradientSite& s) {
  Expr count = elements_each(s.arg(0), s.result, s);
  if (s.call.attrs_as<ops::VarianceAttrs>().unbiased) count = subtract(count, scalar(1, s));
  const Expr each = divide(with_axes<ops::VarianceAttrs>(s.gradient, s), count);
  const Expr by_data = multiply(multiply(scalar(2, s), subtract(s.arg(0), s.arg(1))), each);
  return {by_data, summed_to(negative(by_data), s.arg(0), s.arg(1))};
}
// The gradient goes from shape `target`, which may be given as an argument, back to all elements.
Gradients grad_collapse_sum(const GradientSite& s) {
  Gradients gradients(s.call.args.size());
  gradients[0] = broadcast_as(s.gradient, s.arg(0));
  return gradients;
}

// Returns for each element the sum of the gradients of the running sums from there on.
Expr sum_of_following(const Expr& gradient, int64_t axis, bool exclusive) {
  return ops::reverse(ops::scan(op::kCumsum, ops::reverse(gradient, axis), axis, exclusive), axis);
}
// Applies `by_lines` to the first argument and the gradient along `axis`, or along axis 0 of the flattened argument.
template <typename ByLines>
Gradients scan_gradients(const GradientSite& s, const ByLines& by_lines) {
  const auto& attrs = s.call.attrs_as<ops::ScanopAttrs>();
  const DataType own = tensor_of(s.arg(0)).dtype;
  if (!own.is_float()) return {Expr()};
  const Expr gradient = attrs.dtype && *attrs.dtype != own ? ops::cast(s.gradient, own) : s.gradient;
  if (attrs.axis) return {by_lines(s.arg(0), gradient, *attrs.axis, attrs.exclusive)};
  return {reshaped_as(by_lines(ops::reshape(s.arg(0), Shape{-1}), gradient, 0, attrs.exclusive), s.arg(0))};
}
Gradients grad_cumsum(const GradientSite& s) {
  return scan_gradients(
      s, [](const Expr&, const Expr& g, int64_t axis, bool exclusive) { return sum_of_following(g, axis, exclusive); });
}
// y_j is a product that x_i is in: y_j / x_i. It is not defined where an element is 0.
Gradients grad_cumprod(const GradientSite& s) {
  return scan_gradients(s, [](const Expr& x, const Expr& g, int64_t axis, bool exclusive) {
    const Expr y = ops::scan(op::kCumprod, x, axis, exclusive);
    return divide(sum_of_following(multiply(g, y), axis, exclusive), x);
  });
}

// The gradient of each element goes back to the place from which the order took it.
Expr put_back(const Expr& order, const Expr& gradient, int64_t axis, const GradientSite& s) {
  return ops::scatter_elements(zeros_as(s.arg(0)), order, gradient, axis, "add");
}
Gradients grad_sort(const GradientSite& s) {
  const auto& attrs = s.call.attrs_as<ops::ArgsortAttrs>();
  return {put_back(ops::argsort(s.arg(0), attrs.axis, attrs.is_ascend, DataType::int_(64)), s.gradient, attrs.axis, s)};
}
Gradients grad_topk(const GradientSite& s) {
  const auto& attrs = s.call.attrs_as<ops::TopKAttrs>();
  const auto* both = s.gradient.as<relay::TupleNode>();
  const Expr order = ops::topk(s.arg(0), attrs.k, attrs.axis, "indices", attrs.is_ascend, DataType::int_(64));
  return {put_back(order, both == nullptr ? s.gradient : both->items[0], attrs.axis, s)};
}

constexpr GradientRow kReduceRows[] = {
    {op::kCollapseSumLike, grad_collapse_sum},
    {op::kCollapseSumTo, grad_collapse_sum},
    {op::kCumprod, grad_cumprod},
    {op::kCumsum, grad_cumsum},
    {op::kMax, grad_extreme},
    {op::kMean, grad_mean},
    {op::kMin, grad_extreme},
    {op::kProd, grad_prod},
    {op::kSort, grad_sort},
    {op::kSum, grad_sum},
    {op::kTopk, grad_topk},
    {op::kVariance, grad_variance},
};

}  // namespace

std::span<const GradientRow> reduce_gradients() { return kReduceRows; }

}  // namespace headrace::passes::gradient_rules
