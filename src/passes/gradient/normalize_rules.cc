// Gradients of softmax, of normalisations and of losses.
#include "ops/nn/group_norm.h"
#include "ops/nn/loss.h"
#include "ops/nn/normalization.h"
#include "ops/nn/pad.h"
#include "ops/op_handles.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/mask.h"
#include "ops/tensor/reduce.h"
#include "ops/tensor/shape.h"
#include "ops/tensor/slice.h"
#include "passes/gradient/rule_tools.h"

namespace headrace::passes::gradient_rules {

using ops::add;
using ops::divide;
using ops::multiply;
using ops::subtract;
using ops::unary;

namespace {

Expr kept_sum(const Expr& tensor, const Shape& axes) { return ops::reduce(op::kSum, tensor, axes, true); }
Expr kept_mean(const Expr& tensor, const Shape& axes) { return ops::reduce(op::kMean, tensor, axes, true); }

// y = softmax(x): y (g - sum(g y))
Gradients grad_softmax(const GradientSite& s) {
  const Shape axis{s.call.attrs_as<ops::SoftmaxAttrs>().axis};
  return {multiply(s.result, subtract(s.gradient, kept_sum(multiply(s.gradient, s.result), axis)))};
}
// y = log_softmax(x): g - exp(y) sum(g)
Gradients grad_log_softmax(const GradientSite& s) {
  const Shape axis{s.call.attrs_as<ops::SoftmaxAttrs>().axis};
  return {subtract(s.gradient, multiply(unary(op::kExp, s.result), kept_sum(s.gradient, axis)))};
}

// y = n gamma + beta with n = (x - m) r, r = 1 / sqrt(v + epsilon), m and v the mean and variance over `axes` of x as
// `shaped` sees it. With h = g gamma: by x r (h - mean(h) - n mean(h n)), by gamma the sum of g n, by beta that of g,
// over all but the channels.
struct Norm {
  size_t channel_axis;
  Shape axes;
  double epsilon;
  bool center, scale;
};
template <typename Shaped>
Gradients norm_gradients(const GradientSite& s, const Norm& norm, const Shaped& shaped) {
  const auto unshaped = [&](const Expr& e) { return reshaped_as(e, s.arg(0)); };
  const Expr x = shaped(s.arg(0));
  const Expr centred = subtract(x, kept_mean(x, norm.axes));
  const Expr r = unary(op::kRsqrt, add(kept_mean(square(centred), norm.axes), scalar(norm.epsilon, s)));
  const Expr n = multiply(centred, r);
  const Expr gamma = along_axis(s.arg(1), norm.channel_axis, tensor_of(s.result).shape.size());
  const Expr h = shaped(norm.scale ? multiply(s.gradient, gamma) : s.gradient);
  const Expr along = add(kept_mean(h, norm.axes), multiply(n, kept_mean(multiply(h, n), norm.axes)));
  const Expr by_gamma = summed_but(multiply(s.gradient, unshaped(n)), norm.channel_axis);
  return {unshaped(multiply(r, subtract(h, along))), norm.scale ? by_gamma : zeros_as(s.arg(1)),
          norm.center ? summed_but(s.gradient, norm.channel_axis) : zeros_as(s.arg(2))};
}
Gradients grad_layer_norm(const GradientSite& s) {
  const auto& attrs = s.call.attrs_as<ops::LayerNormAttrs>();
  const size_t axis = ops::normal_axis(attrs.axis, tensor_of(s.result).shape.size());
  return norm_gradients(s, {axis, Shape{static_cast<int64_t>(axis)}, attrs.epsilon, attrs.center, attrs.scale},
                        [](const Expr& e) { return e; });
}
// Returns all axes of `rank` but these.
Shape axes_but(size_t rank, size_t first, size_t second) {
  Shape axes;
  for (size_t i = 0; i < rank; ++i) {
    if (i != first && i != second) axes.push_back(static_cast<int64_t>(i));
  }
  return axes;
}
Gradients grad_instance_norm(const GradientSite& s) {
  const auto& attrs = s.call.attrs_as<ops::InstanceNormAttrs>();
  const size_t rank = tensor_of(s.result).shape.size(), axis = ops::normal_axis(attrs.axis, rank);
  return norm_gradients(s, {axis, axes_but(rank, 0, axis), attrs.epsilon, attrs.center, attrs.scale},
                        [](const Expr& e) { return e; });
}
// The channels are seen as two axes: groups, and the channels of each.
Gradients grad_group_norm(const GradientSite& s) {
  const auto& attrs = s.call.attrs_as<ops::GroupNormAttrs>();
  const size_t rank = tensor_of(s.result).shape.size(), axis = ops::normal_axis(attrs.axis, rank);
  Shape parts = s.arg_shape(0);
  parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(axis) + 1, parts[axis] / attrs.num_groups);
  parts[axis] = attrs.num_groups;
  return norm_gradients(s, {axis, axes_but(rank + 1, 0, axis), attrs.epsilon, attrs.center, attrs.scale},
                        [&](const Expr& e) { return ops::reshape(e, parts, num_elements(parts) == 0); });
}
// Mean and variance are arguments: with n = (x - m) r and h = g gamma it is h r by x, its negative summed up by m, and
// -h n r^2 / 2 by v. The results behind the first are the arguments m and v.
Gradients grad_batch_norm(const GradientSite& s) {
  const auto& attrs = s.call.attrs_as<ops::BatchNormAttrs>();
  const size_t rank = tensor_of(s.arg(0)).shape.size(), axis = ops::normal_axis(attrs.axis, rank);
  const auto& gradients = s.gradient.as<relay::TupleNode>()->items;
  const Expr& g = gradients[0];
  const auto along = [&](const Expr& vector) { return along_axis(vector, axis, rank); };
  const Expr r = unary(op::kRsqrt, add(s.arg(4), scalar(attrs.epsilon, s)));
  const Expr n = multiply(subtract(s.arg(0), along(s.arg(3))), along(r));
  const Expr scaled = attrs.scale ? multiply(r, s.arg(1)) : r;
  const Expr by_x = multiply(g, along(scaled)), by_n = summed_but(multiply(g, n), axis);
  const Expr by_variance = multiply(scalar(-0.5, s), multiply(by_n, multiply(scaled, r)));
  return {by_x, attrs.scale ? by_n : zeros_as(s.arg(1)), attrs.center ? summed_but(g, axis) : zeros_as(s.arg(2)),
          subtract(gradients[1], summed_but(by_x, axis)), add(gradients[2], by_variance)};
}
// y = x / sqrt(t), t = max(sum of x^2, eps): (g - y sum(g y)) / sqrt(t), the second term only where t is the sum.
Gradients grad_l2_normalize(const GradientSite& s) {
  const auto& attrs = s.call.attrs_as<ops::L2NormalizeAttrs>();
  const Expr least = scalar(attrs.eps, s);
  const auto over = attrs.axis.empty() ? std::nullopt : std::optional<Shape>(attrs.axis);
  const Expr sum = ops::reduce(op::kSum, square(s.arg(0)), over, true);
  const Expr is_sum = ops::cast(ops::binary(op::kGreaterEqual, sum, least), tensor_of(s.result).dtype);
  const Expr along = multiply(is_sum, ops::reduce(op::kSum, multiply(s.gradient, s.result), over, true));
  return {multiply(subtract(s.gradient, multiply(s.result, along)),
                   unary(op::kRsqrt, ops::binary(op::kMaximum, sum, least)))};
}

// Returns the sums over a window of so many elements before and behind each along an axis of n.
Expr window_sum(const Expr& tensor, size_t rank, size_t axis, int64_t n, int64_t before, int64_t behind,
                const GradientSite& s) {
  Array<Shape> widths;
  for (size_t i = 0; i < rank; ++i) widths.push_back(i == axis ? Shape{before, behind} : Shape{0, 0});
  const Expr padded = ops::pad(tensor, widths, scalar(0, s));
  Expr sum;
  for (int64_t i = 0; i <= before + behind; ++i) {
    const Expr part = ops::strided_slice(padded, Shape{i}, Shape{i + n}, Shape{1}, {static_cast<int64_t>(axis)});
    sum = sum ? add(sum, part) : part;
  }
  return sum;
}
// y = x d^-beta, d = bias + alpha / size * window(x^2): g d^-beta - 2 alpha beta / size * x * the window, turned
// around, of g x d^(-beta-1).
Gradients grad_lrn(const GradientSite& s) {
  const auto& attrs = s.call.attrs_as<ops::LRNAttrs>();
  const size_t rank = tensor_of(s.result).shape.size(), axis = ops::normal_axis(attrs.axis, rank);
  const int64_t n = static_dim_of(s.arg(0), axis), size = std::min(attrs.size, 2 * n + 1);
  const int64_t before = (size - 1) / 2, behind = size / 2;
  const double rate = attrs.alpha / static_cast<double>(attrs.size);
  const Expr squares = window_sum(square(s.arg(0)), rank, axis, n, before, behind, s);
  const Expr d = add(scalar(attrs.bias, s), multiply(scalar(rate, s), squares));
  const Expr scaled = multiply(s.gradient, ops::binary(op::kPower, d, scalar(-attrs.beta, s)));
  const Expr around = window_sum(divide(multiply(scaled, s.arg(0)), d), rank, axis, n, behind, before, s);
  return {subtract(scaled, multiply(scalar(2 * rate * attrs.beta, s), multiply(s.arg(0), around)))};
}

// -sum(t log p) / N
Gradients grad_cross_entropy(const GradientSite& s) {
  const Expr each = negative(divide(s.gradient, scalar(static_cast<double>(static_dim_of(s.arg(0), 0)), s)));
  return {multiply(each, divide(s.arg(1), s.arg(0))), multiply(each, unary(op::kLog, s.arg(0)))};
}
// -sum(t p) / N
Gradients grad_cross_entropy_with_logits(const GradientSite& s) {
  const Expr each = negative(divide(s.gradient, scalar(static_cast<double>(static_dim_of(s.arg(0), 0)), s)));
  return {multiply(each, s.arg(1)), multiply(each, s.arg(0))};
}
// With k = 1 at the target's class and 0 elsewhere and at ignored targets, y = -sum_c(k p w) for each target, or their
// sum, or their mean, the sum divided by D = sum(k w). Gradients: by p -g k w, by w -g k p, for a mean -g k (p + y) /
// D.
Gradients grad_nll_loss(const GradientSite& s) {
  const auto& attrs = s.call.attrs_as<ops::NLLLossAttrs>();
  const DataType dtype = tensor_of(s.arg(0)).dtype;
  const auto number = [](double value, DataType type) { return relay::make_scalar(value, type); };
  const int64_t classes = static_dim_of(s.arg(0), 1);
  const Expr picked = ops::one_hot(s.arg(1), number(1, dtype), number(0, dtype), classes, 1, dtype);
  const DataType wide = DataType::int_(64);
  const Expr is_ignored =
      ops::binary(op::kEqual, ops::cast(s.arg(1), wide), number(static_cast<double>(attrs.ignore_index), wide));
  const Expr counts = ops::cast(ops::unary(op::kLogicalNot, is_ignored), dtype);
  const Expr k = multiply(picked, ops::expand_dims(counts, 1)),
             w = along_axis(s.arg(2), 1, tensor_of(s.arg(0)).shape.size());
  Expr g = negative(attrs.reduction == "none" ? ops::expand_dims(s.gradient, 1) : s.gradient), p = s.arg(0);
  if (attrs.reduction == "mean") {
    g = divide(g, ops::reduce(op::kSum, multiply(k, w)));
    p = add(p, s.result);
  }
  return {multiply(g, multiply(k, w)), Expr(), summed_but(multiply(g, multiply(k, p)), 1)};
}

constexpr GradientRow kNormalizeRows[] = {
    {op::kBatchNorm, grad_batch_norm},
    {op::kCrossEntropy, grad_cross_entropy},
    {op::kCrossEntropyWithLogits, grad_cross_entropy_with_logits},
    {op::kFastSoftmax, grad_softmax},
    {op::kGroupNorm, grad_group_norm},
    {op::kInstanceNorm, grad_instance_norm},
    {op::kL2Normalize, grad_l2_normalize},
    {op::kLayerNorm, grad_layer_norm},
    {op::kLogSoftmax, grad_log_softmax},
    {op::kLrn, grad_lrn},
    {op::kNllLoss, grad_nll_loss},
    {op::kSoftmax, grad_softmax},
};

}  // namespace

std::span<const GradientRow> normalize_gradients() { return kNormalizeRows; }

}  // namespace headrace::passes::gradient_rules
