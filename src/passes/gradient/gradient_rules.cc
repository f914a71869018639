#include "passes/gradient/gradient_rules.h"

#include <cmath>
#include <numbers>

#include "object/function.h"
#include "object/repr.h"
#include "ops/loops/window.h"
#include "ops/nn/conv.h"
#include "ops/nn/matmul.h"
#include "ops/nn/normalization.h"
#include "ops/nn/pad.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/creation.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/join.h"
#include "ops/tensor/reduce.h"
#include "ops/tensor/repeat.h"
#include "ops/tensor/shape.h"
#include "ops/tensor/slice.h"

namespace headrace::passes {

using ops::add;
using ops::divide;
using ops::multiply;
using ops::subtract;
using ops::unary;

namespace {

using Gradients = std::vector<Expr>;

DataType dtype_of(const Expr& expr) { return expr->checked_type().as<TensorTypeNode>()->dtype; }

Expr scalar(double value, const GradientSite& s) { return relay::make_scalar(value, dtype_of(s.arg(0))); }
Expr negative(const Expr& x) { return unary("negative", x); }
Expr zeros_like(const Expr& x) { return ops::zeros(static_shape_of(x), dtype_of(x)); }

// The gradient by an operand of shape `to` that was broadcast to `from`.
Expr summed_to(const Expr& gradient, const Shape& from, const Shape& to) {
  if (from == to) return gradient;
  const size_t added = from.size() - to.size();
  Shape axes;
  for (size_t i = 0; i < from.size(); ++i) {
    if (i < added || (to[i - added] == 1 && from[i] != 1)) axes.push_back(static_cast<int64_t>(i));
  }
  return ops::reshape(ops::reduce("sum", gradient, axes, true), to, num_elements(to) == 0);
}

Gradients binary(const GradientSite& s, const Expr& by_first, const Expr& by_second) {
  return {summed_to(by_first, s.shape(), s.arg_shape(0)), summed_to(by_second, s.shape(), s.arg_shape(1))};
}

// Where `condition` holds the gradient goes through, elsewhere nothing does.
Expr masked(const Expr& condition, const GradientSite& s) {
  return ops::where(condition, s.gradient, ops::zeros(s.shape(), dtype_of(s.result)));
}

// Sums and products.
Gradients grad_add(const GradientSite& s) { return binary(s, s.gradient, s.gradient); }
Gradients grad_subtract(const GradientSite& s) { return binary(s, s.gradient, negative(s.gradient)); }
Gradients grad_multiply(const GradientSite& s) {
  return binary(s, multiply(s.gradient, s.arg(1)), multiply(s.gradient, s.arg(0)));
}
Gradients grad_divide(const GradientSite& s) {
  const Expr by_first = divide(s.gradient, s.arg(1));
  return binary(s, by_first, negative(multiply(by_first, s.result)));
}
// x^y: y x^(y-1), and x^y log x, which is 0 where x is 0
Gradients grad_power(const GradientSite& s) {
  const Expr x = s.arg(0), y = s.arg(1), one = scalar(1, s);
  const Expr by_base = multiply(s.gradient, multiply(y, ops::binary("power", x, subtract(y, one))));
  if (y.is<relay::ConstantNode>()) return {summed_to(by_base, s.shape(), s.arg_shape(0)), Expr()};
  const Expr is_zero = ops::binary("equal", x, scalar(0, s));
  const Expr safe = ops::where(is_zero, ops::ones(s.arg_shape(0), dtype_of(x)), x);
  return binary(s, by_base, multiply(s.gradient, multiply(s.result, unary("log", safe))));
}
Gradients grad_extremum(const GradientSite& s) {
  const bool is_maximum = s.call.as_op()->name == "maximum";
  const Expr takes_first = ops::binary(is_maximum ? "greater_equal" : "less_equal", s.arg(0), s.arg(1));
  const Expr zero = ops::zeros(s.shape(), dtype_of(s.result));
  return binary(s, ops::where(takes_first, s.gradient, zero), ops::where(takes_first, zero, s.gradient));
}
Gradients grad_where(const GradientSite& s) {
  const Expr zero = ops::zeros(s.shape(), dtype_of(s.result));
  return {Expr(), summed_to(ops::where(s.arg(0), s.gradient, zero), s.shape(), s.arg_shape(1)),
          summed_to(ops::where(s.arg(0), zero, s.gradient), s.shape(), s.arg_shape(2))};
}
Gradients grad_bias_add(const GradientSite& s) {
  const size_t rank = s.shape().size();
  const size_t axis = ops::normal_axis(s.call.attrs_as<ops::BiasAddAttrs>().axis, rank);
  return {s.gradient, ops::reduce("sum", s.gradient, Shape{static_cast<int64_t>(axis)}, false, true)};
}

// Functions of one operand.
Gradients grad_negative(const GradientSite& s) { return {negative(s.gradient)}; }
Gradients grad_exp(const GradientSite& s) { return {multiply(s.gradient, s.result)}; }
Gradients grad_log(const GradientSite& s) { return {divide(s.gradient, s.arg(0))}; }
Gradients grad_sqrt(const GradientSite& s) { return {divide(s.gradient, multiply(scalar(2, s), s.result))}; }
Gradients grad_rsqrt(const GradientSite& s) {
  return {multiply(scalar(-0.5, s), multiply(s.gradient, divide(s.result, s.arg(0))))};
}
Gradients grad_tanh(const GradientSite& s) {
  return {multiply(s.gradient, subtract(scalar(1, s), multiply(s.result, s.result)))};
}
Gradients grad_sigmoid(const GradientSite& s) {
  return {multiply(s.gradient, multiply(s.result, subtract(scalar(1, s), s.result)))};
}
Gradients grad_sin(const GradientSite& s) { return {multiply(s.gradient, unary("cos", s.arg(0)))}; }
Gradients grad_cos(const GradientSite& s) { return {negative(multiply(s.gradient, unary("sin", s.arg(0))))}; }
// erf' = 2 / sqrt(pi) * exp(-x^2)
Gradients grad_erf(const GradientSite& s) {
  const Expr bell = unary("exp", negative(multiply(s.arg(0), s.arg(0))));
  return {multiply(s.gradient, multiply(scalar(2 * std::numbers::inv_sqrtpi, s), bell))};
}
Gradients grad_abs(const GradientSite& s) { return {multiply(s.gradient, unary("sign", s.arg(0)))}; }
Gradients grad_relu(const GradientSite& s) { return {masked(ops::binary("greater", s.arg(0), scalar(0, s)), s)}; }
Gradients grad_leaky_relu(const GradientSite& s) {
  const Expr slope = scalar(s.call.attrs_as<ops::LeakyReluAttrs>().alpha, s);
  const Expr is_positive = ops::binary("greater", s.arg(0), scalar(0, s));
  return {ops::where(is_positive, s.gradient, multiply(s.gradient, slope))};
}
Gradients grad_clip(const GradientSite& s) {
  const auto& attrs = s.call.attrs_as<ops::ClipAttrs>();
  const Expr above = ops::binary("greater_equal", s.arg(0), scalar(attrs.a_min, s));
  const Expr below = ops::binary("less_equal", s.arg(0), scalar(attrs.a_max, s));
  return {masked(ops::binary("logical_and", above, below), s)};
}
Gradients grad_copy(const GradientSite& s) { return {s.gradient}; }
Gradients grad_cast(const GradientSite& s) {
  const DataType from = dtype_of(s.arg(0));
  return {from.is_float() ? ops::cast(s.gradient, from) : Expr()};
}
// Steps have no slope.
Gradients grad_step(const GradientSite& s) { return {zeros_like(s.arg(0))}; }

// y = softmax(x): y * (g - sum(g * y))
Gradients grad_softmax(const GradientSite& s) {
  const Shape axis{s.call.attrs_as<ops::SoftmaxAttrs>().axis};
  const Expr mean = ops::reduce("sum", multiply(s.gradient, s.result), axis, true);
  return {multiply(s.result, subtract(s.gradient, mean))};
}
// y = log_softmax(x): g - exp(y) * sum(g)
Gradients grad_log_softmax(const GradientSite& s) {
  const Shape axis{s.call.attrs_as<ops::SoftmaxAttrs>().axis};
  return {subtract(s.gradient, multiply(unary("exp", s.result), ops::reduce("sum", s.gradient, axis, true)))};
}

// Ops that only move elements.
Gradients grad_view(const GradientSite& s) {
  const Shape shape = s.arg_shape(0);
  Gradients gradients(s.call.args.size());
  gradients[0] = ops::reshape(s.gradient, shape, num_elements(shape) == 0);
  return gradients;
}
Gradients grad_transpose(const GradientSite& s) {
  const Shape& axes = s.call.attrs_as<ops::TransposeAttrs>().axes;
  Shape back(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) back[ops::normal_axis(axes[i], axes.size())] = static_cast<int64_t>(i);
  return {ops::transpose(s.gradient, back)};
}
Gradients grad_broadcast_to(const GradientSite& s) {
  Gradients gradients(s.call.args.size());
  gradients[0] = summed_to(s.gradient, s.shape(), s.arg_shape(0));
  return gradients;
}
Gradients grad_reverse(const GradientSite& s) {
  return {ops::reverse(s.gradient, s.call.attrs_as<ops::ReverseAttrs>().axis)};
}
Gradients grad_concatenate(const GradientSite& s) {
  const auto* tuple = s.arg(0).as<relay::TupleNode>();
  if (tuple == nullptr) throw_at(s.call.span, "concatenate", "concatenate: no gradient for a tuple that is a value");
  const size_t axis = ops::normal_axis(s.call.attrs_as<ops::ConcatenateAttrs>().axis, s.shape().size());
  Array<Expr> parts;
  int64_t begin = 0;
  for (const Expr& item : tuple->items) {
    const int64_t end = begin + static_shape_of(item)[axis];
    parts.push_back(ops::strided_slice(s.gradient, Shape{begin}, Shape{end}, Shape{1}, {static_cast<int64_t>(axis)}));
    begin = end;
  }
  return {relay::make_tuple(parts)};
}
Gradients grad_split(const GradientSite& s) {
  return {ops::concatenate(s.gradient.as<relay::TupleNode>()->items, s.call.attrs_as<ops::SplitAttrs>().axis)};
}
Gradients grad_pad(const GradientSite& s) {
  const auto& attrs = s.call.attrs_as<ops::PadAttrs>();
  if (attrs.pad_mode != "constant" || s.call.args.size() != 2)
    throw_at(s.call.span, "nn.pad", "nn.pad: only constant padding by attributes has a gradient");
  const Shape shape = s.arg_shape(0);
  Shape begin, end;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (attrs.pad_width[i][0] < 0 || attrs.pad_width[i][1] < 0)
      throw_at(s.call.span, "nn.pad", "nn.pad: a width that cuts has no gradient");
    begin.push_back(attrs.pad_width[i][0]);
    end.push_back(attrs.pad_width[i][0] + shape[i]);
  }
  return {ops::strided_slice(s.gradient, begin, end), Expr()};
}
// Zeros between and around what was taken.
Gradients grad_strided_slice(const GradientSite& s) {
  const auto& attrs = s.call.attrs_as<ops::StridedSliceAttrs>();
  const Shape shape = s.arg_shape(0), taken = s.shape();
  const bool is_dense = std::all_of(attrs.strides.begin(), attrs.strides.end(), [](int64_t v) { return v == 1; });
  if (!is_dense || s.call.args.size() != 1 || attrs.slice_mode != "end")
    throw_at(s.call.span, "strided_slice", "strided_slice: only slices without gaps, by attributes, have a gradient");
  Array<Shape> widths;
  for (size_t i = 0; i < shape.size(); ++i) widths.push_back({0, shape[i] - taken[i]});
  for (size_t i = 0; i < attrs.begin.size(); ++i) {
    const size_t axis = attrs.axes.empty() ? i : ops::normal_axis(attrs.axes[i], shape.size());
    const int64_t from = attrs.begin[i] < 0 ? attrs.begin[i] + shape[axis] : attrs.begin[i];
    const int64_t begin = std::clamp<int64_t>(from, 0, shape[axis] - taken[axis]);
    widths.set(axis, {begin, shape[axis] - taken[axis] - begin});
  }
  return {ops::pad(s.gradient, widths, scalar(0, s))};
}

// Reductions: the reduced axes as axes of one element, then broadcast.
std::vector<bool> reduced_axes(const GradientSite& s) {
  const auto& attrs = s.call.attrs_as<ops::ReduceAttrs>();
  const size_t rank = s.arg_shape(0).size();
  std::vector<bool> reduced(rank, !attrs.axis.has_value());
  if (attrs.axis) {
    for (const int64_t axis : *attrs.axis) reduced[ops::normal_axis(axis, rank)] = true;
    if (attrs.exclude) reduced.flip();
  }
  return reduced;
}
Expr spread(const Expr& reduced, const GradientSite& s) {
  const Shape shape = s.arg_shape(0);
  const std::vector<bool> axes = reduced_axes(s);
  Shape kept = shape;
  for (size_t i = 0; i < shape.size(); ++i) kept[i] = axes[i] ? 1 : shape[i];
  return ops::broadcast_to(ops::reshape(reduced, kept, num_elements(kept) == 0), shape);
}
Gradients grad_sum(const GradientSite& s) { return {spread(s.gradient, s)}; }
Gradients grad_mean(const GradientSite& s) {
  const auto count = static_cast<double>(num_elements(s.arg_shape(0))) /
                     static_cast<double>(std::max<int64_t>(1, num_elements(s.shape())));
  return {divide(spread(s.gradient, s), scalar(count, s))};
}
// To the greatest (least) element; where there are several, to all in equal parts.
Gradients grad_extreme(const GradientSite& s) {
  const Expr is_it = ops::cast(ops::binary("equal", s.arg(0), spread(s.result, s)), dtype_of(s.result));
  const auto* attrs = s.call.attrs.as<ops::ReduceAttrs>();
  const Expr count = ops::reduce("sum", is_it, attrs->axis, attrs->keepdims, attrs->exclude);
  return {multiply(is_it, spread(divide(s.gradient, count), s))};
}

// Products of matrices.
Expr turned(const Expr& matrix) { return ops::transpose(matrix, {1, 0}); }
Gradients grad_dense(const GradientSite& s) {
  const Shape data = s.arg_shape(0), weight = s.arg_shape(1);
  const int64_t rows = num_elements(data) / std::max<int64_t>(1, data.back());
  const Expr g = ops::reshape(s.gradient, {rows, weight[0]}), x = ops::reshape(s.arg(0), {rows, weight[1]});
  return {ops::reshape(ops::matmul(g, s.arg(1)), data), ops::matmul(turned(g), x)};
}
// The last two dimensions change places.
Expr with_turned_rows(const Expr& tensor, size_t rank) {
  Shape axes;
  for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  std::swap(axes[rank - 2], axes[rank - 1]);
  return ops::transpose(tensor, axes);
}
// `a` has any batch dimensions, b is a matrix: the rows of all batches are those of one matrix.
Gradients grad_matmul(const GradientSite& s) {
  const auto& attrs = s.call.attrs_as<ops::MatmulAttrs>();
  Shape data = s.arg_shape(0);
  const size_t rank = data.size();
  if (attrs.transpose_a) std::swap(data[rank - 2], data[rank - 1]);
  const Expr rows_of_a = attrs.transpose_a ? with_turned_rows(s.arg(0), rank) : s.arg(0);
  const Expr b = attrs.transpose_b ? turned(s.arg(1)) : s.arg(1);
  const int64_t rows = num_elements(Shape(data.begin(), data.end() - 1));
  const Expr a = ops::reshape(rows_of_a, {rows, data.back()}, true);
  const Expr g = ops::reshape(s.gradient, {rows, s.shape().back()}, true);
  const Expr by_rows = ops::reshape(ops::matmul(g, turned(b)), data, true), by_b = ops::matmul(turned(a), g);
  return {attrs.transpose_a ? with_turned_rows(by_rows, rank) : by_rows, attrs.transpose_b ? turned(by_b) : by_b};
}
Gradients grad_batch_matmul(const GradientSite& s) {
  const auto& attrs = s.call.attrs_as<ops::BatchMatmulAttrs>();
  const auto flip = [](const Expr& e) { return ops::transpose(e, {0, 2, 1}); };
  const auto product = [](const Expr& a, const Expr& b) {
    ops::BatchMatmulAttrs plain;
    plain.transpose_b = false;
    return ops::batch_matmul(a, b, plain);
  };
  if (s.arg_shape(0)[0] != s.arg_shape(1)[0])
    throw_at(s.call.span, "nn.batch_matmul", "nn.batch_matmul: no gradient where one batch is broadcast");
  const Expr a = attrs.transpose_a ? flip(s.arg(0)) : s.arg(0), b = attrs.transpose_b ? flip(s.arg(1)) : s.arg(1);
  const Expr by_a = product(s.gradient, flip(b)), by_b = product(flip(a), s.gradient);
  return {attrs.transpose_a ? flip(by_a) : by_a, attrs.transpose_b ? flip(by_b) : by_b};
}

// The dimensions of a tensor of a convolution by their letters.
std::vector<int64_t> sizes_by_letters(const GradientSite& s, const Shape& shape, const std::string& layout,
                                      const std::string& letters) {
  if (layout.size() != letters.size())
    throw_at(s.call.span, "nn.conv2d",
             fmt::format("nn.conv2d: there is no gradient in layout {}, which has axes in parts; see ConvertLayout",
                         layout));
  return ops::from_layout(shape, ops::axes_of(layout, letters));
}

// The data's is the transposed convolution, which takes as inputs the channels of the weight that were outputs.
Gradients grad_conv2d(const GradientSite& s) {
  const ops::ConvForm form = ops::conv_form(s.call.attrs_as<ops::Conv2DAttrs>());
  const auto data = sizes_by_letters(s, s.arg_shape(0), form.data_layout, form.letters),
             weight = sizes_by_letters(s, s.arg_shape(1), form.kernel_layout, form.kernel_letters),
             out = sizes_by_letters(s, s.shape(), form.out_layout, form.letters);
  const ops::Window window = ops::window_of(2, form.strides, form.padding, form.dilation);
  ops::Conv2DTransposeAttrs back;
  back.strides = window.strides;
  back.dilation = window.dilation;
  back.padding = {window.pad_begin[0], window.pad_begin[1], window.pad_end[0], window.pad_end[1]};
  for (size_t i = 0; i < 2; ++i) {
    const int64_t reach = (weight[2 + i] - 1) * window.dilation[i] + 1;
    const int64_t least = (out[2 + i] - 1) * window.strides[i] - window.pad_begin[i] - window.pad_end[i] + reach;
    back.output_padding[i] = data[2 + i] - least;
  }
  back.groups = form.groups;
  back.data_layout = form.out_layout;
  back.kernel_layout = form.kernel_layout;
  std::swap(back.kernel_layout[form.kernel_layout.find('O')], back.kernel_layout[form.kernel_layout.find('I')]);
  back.out_layout = form.data_layout;
  ops::Conv2DBackwardWeightAttrs across;
  across.strides = window.strides;
  across.dilation = window.dilation;
  across.padding = back.padding;
  across.groups = form.groups;
  across.kernel_size = Shape{weight[2], weight[3]};
  across.out_layout = form.out_layout;
  across.data_layout = form.data_layout;
  across.kernel_layout = form.kernel_layout;
  return {ops::conv2d_transpose(s.gradient, s.arg(1), back), ops::conv2d_backward_weight(s.gradient, s.arg(0), across)};
}
Gradients grad_pool2d(const GradientSite& s) {
  return {relay::make_call(s.call.as_op()->name + "_grad", {s.gradient, s.arg(0)}, s.call.attrs)};
}
Gradients grad_global_avg_pool2d(const GradientSite& s) {
  const Shape shape = s.arg_shape(0);
  const auto count =
      static_cast<double>(num_elements(shape)) / static_cast<double>(std::max<int64_t>(1, num_elements(s.shape())));
  return {divide(ops::broadcast_to(s.gradient, shape), scalar(count, s))};
}

struct Row {
  std::string_view op;
  Gradients (*rule)(const GradientSite& site);
};
constexpr Row kRules[] = {
    {"abs", grad_abs},
    {"add", grad_add},
    {"broadcast_to", grad_broadcast_to},
    {"cast", grad_cast},
    {"ceil", grad_step},
    {"clip", grad_clip},
    {"concatenate", grad_concatenate},
    {"copy", grad_copy},
    {"annotation.stop_fusion", grad_copy},
    {"annotation.checkpoint", grad_copy},
    {"cos", grad_cos},
    {"divide", grad_divide},
    {"erf", grad_erf},
    {"exp", grad_exp},
    {"expand_dims", grad_view},
    {"floor", grad_step},
    {"log", grad_log},
    {"max", grad_extreme},
    {"maximum", grad_extremum},
    {"mean", grad_mean},
    {"min", grad_extreme},
    {"minimum", grad_extremum},
    {"multiply", grad_multiply},
    {"negative", grad_negative},
    {"nn.batch_flatten", grad_view},
    {"nn.batch_matmul", grad_batch_matmul},
    {"nn.bias_add", grad_bias_add},
    {"nn.avg_pool2d", grad_pool2d},
    {"nn.conv2d", grad_conv2d},
    {"nn.dense", grad_dense},
    {"nn.global_avg_pool2d", grad_global_avg_pool2d},
    {"nn.max_pool2d", grad_pool2d},
    {"nn.leaky_relu", grad_leaky_relu},
    {"nn.log_softmax", grad_log_softmax},
    {"nn.matmul", grad_matmul},
    {"nn.pad", grad_pad},
    {"nn.relu", grad_relu},
    {"nn.softmax", grad_softmax},
    {"power", grad_power},
    {"reshape", grad_view},
    {"reverse", grad_reverse},
    {"round", grad_step},
    {"rsqrt", grad_rsqrt},
    {"sigmoid", grad_sigmoid},
    {"sign", grad_step},
    {"sin", grad_sin},
    {"split", grad_split},
    {"sqrt", grad_sqrt},
    {"squeeze", grad_view},
    {"strided_slice", grad_strided_slice},
    {"subtract", grad_subtract},
    {"sum", grad_sum},
    {"tanh", grad_tanh},
    {"transpose", grad_transpose},
    {"trunc", grad_step},
    {"where", grad_where},
};

// An item is null for an argument without a gradient, and a tuple of as many items for a tuple literal.
bool fits(const Value& gradient, const Expr& arg) {
  if (gradient.is_none()) return true;
  if (!gradient.is<Expr>()) return false;
  const auto* tuple = arg.as<relay::TupleNode>();
  if (tuple == nullptr) return true;
  const auto* items = gradient.as<Expr>().as<relay::TupleNode>();
  return items != nullptr && items->items.size() == tuple->items.size();
}

Gradients user_gradients(const GradientSite& site, const Value& rule) {
  const OpNode& op = *site.call.as_op();
  if (!rule.is<PackedFunc>())
    throw_user_error("the attribute '{}' of op '{}' is no function but {}", kGradientAttr, op.name, repr(rule));
  const Value given = rule.as<PackedFunc>()(site.result, site.gradient);
  const bool is_list = given.is<Array<Value>>() && given.as<Array<Value>>().size() == site.call.args.size();
  Gradients gradients;
  for (size_t i = 0; is_list && i < site.call.args.size(); ++i) {
    const Value& gradient = given.as<Array<Value>>()[i];
    if (fits(gradient, site.arg(i))) gradients.push_back(gradient.is_none() ? Expr() : gradient.as<Expr>());
  }
  if (gradients.size() != site.call.args.size())
    throw_at(
        site.call.span, op.name,
        fmt::format("its {} gives {}; it gives a list of {}: for each argument an expression (a tuple for a tuple), "
                    "or None",
                    kGradientAttr, repr(given), site.call.args.size()));
  return gradients;
}

}  // namespace

Shape static_shape_of(const Expr& expr) {
  const auto* tensor = expr->checked_type().as<TensorTypeNode>();
  const auto shape = tensor == nullptr ? std::nullopt : as_shape(tensor->shape);
  if (!shape)
    throw_at(expr->span, "gradient",
             fmt::format("a gradient needs tensors of static shape, got {}", to_string(expr->checked_type())));
  return *shape;
}

Shape GradientSite::arg_shape(size_t i) const { return static_shape_of(call.args[i]); }
Shape GradientSite::shape() const { return static_shape_of(result); }

bool has_user_gradient(const OpNode& op) {
  const Value* rule = op.find(OpKey<Value>{kGradientAttr});
  return rule != nullptr && !rule->is_none();
}

std::vector<Expr> gradients_of(const GradientSite& site) {
  const OpNode& op = *site.call.as_op();
  if (has_user_gradient(op)) return user_gradients(site, *op.find(OpKey<Value>{kGradientAttr}));
  const auto* row = std::find_if(std::begin(kRules), std::end(kRules), [&](const Row& r) { return r.op == op.name; });
  if (row == std::end(kRules)) throw_at(site.call.span, op.name, fmt::format("{}: the op has no gradient", op.name));
  Gradients gradients = row->rule(site);
  HEADRACE_CHECK(gradients.size() == site.call.args.size(), "the rule of {} gives {} gradients", op.name,
                 gradients.size());
  return gradients;
}

}  // namespace headrace::passes
