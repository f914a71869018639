#include "passes/nn/flatten_atrous_conv.h"

#include "ops/attrs_copy.h"
#include "ops/nn/conv.h"
#include "ops/op_handles.h"
#include "ops/tensor/blocks.h"
#include "passes/rewrite/for_each_function.h"
#include "relay/function_attrs.h"
#include "relay/match.h"
#include "relay/visit.h"

namespace headrace::passes {

using relay::CallNode;

namespace {

// Blocks along the spatial axes, in the order D, H, W, with the padding before and after each.
struct SpatialBlocks {
  Shape block, before, after;
};

// Reads blocks of the axes after the first; nothing where another axis than a spatial one is changed. `edges`: what is
// padded or cropped along each.
std::optional<SpatialBlocks> read_blocks(std::string_view layout, const Shape& block, const Array<Shape>& edges) {
  if (block.size() + 1 > layout.size() || edges.size() != block.size() || layout[0] != 'N') return std::nullopt;
  SpatialBlocks blocks;
  const std::string_view spatial = "DHW";
  for (const char letter : spatial) {
    const size_t axis = layout.find(letter);
    if (axis == std::string_view::npos) continue;
    const bool is_named = axis <= block.size();
    blocks.block.push_back(is_named ? block[axis - 1] : 1);
    blocks.before.push_back(is_named ? edges[axis - 1].at(0) : 0);
    blocks.after.push_back(is_named ? edges[axis - 1].at(1) : 0);
  }
  for (size_t i = 0; i < block.size(); ++i) {
    if (spatial.find(layout[i + 1]) != std::string_view::npos) continue;
    if (block[i] != 1 || edges[i].at(0) != 0 || edges[i].at(1) != 0) return std::nullopt;
  }
  return blocks;
}

// The convolution moves by one element, over data with a letter for each axis, and gives its layout.
bool is_plain(const ops::ConvAttrs& attrs) {
  const std::string& layout = attrs.data_layout;
  return layout.size() == attrs.spatial + 2 && (attrs.out_layout.empty() || attrs.out_layout == layout) &&
         std::all_of(attrs.strides.begin(), attrs.strides.end(), [](int64_t s) { return s == 1; });
}

// Sets dilation and padding to those of the convolution over the whole space; false where that would have to crop.
bool flatten(ops::ConvAttrs& attrs, const SpatialBlocks& in, const SpatialBlocks& out) {
  const size_t rank = attrs.spatial;
  const ops::Window window = ops::window_of(rank, attrs.strides, attrs.padding, attrs.dilation);
  attrs.dilation = window.dilation;
  attrs.padding = Shape(2 * rank, 0);
  for (size_t i = 0; i < rank; ++i) {
    attrs.dilation[i] *= in.block[i];
    attrs.padding[i] = in.before[i] + in.block[i] * window.pad_begin[i] - out.before[i];
    attrs.padding[rank + i] = in.after[i] + in.block[i] * window.pad_end[i] - out.after[i];
  }
  return std::all_of(attrs.padding.begin(), attrs.padding.end(), [](int64_t p) { return p >= 0; });
}

Expr flattened(const CallNode& end) {
  if (!relay::is_call(end, op::kBatchToSpaceNd)) return {};
  const auto* conv = relay::op_call(end.args[0]);
  if (conv == nullptr || !relay::is_call_of_any(*conv, {&op::kConv1D, &op::kConv2D, &op::kConv3D})) return {};
  const auto* start = relay::call_of(conv->args[0], op::kSpaceToBatchNd);
  const auto& attrs = conv->attrs_as<ops::ConvAttrs>();
  if (start == nullptr || !is_plain(attrs)) return {};
  const auto& split = start->attrs_as<ops::SpaceToBatchNDAttrs>();
  const auto& joined = end.attrs_as<ops::BatchToSpaceNDAttrs>();
  const auto in = read_blocks(attrs.data_layout, split.block_shape, split.paddings);
  const auto out = read_blocks(attrs.data_layout, joined.block_shape, joined.crops);
  if (!in || !out || in->block != out->block || split.pad_value != 0) return {};
  bool is_padded = false;
  const Attrs whole = ops::copy_of_own_type(attrs, [&](ops::ConvAttrs& copy) { is_padded = flatten(copy, *in, *out); });
  if (!is_padded) return {};
  return copy_with(*conv, [&](CallNode& call) {
    call.args.set(0, start->args[0]);
    call.attrs = whole;
    call.span = end.span;
  });
}

}  // namespace

IRModule flatten_atrous_conv(const IRModule& module) {
  return rewrite_bodies(module, [](const Expr& body) {
    return relay::rewrite_post_order(body, relay::is_entered, [](const Expr&, const Expr& after) {
      const auto* call = after.as<CallNode>();
      const Expr whole = call == nullptr ? Expr() : flattened(*call);
      return whole ? whole : after;
    });
  });
}

}  // namespace headrace::passes
