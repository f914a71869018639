// Operators that change shapes, or join, cut and pad tensors.
#include <algorithm>
#include <numeric>

#include "arith/canonical.h"
#include "frontend/onnx/compositions/pad.h"
#include "frontend/onnx/file/field_reader.h"
#include "frontend/onnx/single/rows.h"
#include "ops/loops/dims.h"
#include "ops/nn/pad.h"
#include "ops/tensor/blocks.h"
#include "ops/tensor/creation.h"
#include "ops/tensor/join.h"
#include "ops/tensor/repeat.h"
#include "ops/tensor/shape.h"
#include "ops/tensor/slice.h"

namespace headrace::onnx {

namespace {

using Dims = std::vector<PrimExpr>;

// A list of sizes given as an input: known integers, or expressions of symbolic dimensions; refuses when a value
// computed from data is among them.
Dims sizes_input(NodeContext& context, size_t i, std::string_view name) {
  const auto values = context.facts().values(context.input(i));
  if (!values || std::any_of(values->begin(), values->end(), is_any)) {
    Dims known;
    for (const int64_t size : context.ints(i, name)) known.push_back(make_int(size));
    return known;
  }
  return *values;
}

// ONNX Reshape (5, 13, 14): 0 copies the size at the same place unless allowzero, one -1 is inferred.
Exprs convert_reshape(NodeContext& context) {
  const Expr data = context.input(0);
  const Dims wanted = sizes_input(context, 1, "shape"), from = context.dims(data);
  const bool allowzero = context.opset() >= 14 && context.flag_attr("allowzero", false);
  for (const PrimExpr& size : wanted) {
    if (const auto known = as_int(size); known && *known < -1) context.invalid("its shape has the size {}", *known);
  }
  if (const auto shape = as_shape(Array<PrimExpr>(wanted)))
    return {ops::reshape(data, *shape, allowzero, context.span())};
  Dims dims = wanted;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (is_int(dims[i], 0) && !allowzero && i < from.size()) dims[i] = from[i];
    // The size of a -1 cannot be inferred next to a second unknown size.
    if (is_int(dims[i], -1)) return {ops::reshape(data, context.input(1), allowzero, context.span())};
  }
  return {context.reshape(data, dims)};
}

// ONNX Flatten (1, 9, 11, 13): to a matrix, cut before `axis`.
Exprs convert_flatten(NodeContext& context) {
  const Expr data = context.input(0);
  const Dims dims = context.dims(data);
  const auto rank = static_cast<int64_t>(dims.size());
  int64_t axis = context.int_attr("axis", 1);
  if (axis < -rank || axis > rank) context.invalid("attribute 'axis' is {} for {} dimensions", axis, rank);
  if (axis < 0) axis += rank;
  const auto middle = dims.begin() + axis;
  if (axis == 1 && rank > 0) return {ops::batch_flatten(data, context.span())};
  return {context.reshape(data, Dims{arith::product(Array<PrimExpr>(dims.begin(), middle)),
                                     arith::product(Array<PrimExpr>(middle, dims.end()))})};
}

Exprs convert_transpose(NodeContext& context) {
  return {ops::transpose(context.input(0), context.ints_attr("perm").value_or(Shape()), context.span())};
}

// Axes of Squeeze and Unsqueeze: an attribute, from opset 13 on an input.
std::optional<Shape> axes_of_squeeze(NodeContext& context) {
  if (context.opset() < 13) {
    if (context.has(1)) context.invalid("it has 2 inputs; up to opset 12 axes are an attribute");
    return context.ints_attr("axes");
  }
  return context.has(1) ? std::optional(context.ints(1, "axes")) : std::nullopt;
}

Exprs convert_squeeze(NodeContext& context) {
  const auto axes = axes_of_squeeze(context);
  if (axes && axes->empty()) return {context.input(0)};
  return {ops::squeeze(context.input(0), axes, context.span())};
}

// Axes count in the result.
Exprs convert_unsqueeze(NodeContext& context) {
  const auto axes = axes_of_squeeze(context);
  if (!axes) context.invalid("its axes are missing");
  const size_t rank = context.rank(context.input(0)) + axes->size();
  std::vector<size_t> sorted;
  for (const int64_t axis : *axes) sorted.push_back(context.axis_of(axis, rank, "axes: axis"));
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) context.invalid("axes names an axis twice");
  Expr result = context.input(0);
  for (const size_t axis : sorted) result = ops::expand_dims(result, static_cast<int64_t>(axis), 1, context.span());
  return {result};
}

Exprs convert_concat(NodeContext& context) {
  // Checked here, because one operand alone makes no concatenate.
  const auto axis = static_cast<int64_t>(context.axis_of(context.int_attr("axis"), context.rank(context.input(0))));
  Array<Expr> items;
  for (size_t i = 0; i < context.input_count(); ++i) items.push_back(context.input(i));
  return {items.size() == 1 ? items[0] : ops::concatenate(items, axis, context.span())};
}

Exprs items_of(NodeContext& context, const Expr& tuple, size_t count) {
  Exprs items;
  for (size_t i = 0; i < count; ++i)
    items.push_back(relay::make_tuple_get_item(tuple, static_cast<int64_t>(i), context.span()));
  return items;
}

// Split-18: num_outputs parts of one size, but the last may be smaller; nothing where the axis is a multiple.
std::optional<Shape> equal_sizes(NodeContext& context, size_t axis, size_t count) {
  const auto parts = static_cast<int64_t>(count);
  const int64_t wanted = context.int_attr("num_outputs", parts);
  if (wanted != parts) context.invalid("attribute 'num_outputs' is {} for {} outputs", wanted, parts);
  const auto whole = as_int(context.dims(context.input(0))[axis]);
  if (!whole || *whole % parts == 0) return std::nullopt;
  const int64_t size = (*whole + parts - 1) / parts;
  Shape sizes(count, size);
  sizes.back() = *whole - size * (parts - 1);
  if (sizes.back() < 0) context.invalid("axis {} of {} does not make {} parts of {}", axis, *whole, parts, size);
  return sizes;
}

// ONNX Split (2, 11, 13, 18): the sizes are an attribute, later an input; without them all parts are equal.
Exprs convert_split(NodeContext& context) {
  const Expr data = context.input(0);
  const size_t axis = context.axis_of(context.int_attr("axis", 0), context.rank(data));
  const size_t count = context.node().outputs.size();
  if (count == 0) context.invalid("it has no outputs");
  std::optional<Shape> sizes;
  if (context.opset() < 13) {
    if (context.has(1)) context.invalid("it has 2 inputs; up to opset 12 the sizes are an attribute");
    sizes = context.ints_attr("split");
  } else if (context.has(1)) {
    sizes = context.ints(1, "split");
  }
  const auto where = static_cast<int64_t>(axis);
  if (!sizes && context.opset() >= 18) sizes = equal_sizes(context, axis, count);
  if (!sizes) return items_of(context, ops::split(data, static_cast<int64_t>(count), where, context.span()), count);
  if (sizes->size() != count) context.invalid("it has {} sizes for {} outputs", sizes->size(), count);
  for (const int64_t size : *sizes) {
    if (size < 0 || size > INT32_MAX) context.invalid("one of its sizes is {}", size);
  }
  const int64_t total = std::accumulate(sizes->begin(), sizes->end(), int64_t{0});
  if (const auto whole = as_int(context.dims(data)[axis]); whole && *whole != total)
    context.invalid("its sizes sum up to {}, but axis {} has {}", total, axis, *whole);
  Shape begins(sizes->size() - 1);
  std::partial_sum(sizes->begin(), sizes->end() - 1, begins.begin());
  return items_of(context, ops::split(data, begins, where, context.span()), count);
}

// ONNX Expand (8, 13): both shapes broadcast to the result's.
Exprs convert_expand(NodeContext& context) {
  const Expr data = context.input(0);
  const Dims from = context.dims(data), wanted = sizes_input(context, 1, "shape");
  const size_t rank = std::max(from.size(), wanted.size());
  Dims dims;
  for (size_t i = 0; i < rank; ++i) {
    const PrimExpr one = make_int(1);
    const PrimExpr a = i + from.size() < rank ? one : from[i + from.size() - rank];
    const PrimExpr b = i + wanted.size() < rank ? one : wanted[i + wanted.size() - rank];
    const auto both = ops::broadcast_dims(a, b);
    if (!both) context.invalid("dimensions {} and {} do not broadcast", to_string(a), to_string(b));
    dims.push_back(*both);
  }
  if (const auto shape = as_shape(Array<PrimExpr>(dims))) return {ops::broadcast_to(data, *shape, context.span())};
  if (wanted.size() < from.size())
    context.refuse(HR_REASON_DYNAMIC_UNSUPPORTED, "its shape is symbolic; fix the input shapes");
  return {ops::broadcast_to(data, context.input(1), context.span())};
}

// ONNX Tile (6, 13).
Exprs convert_tile(NodeContext& context) {
  const Expr data = context.input(0);
  const Dims repeats = sizes_input(context, 1, "repeats");
  if (repeats.size() != context.rank(data))
    context.invalid("it has {} repeats for {} dimensions", repeats.size(), context.rank(data));
  if (const auto known = as_shape(Array<PrimExpr>(repeats))) return {ops::tile(data, *known, context.span())};
  return {ops::tile(data, context.input(1), context.span())};
}

// Pads of the axes that an input names (opset 18), as pads of all.
Shape spread_pads(NodeContext& context, const Shape& pads, size_t rank) {
  if (!context.has(3)) return pads;
  const Shape axes = context.ints(3, "axes");
  if (pads.size() != 2 * axes.size()) context.invalid("it has {} pads for {} axes", pads.size(), axes.size());
  Shape all(2 * rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = context.axis_of(axes[i], rank, "axes: axis");
    all[axis] = pads[i];
    all[axis + rank] = pads[i + axes.size()];
  }
  return all;
}

// ONNX Pad (2, 11, 13, 18, 19, 21, 23): pads are all begins, then all ends; an attribute, later an input.
Exprs convert_pad(NodeContext& context) {
  Expr data = context.input(0);
  const std::string mode = context.string_attr("mode", "constant");
  const DataType dtype = context.dtype(data);
  Shape pads;
  Expr value = context.scalar(0, dtype);
  if (context.opset() < 11) {
    if (context.has(1))
      context.invalid("it has {} inputs; up to opset 10 pads are an attribute", context.input_count());
    pads = context.ints_attr("pads").value_or(Shape());
    value = context.scalar(context.float_attr("value", 0), dtype);
  } else {
    pads = context.ints(1, "pads");
    if (context.has(2)) value = context.one_number(2, "constant_value");
  }
  const size_t rank = context.rank(data);
  pads = spread_pads(context, pads, rank);
  if (pads.size() != 2 * rank) context.invalid("it has {} pads for {} dimensions", pads.size(), rank);
  for (const int64_t pad : pads) {
    if (pad < -INT32_MAX || pad > INT32_MAX) context.invalid("one of its pads is {}", pad);
  }
  if (mode != "constant") data = cropped(context, data, pads);
  if (mode == "wrap" && context.opset() >= 19) return {pad_wrapped(context, data, pads)};
  if (mode != "constant" && mode != "edge" && mode != "reflect")
    context.invalid("attribute 'mode' is {}, expected constant, edge or reflect", printable(mode));
  Array<Shape> widths;
  for (size_t i = 0; i < rank; ++i) widths.push_back({pads[i], pads[i + rank]});
  return {ops::pad(data, widths, value, mode, context.span())};
}

// ONNX Shape (1, 13, 15).
Exprs convert_shape(NodeContext& context) {
  const Expr whole = ops::shape_of(context.input(0), DataType::int_(64), context.span());
  const auto rank = static_cast<int64_t>(context.rank(context.input(0)));
  if (context.opset() < 15) return {whole};
  const auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const int64_t begin = clamp(context.int_attr("start", 0)), end = clamp(context.int_attr("end", rank));
  if (begin == 0 && end == rank) return {whole};
  if (begin >= end) return {context.int_constant({0}, {})};
  const Expr parts = ops::split(whole, Shape{begin, end}, 0, context.span());
  return {relay::make_tuple_get_item(parts, 1, context.span())};
}

Exprs convert_size(NodeContext& context) {
  return {ops::ndarray_size(context.input(0), DataType::int_(64), context.span())};
}

struct Blocks {
  Shape shape;  // N C H W
  int64_t size;
};
Blocks read_blocks(NodeContext& context) {
  const Blocks blocks{context.known_shape(context.input(0)), context.int_attr("blocksize")};
  if (blocks.shape.size() != 4) context.invalid("its input has {} dimensions, expected 4", blocks.shape.size());
  if (blocks.size < 1 || blocks.size > UINT16_MAX) context.invalid("attribute 'blocksize' is {}", blocks.size);
  return blocks;
}

// ONNX DepthToSpace (1, 11, 13): channels become b x b blocks of pixels.
Exprs convert_depth_to_space(NodeContext& context) {
  const auto [x, b] = read_blocks(context);
  const std::string mode = context.opset() < 11 ? "DCR" : context.string_attr("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") context.invalid("attribute 'mode' is {}, expected DCR or CRD", printable(mode));
  if (x[1] % (b * b) != 0) context.invalid("{} channels are not a multiple of the blocks' {}", x[1], b * b);
  return {ops::depth_to_space(context.input(0), b, "NCHW", mode, context.span())};
}

// ONNX SpaceToDepth (1, 13): the inverse of DepthToSpace in mode DCR.
Exprs convert_space_to_depth(NodeContext& context) {
  const auto [x, b] = read_blocks(context);
  if (x[2] % b != 0 || x[3] % b != 0)
    context.invalid("{}x{} pixels are not a multiple of the blocks' {}", x[2], x[3], b);
  return {ops::space_to_depth(context.input(0), b, "NCHW", context.span())};
}

}  // namespace

std::span<const OpRow> shape_rows() {
  static constexpr OpRow kRows[] = {
      {"Reshape", convert_reshape, 2, 2},
      {"Flatten", convert_flatten, 1, 1},
      {"Transpose", convert_transpose, 1, 1},
      {"Squeeze", convert_squeeze, 1, 2},
      {"Unsqueeze", convert_unsqueeze, 1, 2},
      {"Concat", convert_concat, 1, kAny},
      {"Split", convert_split, 1, 2},
      {"Expand", convert_expand, 2, 2, 8},
      {"Tile", convert_tile, 2, 2},
      {"Pad", convert_pad, 1, 4},
      {"Shape", convert_shape, 1, 1},
      {"Size", convert_size, 1, 1},
      {"DepthToSpace", convert_depth_to_space, 1, 1},
      {"SpaceToDepth", convert_space_to_depth, 1, 1},
  };
  return kRows;
}

}  // namespace headrace::onnx
