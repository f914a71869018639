#include "ir/layout.h"
#include "ops/nn/pad.h"
#include "ops/nn/pool.h"
#include "ops/op_handles.h"
#include "ops/tensor/creation.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/join.h"
#include "ops/tensor/rearrange.h"
#include "ops/tensor/reduce.h"
#include "ops/tensor/repeat.h"
#include "ops/tensor/shape.h"
#include "ops/tensor/slice.h"
#include "passes/simplify/law.h"

namespace headrace::passes::simplify {

using relay::CallNode;
using relay::ConstantNode;

namespace {

// The data of a call that only names the same elements differently; null for others. A call with more operands is not
// one: they may have effects, or give the shape.
Expr viewed(const Expr& expr) {
  const auto* call = relay::op_call(expr);
  const bool is_view = call != nullptr && call->args.size() == 1 && ops::only_reshapes(*call->as_op());
  return is_view && !relay::is_stateful(*call->as_op()) ? call->args[0] : Expr();
}

bool all_are(const Shape& shape, int64_t value) {
  return std::all_of(shape.begin(), shape.end(), [&](int64_t v) { return v == value; });
}

// Returns whether reshape needs `allowzero`. Without it, a 0 in a shape means the size of the data's axis.
bool has_zero(const Shape& shape) { return std::find(shape.begin(), shape.end(), 0) != shape.end(); }

// Returns the axes of a transpose of `rank` dimensions, counted from 0.
Shape axes_of(const CallNode& call, size_t rank) {
  Shape axes = call.attrs_as<ops::TransposeAttrs>().axes;
  if (axes.empty()) {
    for (size_t i = rank; i > 0; --i) axes.push_back(static_cast<int64_t>(i) - 1);
  }
  for (int64_t& axis : axes) axis = static_cast<int64_t>(ops::normal_axis(axis, rank));
  return axes;
}

// transpose(x, 0 1 2 ...) == x; transpose(transpose(x, a), b) == transpose(x, a[b])
Expr join_transposes(const Site& s) {
  const auto* tensor = s.type.as<TensorTypeNode>();
  Shape axes = axes_of(s.call, tensor->shape.size());
  Expr data = s.arg(0);
  const auto* inner = relay::call_of(data, op::kTranspose);
  if (inner != nullptr) {
    const Shape first = axes_of(*inner, axes.size());
    for (int64_t& axis : axes) axis = first[static_cast<size_t>(axis)];
    data = inner->args[0];
  }
  if (std::is_sorted(axes.begin(), axes.end())) return data;
  return inner == nullptr ? Expr() : Expr(ops::transpose(data, axes, s.call.span));
}

// layout_transform(x, a, b) == transpose(x, the places in a of b's letters); null where a letter is in parts
Expr as_transpose(const Site& s, const ops::LayoutTransformAttrs& attrs) {
  const Layout from = Layout::parse(attrs.src_layout), to = Layout::parse(attrs.dst_layout);
  if (from.is_packed() || to.is_packed()) return {};
  Shape axes;
  for (const Layout::Item& item : to.items()) axes.push_back(static_cast<int64_t>(*from.find(item.letter)));
  return ops::transpose(s.arg(0), axes, s.span());
}

// layout_transform(x, a, a) == x; layout_transform(layout_transform(x, a, b), b, c) == layout_transform(x, a, c);
// layout_transform(x, a, b) == transpose(x, ...) without parts
Expr join_layout_transforms(const Site& s) {
  const auto& outer = s.call.attrs_as<ops::LayoutTransformAttrs>();
  if (outer.src_layout == outer.dst_layout) return s.arg(0);
  const auto* call = relay::call_of(s.arg(0), op::kLayoutTransform);
  const auto* inner = call == nullptr ? nullptr : &call->attrs_as<ops::LayoutTransformAttrs>();
  if (inner == nullptr || inner->dst_layout != outer.src_layout) return as_transpose(s, outer);
  if (inner->src_layout == outer.dst_layout) return call->args[0];
  return ops::layout_transform(call->args[0], inner->src_layout, outer.dst_layout, s.span());
}

// layout_transform(transpose(x, a), from, to) == layout_transform(x, from with its letters where a takes them, to),
// where `to` has a letter in parts; likewise transpose(layout_transform(x, from, to), a) where `from` has
Expr join_layout_with_transpose(const Site& s) {
  const bool is_outer = s.is(op::kLayoutTransform);
  const auto* inner = relay::call_of(s.arg(0), is_outer ? op::kTranspose : op::kLayoutTransform);
  if (inner == nullptr) return {};
  const CallNode &layout = is_outer ? s.call : *inner, &moved = is_outer ? *inner : s.call;
  std::string from = layout.attrs_as<ops::LayoutTransformAttrs>().src_layout;
  std::string to = layout.attrs_as<ops::LayoutTransformAttrs>().dst_layout;
  std::string& plain = is_outer ? from : to;
  if (Layout::parse(plain).is_packed()) return {};
  const Shape axes = axes_of(moved, plain.size());
  const std::string letters = plain;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    (is_outer ? plain[axis] : plain[i]) = is_outer ? letters[i] : letters[axis];
  }
  return ops::layout_transform(inner->args[0], from, to, s.span());
}

// The axes of x that squeeze drops.
std::optional<std::vector<bool>> dropped_axes(const CallNode& call, const Type& data_type) {
  if (!static_shape(data_type)) return std::nullopt;
  return ops::squeezed_axes(call.attrs_as<ops::SqueezeAttrs>(), data_type.as<TensorTypeNode>()->shape);
}

// squeeze(squeeze(x, a), b) == squeeze(x, a and b)
Expr join_squeezes(const Site& s) {
  const Expr middle = s.arg(0);
  const auto* inner = relay::call_of(middle, op::kSqueeze);
  if (inner == nullptr) return {};
  const auto first = dropped_axes(*inner, inner->args[0]->checked_type());
  const auto second = dropped_axes(s.call, middle->checked_type());
  if (!first || !second) return {};
  Shape axes;
  size_t kept = 0;
  for (size_t i = 0; i < first->size(); ++i) {
    if ((*first)[i] || (*second)[kept++]) axes.push_back(static_cast<int64_t>(i));
  }
  return ops::squeeze(inner->args[0], axes, s.call.span);
}

// expand_dims(expand_dims(x, i, n), j, m) == expand_dims(x, i, n + m) where j lies within the n axes, or at their end
Expr join_expand_dims(const Site& s) {
  const auto* inner = relay::call_of(s.arg(0), op::kExpandDims);
  if (inner == nullptr) return {};
  const auto &outer_attrs = s.call.attrs_as<ops::ExpandDimsAttrs>(), &attrs = inner->attrs_as<ops::ExpandDimsAttrs>();
  const auto rank = static_cast<int64_t>(s.type.as<TensorTypeNode>()->shape.size());
  // A negative axis counts from the end of the operand's rank, plus one.
  const int64_t middle_rank = rank - outer_attrs.num_newaxis, first_rank = middle_rank - attrs.num_newaxis;
  const int64_t j = outer_attrs.axis < 0 ? outer_attrs.axis + middle_rank + 1 : outer_attrs.axis;
  const int64_t i = attrs.axis < 0 ? attrs.axis + first_rank + 1 : attrs.axis;
  if (j < i || j > i + attrs.num_newaxis) return {};
  return ops::expand_dims(inner->args[0], i, attrs.num_newaxis + outer_attrs.num_newaxis, s.call.span);
}

// concatenate((x,)) == x
Expr drop_concatenate(const Site& s) {
  const auto* tuple = s.arg(0).as<relay::TupleNode>();
  return tuple != nullptr && tuple->items.size() == 1 ? tuple->items[0] : Expr();
}

// pad(x) by nothing == x
Expr drop_pad(const Site& s) {
  const Array<Shape> widths =
      s.is(op::kPad) ? s.call.attrs_as<ops::PadAttrs>().pad_width : s.call.attrs_as<ops::MirrorPadAttrs>().pad_width;
  const bool is_given = !widths.empty();
  return is_given && std::all_of(widths.begin(), widths.end(), [](const Shape& w) { return all_are(w, 0); })
             ? s.operand(0)
             : Expr();
}

// strided_slice(x) forwards over all of x == x
Expr drop_slice(const Site& s) {
  const auto& attrs = s.call.attrs_as<ops::StridedSliceAttrs>();
  const bool forwards = s.call.args.size() == 1 && std::all_of(attrs.strides.begin(), attrs.strides.end(),
                                                               [](int64_t stride) { return stride > 0; });
  return forwards ? s.operand(0) : Expr();
}

// broadcast_to(x, x's shape) == x; tile(x) once == x
Expr drop_broadcast(const Site& s) { return s.operand(0); }

// zeros_like(x) == zeros(x's shape)
Expr zeros_like_as_zeros(const Site& s) { return ops::zeros(*s.shape(), s.dtype(), s.span()); }

// ones_like(x) == ones(x's shape)
Expr ones_like_as_ones(const Site& s) { return ops::ones(*s.shape(), s.dtype(), s.span()); }

// full_like(x, v) == full(v, x's shape)
Expr full_like_as_full(const Site& s) { return ops::full(s.arg(1), *s.shape(), s.dtype(), s.span()); }

// reshape_like(x, y) == reshape(x, y's shape)
Expr reshape_like_as_reshape(const Site& s) {
  const Shape shape = *s.shape();
  return ops::reshape(s.arg(0), shape, has_zero(shape), s.span());
}

// broadcast_to_like(x, y) == broadcast_to(x, y's shape)
Expr broadcast_to_like_as_broadcast_to(const Site& s) { return ops::broadcast_to(s.arg(0), *s.shape(), s.span()); }

// collapse_sum_like(x, y) == collapse_sum_to(x, y's shape)
Expr collapse_sum_like_as_collapse_sum_to(const Site& s) {
  return ops::collapse_sum_to(s.arg(0), *s.shape(), s.span());
}

// transpose(x, a) == reshape(x) where a keeps the order of the axes that are longer than 1
Expr transpose_as_reshape(const Site& s) {
  const auto from = static_shape(s.arg(0)->checked_type());
  if (!from || num_elements(*from) == 0) return {};
  int64_t last = -1;
  for (const int64_t axis : axes_of(s.call, from->size())) {
    if ((*from)[static_cast<size_t>(axis)] == 1) continue;
    if (axis < last) return {};
    last = axis;
  }
  return ops::reshape(s.arg(0), *s.shape(), false, s.span());
}

// reverse(reverse(x, a), a) == x; reverse(x, a) == x where the axis has one element
Expr drop_reverse(const Site& s) {
  const auto shape = s.shape();
  const auto* tensor = s.type.as<TensorTypeNode>();
  const auto axis_of = [&](const CallNode& call) {
    return ops::normal_axis(call.attrs_as<ops::ReverseAttrs>().axis, tensor->shape.size());
  };
  const size_t axis = axis_of(s.call);
  if (shape && (*shape)[axis] == 1) return s.arg(0);
  const auto* inner = relay::call_of(s.arg(0), op::kReverse);
  return inner != nullptr && axis_of(*inner) == axis ? inner->args[0] : Expr();
}

// repeat(x, 1) == x
Expr drop_repeat(const Site& s) { return s.operand(0); }

// broadcast_to(broadcast_to(x, s), t) == broadcast_to(x, t)
Expr join_broadcasts(const Site& s) {
  const auto* inner = relay::call_of(s.arg(0), op::kBroadcastTo);
  return inner == nullptr ? Expr() : ops::broadcast_to(inner->args[0], *s.shape(), s.span());
}

// stack((x,)) == expand_dims(x)
Expr stack_of_one(const Site& s) {
  const auto* tuple = s.arg(0).as<relay::TupleNode>();
  if (tuple == nullptr || tuple->items.size() != 1) return {};
  return ops::expand_dims(tuple->items[0], s.call.attrs_as<ops::StackAttrs>().axis, 1, s.span());
}

// The split that the tuple has all parts of, in order; null when it is not that.
const CallNode* whole_split(const relay::TupleNode& tuple) {
  const CallNode* split = nullptr;
  for (size_t i = 0; i < tuple.items.size(); ++i) {
    const auto* item = tuple.items[i].as<relay::TupleGetItemNode>();
    const auto* of = item == nullptr ? nullptr : relay::call_of(item->tuple, op::kSplit);
    if (of == nullptr || static_cast<size_t>(item->index) != i || (split != nullptr && of != split)) return nullptr;
    split = of;
  }
  if (split == nullptr) return nullptr;
  const auto* parts = ref(split)->checked_type().as<TupleTypeNode>();
  return parts != nullptr && parts->items.size() == tuple.items.size() ? split : nullptr;
}

// concatenate(split(x, a), a) == x
Expr join_split(const Site& s) {
  const auto* tuple = s.arg(0).as<relay::TupleNode>();
  const CallNode* split = tuple == nullptr ? nullptr : whole_split(*tuple);
  if (split == nullptr || !s.has_type_of(split->args[0])) return {};
  const size_t rank = s.type.as<TensorTypeNode>()->shape.size();
  const size_t a = ops::normal_axis(split->attrs_as<ops::SplitAttrs>().axis, rank);
  return ops::normal_axis(s.call.attrs_as<ops::ConcatenateAttrs>().axis, rank) == a ? split->args[0] : Expr();
}

// sum(x) == mean(x) == max(x) == min(x) == prod(x) == collapse_sum_to(x) == reshape(x) over axes of one element
Expr reduce_nothing(const Site& s) {
  const auto from = static_shape(s.arg(0)->checked_type());
  const Shape to = *s.shape();
  const bool is_same = from && num_elements(*from) != 0 && num_elements(*from) == num_elements(to);
  if (!is_same || dtype_of(s.arg(0)) != s.dtype()) return {};
  return s.has_type_of(s.arg(0)) ? s.arg(0) : ops::reshape(s.arg(0), to, false, s.span());
}

// pad(pad(x, a, v), b, v) == pad(x, a + b, v)
Expr join_pads(const Site& s) {
  const auto* inner = relay::call_of(s.arg(0), op::kPad);
  if (inner == nullptr || s.call.args.size() != 2 || inner->args.size() != 2) return {};
  const auto &a = inner->attrs_as<ops::PadAttrs>(), &b = s.call.attrs_as<ops::PadAttrs>();
  const auto *v = inner->args[1].as<ConstantNode>(), *w = s.arg(1).as<ConstantNode>();
  const bool is_constant = a.pad_mode == "constant" && b.pad_mode == "constant";
  if (!is_constant || v == nullptr || w == nullptr || !v->data.content_equal(w->data)) return {};
  Array<Shape> widths;
  for (size_t i = 0; i < a.pad_width.size(); ++i) {
    const Shape &x = a.pad_width[i], &y = b.pad_width[i];
    // A negative width cuts, and what is cut cannot be padded back.
    if (x[0] < 0 || x[1] < 0 || y[0] < 0 || y[1] < 0) return {};
    widths.push_back({x[0] + y[0], x[1] + y[1]});
  }
  return ops::pad(inner->args[0], widths, s.arg(1), "constant", s.span());
}

// max_pool(x) == avg_pool(x) == x over windows of one element, one apart
Expr drop_pool(const Site& s) {
  const auto& attrs = s.call.attrs_as<ops::PoolAttrs>();
  const bool is_one = all_are(attrs.pool_size, 1) && all_are(attrs.strides, 1) && all_are(attrs.padding, 0);
  return is_one && (attrs.out_layout.empty() || attrs.out_layout == attrs.layout) ? s.operand(0) : Expr();
}

constexpr Law kShapesLaws[] = {
    {op::kTranspose, join_transposes},
    {op::kTranspose, join_layout_with_transpose},
    {op::kTranspose, transpose_as_reshape, LawDtypes::all, LawShape::known, LawNumerics::exact, LawScope::builds},
    {op::kLayoutTransform, join_layout_transforms},
    {op::kLayoutTransform, join_layout_with_transpose},
    {op::kSqueeze, join_squeezes},
    {op::kExpandDims, join_expand_dims},
    {op::kConcatenate, drop_concatenate},
    {op::kConcatenate, join_split},
    {op::kStack, stack_of_one},
    {op::kPad, drop_pad},
    {op::kPad, join_pads},
    {op::kMirrorPad, drop_pad},
    {op::kStridedSlice, drop_slice, LawDtypes::all, LawShape::known},
    {op::kBroadcastTo, drop_broadcast, LawDtypes::all, LawShape::known},
    {op::kBroadcastTo, join_broadcasts, LawDtypes::all, LawShape::known},
    {op::kTile, drop_broadcast, LawDtypes::all, LawShape::known},
    {op::kRepeat, drop_repeat, LawDtypes::all, LawShape::known},
    {op::kReverse, drop_reverse},
    {op::kSum, reduce_nothing, LawDtypes::all, LawShape::known, LawNumerics::zero_sign},
    {op::kMean, reduce_nothing, LawDtypes::all, LawShape::known, LawNumerics::zero_sign},
    {op::kMax, reduce_nothing, LawDtypes::all, LawShape::known},
    {op::kMin, reduce_nothing, LawDtypes::all, LawShape::known},
    {op::kProd, reduce_nothing, LawDtypes::all, LawShape::known},
    {op::kCollapseSumTo, reduce_nothing, LawDtypes::all, LawShape::known, LawNumerics::zero_sign, LawScope::builds},
    {op::kZerosLike, zeros_like_as_zeros, LawDtypes::all, LawShape::known},
    {op::kOnesLike, ones_like_as_ones, LawDtypes::all, LawShape::known},
    {op::kFullLike, full_like_as_full, LawDtypes::all, LawShape::known},
    {op::kReshapeLike, reshape_like_as_reshape, LawDtypes::all, LawShape::known},
    {op::kBroadcastToLike, broadcast_to_like_as_broadcast_to, LawDtypes::all, LawShape::known},
    {op::kCollapseSumLike, collapse_sum_like_as_collapse_sum_to, LawDtypes::all, LawShape::known},
    {op::kMaxPool1D, drop_pool},
    {op::kMaxPool2D, drop_pool},
    {op::kMaxPool3D, drop_pool},
    {op::kAvgPool1D, drop_pool, LawDtypes::all, LawShape::any, LawNumerics::zero_sign},
    {op::kAvgPool2D, drop_pool, LawDtypes::all, LawShape::any, LawNumerics::zero_sign},
    {op::kAvgPool3D, drop_pool, LawDtypes::all, LawShape::any, LawNumerics::zero_sign},
};

}  // namespace

// view(x) == x where the shape is x's; view(view(x)) == x likewise; reshape(view(x), s) == reshape(x, s), likewise of
// the other ops that name a shape
Expr join_views(const Site& s) {
  if (s.call.args.size() != 1) return {};
  if (s.has_type_of(s.arg(0))) return s.arg(0);
  const Expr data = viewed(s.arg(0));
  if (!data || s.has_type_of(data)) return data;
  if (!relay::is_call_of_any(s.call, {&op::kReshape, &op::kBatchFlatten, &op::kContribReverseReshape})) return {};
  const Shape shape = *s.shape();
  return ops::reshape(data, shape, has_zero(shape), s.call.span);
}

std::span<const Law> shape_laws() { return kShapesLaws; }

}  // namespace headrace::passes::simplify
