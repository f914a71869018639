#include "passes/nn/fold_explicit_padding.h"

#include <cmath>

#include "ops/attrs_copy.h"
#include "ops/loops/window.h"
#include "ops/nn/conv.h"
#include "ops/nn/pad.h"
#include "ops/nn/pool.h"
#include "ops/op_handles.h"
#include "passes/rewrite/for_each_function.h"
#include "relay/function_attrs.h"
#include "relay/match.h"
#include "relay/visit.h"

namespace headrace::passes {

using relay::CallNode;
using relay::ConstantNode;

namespace {

// Constant padding of the spatial axes: all begins, then all ends.
struct Padding {
  Expr data;
  double value = 0;
  Shape widths;
};

// Returns the spatial axes, in the order that `padding` uses in every layout.
std::vector<size_t> spatial_axes(std::string_view layout) {
  std::vector<size_t> axes;
  for (const char letter : std::string_view("DHW")) {
    if (const size_t at = layout.find(letter); at != std::string_view::npos) axes.push_back(at);
  }
  return axes;
}

std::optional<Padding> read_padding(const Expr& expr, std::string_view layout) {
  const auto* call = relay::call_of(expr, op::kPad);
  if (call == nullptr) return std::nullopt;
  const auto& attrs = call->attrs_as<ops::PadAttrs>();
  const auto* value = call->args.back().as<ConstantNode>();
  const bool is_plain = std::all_of(layout.begin(), layout.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  if (call->args.size() != 2 || value == nullptr || value->data.num_elements() != 1 || !is_plain ||
      attrs.pad_mode != "constant" || attrs.pad_width.size() != layout.size())
    return std::nullopt;
  const std::vector<size_t> axes = spatial_axes(layout);
  for (size_t i = 0; i < layout.size(); ++i) {
    const Shape& width = attrs.pad_width[i];
    const bool is_spatial = std::find(axes.begin(), axes.end(), i) != axes.end();
    if (width.size() != 2 || width[0] < 0 || width[1] < 0) return std::nullopt;
    if (!is_spatial && (width[0] != 0 || width[1] != 0)) return std::nullopt;
  }
  Padding padding{call->args[0], element_as_double(value->data.to_dense().tensor(), 0), {}};
  for (const size_t side : {size_t{0}, size_t{1}}) {
    for (const size_t axis : axes) padding.widths.push_back(attrs.pad_width[axis][side]);
  }
  return padding;
}

// Adds both paddings, the inner one first.
Shape sum_of(const Shape& widths, const Shape& own) {
  const size_t rank = widths.size() / 2;
  const ops::Window window = ops::window_of(rank, {1}, own, {1});
  Shape sum = widths;
  for (size_t i = 0; i < rank; ++i) {
    sum[i] += window.pad_begin[i];
    sum[rank + i] += window.pad_end[i];
  }
  return sum;
}

Expr with_padding(const CallNode& call, const Padding& padding, Attrs attrs) {
  return copy_with(call, [&](CallNode& copy) {
    copy.args.set(0, padding.data);
    copy.attrs = std::move(attrs);
  });
}

Expr fold_into_conv(const CallNode& call, const ops::ConvAttrs& attrs) {
  const auto padding = read_padding(call.args[0], attrs.data_layout);
  if (!padding || padding->value != 0 || padding->widths.size() != 2 * attrs.spatial) return {};
  return with_padding(call, *padding, ops::copy_of_own_type(attrs, [&](ops::ConvAttrs& folded) {
                        folded.padding = sum_of(padding->widths, attrs.padding);
                      }));
}

// Returns whether no window lies in the padding alone.
bool windows_meet_data(const ops::PoolForm& form, const Shape& padding) {
  for (size_t i = 0; i < padding.size(); ++i) {
    const size_t axis = i % form.spatial();
    if (padding[i] > (form.taps[axis] - 1) * form.window.dilation[axis]) return false;
  }
  return true;
}

Expr fold_into_pool(const CallNode& call, const ops::PoolAttrs& attrs, bool is_max) {
  const auto padding = read_padding(call.args[0], attrs.layout);
  if (!padding || attrs.ceil_mode || attrs.spatial * 2 != padding->widths.size()) return {};
  const bool is_neutral = is_max ? std::isinf(padding->value) && padding->value < 0 : padding->value == 0;
  const Shape sum = sum_of(padding->widths, attrs.padding);
  if (!is_neutral || !windows_meet_data(ops::pool_form(attrs), sum)) return {};
  const bool pads = std::any_of(attrs.padding.begin(), attrs.padding.end(), [](int64_t p) { return p != 0; });
  if (!is_max && pads && !attrs.count_include_pad) return {};
  return with_padding(call, *padding, ops::copy_of_own_type(attrs, [&](ops::PoolAttrs& folded) {
                        folded.padding = sum;
                        folded.count_include_pad = !is_max;
                      }));
}

// Asks for the ops themselves, because gradients and transposes have the attributes of pools and convolutions, too.
Expr fold(const CallNode& call) {
  if (relay::is_call_of_any(call, {&op::kConv1D, &op::kConv2D, &op::kConv3D}))
    return fold_into_conv(call, call.attrs_as<ops::ConvAttrs>());
  const bool is_max = relay::is_call_of_any(call, {&op::kMaxPool1D, &op::kMaxPool2D, &op::kMaxPool3D});
  if (is_max || relay::is_call_of_any(call, {&op::kAvgPool1D, &op::kAvgPool2D, &op::kAvgPool3D}))
    return fold_into_pool(call, call.attrs_as<ops::PoolAttrs>(), is_max);
  return {};
}

}  // namespace

IRModule fold_explicit_padding(const IRModule& module) {
  return rewrite_bodies(module, [](const Expr& body) {
    return relay::rewrite_post_order(body, relay::is_entered, [](const Expr&, const Expr& after) {
      const auto* call = after.as<CallNode>();
      const Expr folded = call == nullptr ? Expr() : fold(*call);
      return folded ? folded : after;
    });
  });
}

}  // namespace headrace::passes
