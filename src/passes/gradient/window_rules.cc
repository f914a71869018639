// Gradients of pools, and of resampling.
#include "ops/image/image.h"
#include "ops/loops/window.h"
#include "ops/nn/adaptive_pool.h"
#include "ops/nn/matmul.h"
#include "ops/nn/pool.h"
#include "ops/op_handles.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/mask.h"
#include "ops/tensor/rearrange.h"
#include "ops/tensor/reduce.h"
#include "ops/tensor/repeat.h"
#include "ops/tensor/shape.h"
#include "passes/gradient/rule_tools.h"

namespace headrace::passes::gradient_rules {

namespace {

Gradients grad_pool2d(const GradientSite& s) {
  const OpHandle& grad = relay::is_call(s.call, op::kMaxPool2D) ? op::kMaxPool2DGrad : op::kAvgPool2DGrad;
  return {relay::make_call(grad, {s.gradient, s.arg(0)}, s.call.attrs)};
}
// Treats a pool over one axis W as one over H W, where H has one element.
template <typename PlaneAttrs>
Gradients grad_pool1d(const GradientSite& s) {
  const auto& attrs = s.call.attrs_as<ops::PoolAttrs>();
  const std::string out_layout(ops::layout_or(attrs.out_layout, attrs.layout));
  if (attrs.layout.size() != 3 || out_layout.size() != 3)
    refuse(s, fmt::format("no gradient in layout {}, which has axes in parts; see ConvertLayout", attrs.layout));
  const auto with_height = [](std::string layout) { return layout.insert(layout.find('W'), "H"); };
  const auto plane = [](const Expr& line, const std::string& layout) {
    return ops::expand_dims(line, static_cast<int64_t>(layout.find('W')));
  };
  const ops::PoolForm form = ops::pool_form(attrs);
  const ops::Window& window = form.window;
  auto flat = make_object<PlaneAttrs>();
  flat->pool_size = Shape{1, form.taps[0]};
  flat->strides = Shape{1, window.strides[0]};
  flat->dilation = Shape{1, window.dilation[0]};
  flat->padding = Shape{0, window.pad_begin[0], 0, window.pad_end[0]};
  flat->layout = with_height(attrs.layout);
  flat->out_layout = with_height(out_layout);
  flat->ceil_mode = attrs.ceil_mode;
  flat->count_include_pad = attrs.count_include_pad;
  const bool is_max = relay::is_call(s.call, op::kMaxPool1D);
  const Expr by_plane = relay::make_call(is_max ? op::kMaxPool2DGrad : op::kAvgPool2DGrad,
                                         {plane(s.gradient, out_layout), plane(s.arg(0), attrs.layout)}, Attrs(flat));
  return {ops::squeeze(by_plane, Shape{static_cast<int64_t>(attrs.layout.find('W'))})};
}
// The gradient of an average pool is linear in the incoming gradient, and its own gradient is an average pool.
Gradients grad_avg_pool2d_grad(const GradientSite& s) {
  return {relay::make_call(op::kAvgPool2D, {s.gradient}, s.call.attrs), zeros_as(s.arg(1))};
}

// Converts a tensor from the result's layout to that of the data.
Expr in_data_layout(const Expr& tensor, const ops::GlobalPool2DAttrs& attrs) {
  if (attrs.out_layout.empty() || attrs.out_layout == attrs.layout) return tensor;
  return ops::layout_transform(tensor, attrs.out_layout, attrs.layout);
}
Gradients grad_global_avg_pool2d(const GradientSite& s) {
  const Expr g = in_data_layout(s.gradient, s.call.attrs_as<ops::GlobalPool2DAttrs>());
  return {ops::divide(broadcast_as(g, s.arg(0)), elements_each(s.arg(0), s.result, s))};
}
// The gradient goes to the greatest element of the plane; among several, to all in equal parts.
Gradients grad_global_max_pool2d(const GradientSite& s) {
  const auto& attrs = s.call.attrs_as<ops::GlobalPool2DAttrs>();
  const Shape plane{static_cast<int64_t>(attrs.layout.find('H')), static_cast<int64_t>(attrs.layout.find('W'))};
  if (attrs.layout.size() != 4)
    refuse(s, fmt::format("no gradient in layout {}, which has axes in parts; see ConvertLayout", attrs.layout));
  const Expr greatest = in_data_layout(s.result, attrs);
  const Expr is_it = ops::cast(ops::binary(op::kEqual, s.arg(0), greatest), tensor_of(s.result).dtype);
  const Expr each = ops::divide(in_data_layout(s.gradient, attrs), ops::reduce(op::kSum, is_it, plane, true));
  return {ops::multiply(is_it, each)};
}

// Gradients of linear ops that treat axes separately, as resampling and average pools do. Along an axis from n to m
// elements such an op is a matrix [n, m], which is the op of one axis applied to the unit vectors.
template <typename OpOfOneAxis>
Expr back_along(const GradientSite& s, const std::vector<size_t>& axes, const OpOfOneAxis& op) {
  const size_t rank = tensor_of(s.arg(0)).shape.size();
  const DataType dtype = tensor_of(s.arg(0)).dtype;
  const auto number = [&](double value) { return relay::make_scalar(value, dtype); };
  Expr g = operand_gradient(s);
  for (const size_t axis : axes) {
    const int64_t n = static_dim_of(s.arg(0), axis), m = static_dim_of(s.result, axis);
    const Expr units = ops::one_hot(counted(n), number(1), number(0), n, -1, dtype);
    const Expr matrix = ops::reshape(op(ops::expand_dims(units, 0), m), {n, m});
    ops::MatmulAttrs attrs;
    attrs.transpose_b = true;
    g = ops::matmul(ordered(g, moved_axis(rank, axis, rank - 1)), matrix, attrs);
    g = ordered(g, moved_axis(rank, rank - 1, axis));
  }
  return g;
}
Expr resample_back(const GradientSite& s, const ops::Resize2DAttrs& attrs) {
  return back_along(s, ops::resized_axes(attrs, tensor_of(s.arg(0)).shape.size()),
                    [&](const Expr& units, int64_t size) {
                      auto along = make_object<ops::Resize2DAttrs>(attrs);
                      along->size = Shape{size};
                      along->roi = {};
                      along->layout = "NCW";
                      along->out_dtype.reset();
                      return relay::make_call(op::kImageResize1D, {units}, Attrs(along));
                    });
}
Gradients grad_resize(const GradientSite& s) {
  if (!tensor_of(s.arg(0)).dtype.is_float()) return Gradients(s.call.args.size());
  Gradients gradients(s.call.args.size());
  gradients[0] = resample_back(s, s.call.attrs_as<ops::Resize2DAttrs>());
  return gradients;
}
template <typename UpsamplingAttrs>
Gradients grad_upsampling(const GradientSite& s) {
  return {resample_back(s, ops::resize_attrs(s.call.attrs_as<UpsamplingAttrs>()))};
}
Gradients grad_adaptive_avg_pool(const GradientSite& s) {
  const auto& attrs = s.call.attrs_as<ops::AdaptivePoolAttrs>();
  const std::string_view letters = ops::letters_of(attrs.spatial);
  if (!attrs.out_layout.empty() && attrs.out_layout != attrs.layout)
    refuse(s, fmt::format("no gradient from layout {} to {}", attrs.layout, attrs.out_layout));
  const std::vector<size_t> axes = ops::axes_of(attrs.layout, letters.substr(2));
  return {back_along(s, axes, [](const Expr& units, int64_t size) {
    return ops::call_with<ops::AdaptivePool1DAttrs>(op::kAdaptiveAvgPool1D, {units}, {},
                                                    [&](auto& along) { along.output_size = Shape{size}; });
  })};
}

constexpr GradientRow kWindowRows[] = {
    {op::kImageResize1D, grad_resize},
    {op::kImageResize2D, grad_resize},
    {op::kImageResize3D, grad_resize},
    {op::kAdaptiveAvgPool1D, grad_adaptive_avg_pool},
    {op::kAdaptiveAvgPool2D, grad_adaptive_avg_pool},
    {op::kAdaptiveAvgPool3D, grad_adaptive_avg_pool},
    {op::kAvgPool1D, grad_pool1d<ops::AvgPool2DAttrs>},
    {op::kAvgPool2D, grad_pool2d},
    {op::kAvgPool2DGrad, grad_avg_pool2d_grad},
    {op::kGlobalAvgPool2D, grad_global_avg_pool2d},
    {op::kGlobalMaxPool2D, grad_global_max_pool2d},
    {op::kMaxPool1D, grad_pool1d<ops::MaxPool2DAttrs>},
    {op::kMaxPool2D, grad_pool2d},
    {op::kUpsampling, grad_upsampling<ops::UpSamplingAttrs>},
    {op::kUpsampling3D, grad_upsampling<ops::UpSampling3DAttrs>},
};

}  // namespace

std::span<const GradientRow> window_gradients() { return kWindowRows; }

}  // namespace headrace::passes::gradient_rules
