// Gradients of ops that read or write elements at given positions.
//
// The general rule (`grad_picked`) serves every op whose result consists of elements of its first argument: the same
// op, applied to the positions of the elements, shows where each element of the result comes from, and the gradient is
// added there. Ops whose positions are cheaper to compute have a rule of their own.
#include <algorithm>

#include "ops/algorithm/scatter.h"
#include "ops/nn/pad.h"
#include "ops/op_handles.h"
#include "ops/tensor/blocks.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/creation.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/reduce.h"
#include "ops/tensor/shape.h"
#include "ops/tensor/slice.h"
#include "passes/gradient/rule_tools.h"

namespace headrace::passes::gradient_rules {

namespace {

// Returns the gradient by the first argument, when `positions` are those of its elements in the result.
Expr added_at(const Expr& positions, const GradientSite& s) {
  const Shape shape = s.arg_shape(0);
  const Expr nothing = ops::zeros({num_elements(shape)}, tensor_of(s.arg(0)).dtype);
  const auto flat = [](const Expr& e) { return ops::reshape(e, Shape{-1}); };
  return reshaped_as(ops::scatter_elements(nothing, flat(positions), flat(s.gradient), 0, "add"), s.arg(0));
}
Gradients grad_picked(const GradientSite& s) {
  const Shape shape = s.arg_shape(0);
  Gradients gradients(s.call.args.size());
  if (num_elements(shape) == 0) {
    gradients[0] = zeros_as(s.arg(0));
    return gradients;
  }
  std::vector<Expr> args = s.call.args.to_vector();
  args[0] = ops::reshape(counted(num_elements(shape)), shape);
  gradients[0] = added_at(relay::make_call(s.call.op, Array<Expr>(args), s.call.attrs), s);
  return gradients;
}

// Puts zeros around the gradient of the slice, and between its elements for longer steps.
Gradients grad_strided_slice(const GradientSite& s) {
  const auto& attrs = s.call.attrs_as<ops::StridedSliceAttrs>();
  const bool is_dense = std::all_of(attrs.strides.begin(), attrs.strides.end(), [](int64_t v) { return v == 1; });
  if (!is_dense || s.call.args.size() != 1 || attrs.slice_mode != "end") return grad_picked(s);
  const Shape shape = s.arg_shape(0), taken = s.shape();
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
// Constants around: the opposite widths, which crop where the op added; the value's is the rest of the sum.
// Elements around: where they come from.
Gradients grad_pad(const GradientSite& s) {
  const auto& attrs = s.call.attrs_as<ops::PadAttrs>();
  if (s.call.args.size() != 2)
    refuse(s, "no gradient where the widths are an argument; DynamicToStatic makes constant ones attributes");
  if (attrs.pad_mode != "constant") {
    const Shape shape = s.arg_shape(0);
    const Expr positions = ops::reshape(counted(num_elements(shape)), shape);
    const Expr unused = relay::make_scalar(0, DataType::int_(64));
    return {added_at(ops::pad(positions, attrs.pad_width, unused, attrs.pad_mode), s), Expr()};
  }
  Array<Shape> opposite;
  for (const Shape& width : attrs.pad_width) opposite.push_back({-width[0], -width[1]});
  const Expr by_data = ops::pad(s.gradient, opposite, scalar(0, s));
  const DataType dtype = tensor_of(s.arg(1)).dtype;
  if (!dtype.is_float()) return {by_data, Expr()};
  const Expr rest = ops::subtract(ops::reduce(op::kSum, s.gradient), ops::reduce(op::kSum, by_data));
  return {by_data, reshaped_as(dtype == tensor_of(s.arg(0)).dtype ? rest : ops::cast(rest, dtype), s.arg(1))};
}
Gradients grad_depth_to_space(const GradientSite& s) {
  const auto& attrs = s.call.attrs_as<ops::SubPixelAttrs>();
  if (attrs.mode != "DCR") return grad_picked(s);
  return {ops::space_to_depth(s.gradient, attrs.block_size, attrs.layout)};
}

// Rows of a table along an axis: they are added at the indices, which `take` of 0, 1, .. makes those inside the axis.
Gradients grad_take(const GradientSite& s) {
  const auto& attrs = s.call.attrs_as<ops::TakeAttrs>();
  if (attrs.batch_dims != 0) return grad_picked(s);
  const Shape shape = s.arg_shape(0);
  if (!attrs.axis) {
    const Expr positions = ops::take(counted(num_elements(shape)), s.arg(1), 0, attrs.mode);
    return {added_at(positions, s), Expr()};
  }
  const size_t rank = shape.size(), axis = ops::normal_axis(*attrs.axis, rank),
               width = tensor_of(s.arg(1)).shape.size();
  const Expr rows = ops::expand_dims(ops::take(counted(shape[axis]), s.arg(1), 0, attrs.mode), 0);
  Shape turned{shape[axis]}, order;  // the axis first, as scatter_nd has it
  for (size_t i = 0; i < rank; ++i) {
    if (i != axis) turned.push_back(shape[i]);
  }
  for (size_t i = 0; i < width; ++i) order.push_back(static_cast<int64_t>(axis + i));
  for (size_t i = 0; i < width + rank - 1; ++i) {
    if (i < axis || i >= axis + width) order.push_back(static_cast<int64_t>(i));
  }
  const Expr sums =
      ops::scatter_nd(ops::zeros(turned, tensor_of(s.arg(0)).dtype), rows, ordered(s.gradient, order), "add");
  return {ordered(sums, moved_axis(rank, 0, axis)), Expr()};
}
Gradients grad_gather(const GradientSite& s) {
  const int64_t axis = s.call.attrs_as<ops::GatherAttrs>().axis;
  return {ops::scatter_elements(zeros_as(s.arg(0)), s.arg(1), s.gradient, axis, "add"), Expr()};
}
Gradients grad_gather_nd(const GradientSite& s) {
  if (s.call.attrs_as<ops::GatherNDAttrs>().batch_dims != 0) return grad_picked(s);
  return {ops::scatter_nd(zeros_as(s.arg(0)), s.arg(1), s.gradient, "add"), Expr()};
}

// Returns the gradients of an op that writes updates into data. `put` and `pick` scatter and gather at its indices.
// `targets` is the shape of the data, `sources` that of the updates, or of the leading axes that the indices address.
// When several updates write one element the last one counts: the others, and the data there, have no gradient.
template <typename Put, typename Pick>
Gradients put_gradients(const GradientSite& s, const std::string& mode, const Shape& targets, const Shape& sources,
                        const Put& put, const Pick& pick) {
  if (mode == "add") return {s.gradient, Expr(), pick(s.gradient)};
  if (mode != "update") refuse(s, fmt::format("no gradient where updates are joined by '{}'", mode));
  const Expr order = ops::reshape(counted(num_elements(sources)), sources, num_elements(sources) == 0);
  const Expr last = pick(put(ops::zeros(targets, DataType::int_(64)), order));
  Expr counts = ops::binary(op::kEqual, last, order);
  const auto rest = static_cast<int64_t>(tensor_of(s.arg(2)).shape.size() - sources.size());
  if (rest > 0) counts = ops::expand_dims(counts, static_cast<int64_t>(sources.size()), rest);
  return {put(s.gradient, zeros_as(s.arg(2))), Expr(), ops::where(counts, pick(s.gradient), zeros_as(s.arg(2)))};
}
Gradients grad_scatter_elements(const GradientSite& s) {
  const auto& attrs = s.call.attrs_as<ops::ScatterElementsAttrs>();
  const auto put = [&](const Expr& to, const Expr& what) {
    return ops::scatter_elements(to, s.arg(1), what, attrs.axis, "update");
  };
  const auto pick = [&](const Expr& from) { return ops::gather(from, attrs.axis, s.arg(1)); };
  return put_gradients(s, attrs.reduction, s.arg_shape(0), s.arg_shape(2), put, pick);
}
Gradients grad_scatter_nd(const GradientSite& s) {
  const auto put = [&](const Expr& to, const Expr& what) { return ops::scatter_nd(to, s.arg(1), what, "update"); };
  const auto pick = [&](const Expr& from) { return ops::gather_nd(from, s.arg(1)); };
  const Shape data = s.arg_shape(0), indices = s.arg_shape(1);
  return put_gradients(s, s.call.attrs_as<ops::ScatterNDAttrs>().mode, Shape(data.begin(), data.begin() + indices[0]),
                       Shape(indices.begin() + 1, indices.end()), put, pick);
}

// Each element is start + i * step. Its number depends on the stop, its value does not.
Gradients grad_arange(const GradientSite& s) {
  const DataType dtype = tensor_of(s.result).dtype;
  if (!dtype.is_float()) return Gradients(3);
  const auto length = known_shape_of(s.result);
  const Expr size = length ? relay::make_scalar(static_cast<double>((*length)[0]), DataType::int_(64))
                           : ops::ndarray_size(s.result, DataType::int_(64));
  const auto number = [](double value) { return relay::make_scalar(value, DataType::int_(64)); };
  const Expr positions = ops::cast(ops::arange(number(0), size, number(1), DataType::int_(64)), dtype);
  return {ops::reduce(op::kSum, s.gradient), zeros_as(s.arg(1)),
          ops::reduce(op::kSum, ops::multiply(s.gradient, positions))};
}

constexpr GradientRow kIndexRows[] = {
    {op::kArange, grad_arange},
    {op::kGather, grad_gather},
    {op::kGatherNd, grad_gather_nd},
    {op::kDepthToSpace, grad_depth_to_space},
    {op::kMirrorPad, grad_picked},
    {op::kPad, grad_pad},
    {op::kScatterElements, grad_scatter_elements},
    {op::kScatterNd, grad_scatter_nd},
    {op::kSlidingWindow, grad_picked},
    {op::kStridedSlice, grad_strided_slice},
    {op::kTake, grad_take},
    {op::kYoloReorg, grad_picked},
};

}  // namespace

std::span<const GradientRow> index_gradients() { return kIndexRows; }

}  // namespace headrace::passes::gradient_rules
