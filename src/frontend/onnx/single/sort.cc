// Operators that sort, run along an axis or write by index: CumSum, TopK, Unique, Scatter*.
#include "base/printable.h"
#include "frontend/onnx/single/rows.h"
#include "ops/algorithm/scan.h"
#include "ops/algorithm/scatter.h"
#include "ops/algorithm/select.h"
#include "ops/algorithm/sort.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/repeat.h"
#include "ops/tensor/shape.h"
#include "ops/tensor/slice.h"

namespace headrace::onnx {

namespace {

// ONNX CumSum (11, 14), along an axis that is known.
Exprs convert_cumsum(NodeContext& context) {
  const Expr x = context.input(0);
  const Span& span = context.span();
  context.check_dtype(x, "data", is_number, "numbers");
  const Shape axes = context.ints(1, "axis");
  if (axes.size() != 1) context.invalid("its axis has {} elements, expected 1", axes.size());
  const auto axis = static_cast<int64_t>(context.axis_of(axes[0], context.rank(x)));
  const bool exclusive = context.flag_attr("exclusive", false), backwards = context.flag_attr("reverse", false);
  const Expr data = backwards ? ops::reverse(x, axis, span) : x;
  const Expr sums = ops::scan("cumsum", data, axis, exclusive, span);
  return {backwards ? ops::reverse(sums, axis, span) : sums};
}

// ONNX TopK (1, 10, 11): the k greatest (least) elements, in order whether that is asked for or not.
Exprs convert_topk(NodeContext& context) {
  const Expr x = context.input(0);
  const bool is_old = context.opset() < 10;
  const Shape k = is_old ? Shape{context.int_attr("k")} : context.ints(1, "K");
  const bool largest = context.flag_attr("largest", true);
  context.flag_attr("sorted", true);
  const size_t axis = context.axis_of(context.int_attr("axis", -1), context.rank(x));
  if (k.size() != 1 || k[0] < 0) context.invalid("its k must be one number that is not negative");
  if (k[0] == 0) context.refuse(HR_REASON_SHAPE_UNSUPPORTED, "a k of 0 is not supported");
  if (k[0] > context.known_dim(x, axis))
    context.invalid("its k is {}, and axis {} has {} elements", k[0], axis, context.known_dim(x, axis));
  const Expr both =
      ops::topk(x, k[0], static_cast<int64_t>(axis), "both", !largest, DataType::int_(64), context.span());
  return {relay::make_tuple_get_item(both, 0, context.span()), relay::make_tuple_get_item(both, 1, context.span())};
}

// ONNX's names of how an update joins an element.
std::string reduction_of(NodeContext& context) {
  const std::string name = context.string_attr("reduction", "none");
  if (name == "none") return "update";
  if (name != "add" && name != "mul" && name != "min" && name != "max")
    context.invalid("attribute 'reduction' is {}", printable(name));
  return name;
}

// The data, joined with the updates by `scatter(data, updates, reduction)`; sums and products are widened.
template <typename F>
Expr scattered(NodeContext& context, F&& scatter) {
  const std::string reduction = reduction_of(context);
  const Expr data = context.input(0), updates = context.input(2);
  if (reduction != "add" && reduction != "mul") return scatter(data, updates, reduction);
  return context.cast(scatter(context.widened(data), context.widened(updates), reduction), context.dtype(data));
}

// ONNX Scatter (9), ScatterElements (11, 13, 16, 18).
Exprs convert_scatter_elements(NodeContext& context) {
  context.check_dtype(context.input(1), "an index", is_index, "int32 or int64");
  const int64_t axis = context.int_attr("axis", 0);
  return {scattered(context, [&](const Expr& data, const Expr& updates, const std::string& reduction) {
    return ops::scatter_elements(data, context.input(1), updates, axis, reduction, context.span());
  })};
}

// ONNX ScatterND (11, 13, 16, 18): the index tuples lie along the last axis of the indices, relay's along the first.
Exprs convert_scatter_nd(NodeContext& context) {
  const Expr indices = context.input(1);
  context.check_dtype(indices, "an index", is_index, "int64");
  const auto rank = static_cast<int64_t>(context.rank(indices));
  if (rank == 0) context.invalid("its indices are a scalar");
  Shape axes{rank - 1};
  for (int64_t i = 0; i + 1 < rank; ++i) axes.push_back(i);
  const Expr places = ops::transpose(indices, axes, context.span());
  return {scattered(context, [&](const Expr& data, const Expr& updates, const std::string& reduction) {
    return ops::scatter_nd(data, places, updates, reduction, context.span());
  })};
}

// ONNX Unique (11), of the elements: as many in front as there are different ones; native code has such tensors as
// outputs of the model alone.
Exprs convert_unique(NodeContext& context) {
  const Span& span = context.span();
  Expr x = context.input(0);
  context.check_dtype(x, "data", is_number, "numbers");
  if (context.has_attr("axis")) {
    const size_t rank = context.rank(x);
    context.axis_of(context.int_attr("axis"), rank);
    if (rank != 1)
      context.refuse(HR_REASON_ATTRIBUTE_UNSUPPORTED, "the different slices along an axis are not supported");
  }
  if (context.rank(x) != 1) x = ops::reshape(x, Shape{-1}, false, span);
  const Expr found = ops::unique(x, context.flag_attr("sorted", true), true, span);
  const auto item = [&](int64_t i) { return Expr(relay::make_tuple_get_item(found, i, span)); };
  const auto in_front = [&](const Expr& data) {
    return ops::strided_slice(data, context.int_constant({1}, {0}), item(3), context.int_constant({1}, {1}), Shape{0},
                              "end", span);
  };
  const auto index = [&](const Expr& data) { return ops::cast(data, DataType::int_(64), span); };
  return {in_front(item(0)), in_front(index(item(1))), index(item(2)), in_front(index(item(4)))};
}

}  // namespace

std::span<const OpRow> sort_rows() {
  static constexpr OpRow kRows[] = {
      {"CumSum", convert_cumsum, 2, 2, 11},
      {"TopK", convert_topk, 1, 2},
      {"Unique", convert_unique, 1, 1, 11},
      {"Scatter", convert_scatter_elements, 3, 3, 9},
      {"ScatterElements", convert_scatter_elements, 3, 3, 11},
      {"ScatterND", convert_scatter_nd, 3, 3, 11},
  };
  return kRows;
}

}  // namespace headrace::onnx
