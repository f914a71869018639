// Gradients of ops that give the elements another shape or order, repeat, join, cut or mask them.
#include <algorithm>

#include "ops/nn/pad.h"
#include "ops/op_handles.h"
#include "ops/tensor/blocks.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/join.h"
#include "ops/tensor/mask.h"
#include "ops/tensor/rearrange.h"
#include "ops/tensor/reduce.h"
#include "ops/tensor/repeat.h"
#include "ops/tensor/shape.h"
#include "ops/tensor/slice.h"
#include "passes/gradient/rule_tools.h"

namespace headrace::passes::gradient_rules {

namespace {

// Returns gradients that are null, except the first argument's.
Gradients only_first(const GradientSite& s, const Expr& gradient) {
  Gradients gradients(s.call.args.size());
  gradients[0] = gradient;
  return gradients;
}

// Gradient of an op that only changes the shape.
Gradients grad_view(const GradientSite& s) { return only_first(s, reshaped_as(s.gradient, s.arg(0))); }
Gradients grad_transpose(const GradientSite& s) {
  const Shape& axes = s.call.attrs_as<ops::TransposeAttrs>().axes;
  Shape back(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) back[ops::normal_axis(axes[i], axes.size())] = static_cast<int64_t>(i);
  return {ops::transpose(s.gradient, back)};
}
Gradients grad_reverse(const GradientSite& s) {
  return {ops::reverse(s.gradient, s.call.attrs_as<ops::ReverseAttrs>().axis)};
}
Gradients grad_layout_transform(const GradientSite& s) {
  const auto& attrs = s.call.attrs_as<ops::LayoutTransformAttrs>();
  return {ops::layout_transform(s.gradient, attrs.dst_layout, attrs.src_layout)};
}

// Repeated elements: the sum over the repetitions.
Gradients grad_broadcast(const GradientSite& s) { return only_first(s, summed_to(s.gradient, s.result, s.arg(0))); }
// tile: each axis of n elements becomes one of repetitions and one of n; axes may come before.
Gradients grad_tile(const GradientSite& s) {
  const Shape from = s.arg_shape(0), to = s.shape();
  Shape parts, axes;
  for (size_t i = 0; i < to.size(); ++i) {
    const size_t added = to.size() - from.size();
    const int64_t n = i < added ? 1 : from[i - added];
    axes.push_back(static_cast<int64_t>(parts.size()));
    parts.push_back(n == 0 ? 0 : to[i] / n);
    parts.push_back(n);
  }
  const Expr cut = ops::reshape(s.gradient, parts, num_elements(parts) == 0);
  return only_first(s, reshaped_as(ops::reduce(op::kSum, cut, axes), s.arg(0)));
}
// repeat: the axis of n elements becomes one of n and one of repetitions.
Gradients grad_repeat(const GradientSite& s) {
  const auto& attrs = s.call.attrs_as<ops::RepeatAttrs>();
  const size_t axis = ops::normal_axis(attrs.axis, tensor_of(s.result).shape.size());
  Shape parts = s.arg_shape(0);
  parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(axis) + 1, attrs.repeats);
  const Expr cut = ops::reshape(s.gradient, parts, num_elements(parts) == 0);
  return {ops::reduce(op::kSum, cut, Shape{static_cast<int64_t>(axis) + 1})};
}
// full and full_like repeat one scalar.
Gradients grad_full(const GradientSite& s) {
  const size_t value = relay::is_call(s.call, op::kFullLike) ? 1 : 0;
  Gradients gradients(s.call.args.size());
  gradients[value] = ops::reduce(op::kSum, s.gradient);
  return gradients;
}
// Result k varies along one axis only.
Gradients grad_meshgrid(const GradientSite& s) {
  const auto& attrs = s.call.attrs_as<ops::MeshgridAttrs>();
  Array<Expr> items;
  for (size_t i = 0; i < item_types(s).size(); ++i) {
    const Expr sum = summed_but(s.gradient.as<relay::TupleNode>()->items[i], ops::meshgrid_axis(attrs, i));
    const auto n = as_shape(item_types(s)[i].as<TensorTypeNode>()->shape);
    items.push_back(n && n->empty() ? ops::reshape(sum, *n) : sum);
  }
  return {relay::make_tuple(items)};
}

// Joins and cuts.
Gradients grad_concatenate(const GradientSite& s) {
  const size_t axis = ops::normal_axis(s.call.attrs_as<ops::ConcatenateAttrs>().axis, tensor_of(s.result).shape.size());
  Array<Expr> parts;
  int64_t begin = 0;
  for (const Type& type : item_types(s)) {
    const auto size = as_int(type.as<TensorTypeNode>()->shape[axis]);
    if (!size)
      refuse(s, fmt::format("no gradient where a part is of unknown size along the axis: {}", to_string(type)));
    parts.push_back(
        ops::strided_slice(s.gradient, Shape{begin}, Shape{begin + *size}, Shape{1}, {static_cast<int64_t>(axis)}));
    begin += *size;
  }
  return {relay::make_tuple(parts)};
}
Gradients grad_stack(const GradientSite& s) {
  const auto axis =
      static_cast<int64_t>(ops::normal_axis(s.call.attrs_as<ops::StackAttrs>().axis, tensor_of(s.result).shape.size()));
  const auto count = static_cast<int64_t>(item_types(s).size());
  const Expr parts = ops::split(s.gradient, count, axis);
  Array<Expr> items;
  for (int64_t i = 0; i < count; ++i) items.push_back(ops::squeeze(relay::make_tuple_get_item(parts, i), Shape{axis}));
  return {relay::make_tuple(items)};
}
Gradients grad_split(const GradientSite& s) {
  return {ops::concatenate(s.gradient.as<relay::TupleNode>()->items, s.call.attrs_as<ops::SplitAttrs>().axis)};
}
Gradients grad_slice_like(const GradientSite& s) {
  const Shape whole = s.arg_shape(0), taken = s.shape();
  Array<Shape> widths;
  for (size_t i = 0; i < whole.size(); ++i) widths.push_back({0, whole[i] - taken[i]});
  return only_first(s, ops::pad(s.gradient, widths, scalar(0, s)));
}
Gradients grad_dilate(const GradientSite& s) {
  const Shape& strides = s.call.attrs_as<ops::DilateAttrs>().strides;
  return {ops::strided_slice(s.gradient, Shape(strides.size(), 0), s.shape(), strides)};
}

// Masks have the same mask as gradient, and 0 at elements that were put in.
Gradients grad_trilu(const GradientSite& s) {
  return {ops::trilu(s.gradient, s.arg(1), s.call.attrs_as<ops::TriluAttrs>().upper), Expr()};
}
Gradients grad_sequence_mask(const GradientSite& s) {
  return {ops::sequence_mask(s.gradient, s.arg(1), 0, s.call.attrs_as<ops::SequenceMaskAttrs>().axis), Expr()};
}
Gradients grad_reverse_sequence(const GradientSite& s) {
  const auto& attrs = s.call.attrs_as<ops::ReverseSequenceAttrs>();
  return {ops::reverse_sequence(s.gradient, s.arg(1), attrs.seq_axis, attrs.batch_axis), Expr()};
}
// Sums the gradients of the elements at the index, for the on-value, and of all others, for the off-value.
Gradients grad_one_hot(const GradientSite& s) {
  const auto& attrs = s.call.attrs_as<ops::OneHotAttrs>();
  const auto number = [&](double value) { return relay::make_scalar(value, attrs.dtype); };
  const Expr is_on = ops::one_hot(s.arg(0), number(1), number(0), attrs.depth, attrs.axis, attrs.dtype);
  const Expr by_on = ops::reduce(op::kSum, ops::multiply(s.gradient, is_on));
  return {Expr(), by_on, ops::subtract(ops::reduce(op::kSum, s.gradient), by_on)};
}

// Blocks.
Gradients grad_space_to_depth(const GradientSite& s) {
  const auto& attrs = s.call.attrs_as<ops::SubPixelAttrs>();
  return {ops::depth_to_space(s.gradient, attrs.block_size, attrs.layout, "DCR")};
}
Gradients grad_space_to_batch(const GradientSite& s) {
  const auto& attrs = s.call.attrs_as<ops::SpaceToBatchNDAttrs>();
  return {ops::call_with<ops::BatchToSpaceNDAttrs>(op::kBatchToSpaceNd, {s.gradient}, {}, [&](auto& back) {
    back.block_shape = attrs.block_shape, back.crops = attrs.paddings;
  })};
}
Gradients grad_batch_to_space(const GradientSite& s) {
  const auto& attrs = s.call.attrs_as<ops::BatchToSpaceNDAttrs>();
  return {ops::call_with<ops::SpaceToBatchNDAttrs>(op::kSpaceToBatchNd, {s.gradient}, {}, [&](auto& back) {
    back.block_shape = attrs.block_shape, back.paddings = attrs.crops;
  })};
}

constexpr GradientRow kShapeRows[] = {
    {op::kBroadcastTo, grad_broadcast},
    {op::kBroadcastToLike, grad_broadcast},
    {op::kConcatenate, grad_concatenate},
    {op::kContribReverseReshape, grad_view},
    {op::kExpandDims, grad_view},
    {op::kFull, grad_full},
    {op::kFullLike, grad_full},
    {op::kLayoutTransform, grad_layout_transform},
    {op::kMeshgrid, grad_meshgrid},
    {op::kBatchFlatten, grad_view},
    {op::kBatchToSpaceNd, grad_batch_to_space},
    {op::kDilate, grad_dilate},
    {op::kSpaceToBatchNd, grad_space_to_batch},
    {op::kSpaceToDepth, grad_space_to_depth},
    {op::kOneHot, grad_one_hot},
    {op::kRepeat, grad_repeat},
    {op::kReshape, grad_view},
    {op::kReshapeLike, grad_view},
    {op::kReverse, grad_reverse},
    {op::kReverseSequence, grad_reverse_sequence},
    {op::kSequenceMask, grad_sequence_mask},
    {op::kSliceLike, grad_slice_like},
    {op::kSplit, grad_split},
    {op::kSqueeze, grad_view},
    {op::kStack, grad_stack},
    {op::kTile, grad_tile},
    {op::kTranspose, grad_transpose},
    {op::kTrilu, grad_trilu},
};

}  // namespace

std::span<const GradientRow> shape_gradients() { return kShapeRows; }

}  // namespace headrace::passes::gradient_rules
