// Attention, MultiHeadAttention and RotaryEmbedding of the domain com.microsoft, as composites by the definitions of
// docs/ContribOperators.md of onnxruntime.
#include <cmath>
#include <limits>
#include <numeric>

#include "arith/canonical.h"
#include "frontend/onnx/compositions/attention.h"
#include "frontend/onnx/parts/matmul.h"
#include "frontend/onnx/compositions/rows.h"
#include "ops/nn/normalization.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/join.h"
#include "ops/tensor/shape.h"
#include "ops/tensor/slice.h"

namespace headrace::onnx {

namespace {

using Dims = std::vector<PrimExpr>;

// Operands of attention, [batch, heads, positions, size], keys and values with those of the past.
struct HeadOperands {
  Expr q, k, v;
  int64_t past = 0;  // positions
};

int64_t head_count(NodeContext& context) {
  const int64_t heads = context.int_attr("num_heads");
  if (heads < 1) context.invalid("attribute 'num_heads' is {}, expected 1 or more", heads);
  return heads;
}

// Reshapes [batch, positions, heads * size] to [batch, heads, positions, size].
Expr into_heads(NodeContext& context, const Expr& x, int64_t heads) {
  const Dims sizes = context.dims(x);
  const int64_t width = context.known_dim(x, 2);
  if (width % heads != 0) context.invalid("{} numbers a position do not make {} heads", width, heads);
  return swap_heads(context, context.reshape(x, Dims{sizes[0], sizes[1], make_int(heads), make_int(width / heads)}));
}

// The reverse of into_heads.
Expr out_of_heads(NodeContext& context, const Expr& x) {
  const Expr swapped = swap_heads(context, x);
  const Dims sizes = context.dims(swapped);
  const int64_t width = context.known_dim(swapped, 2) * context.known_dim(swapped, 3);
  return context.reshape(swapped, Dims{sizes[0], sizes[1], make_int(width)});
}

Expr after_past_of(NodeContext& context, size_t i, const Expr& x) {
  return context.has(i) ? ops::concatenate({context.input(i), x}, 2, context.span()) : x;
}

// Returns items of a split along an axis, at these places.
Exprs split_at(NodeContext& context, const Expr& x, const Shape& places, int64_t axis) {
  const Expr parts = ops::split(x, places, axis, context.span());
  Exprs items;
  for (int64_t i = 0; i <= std::ssize(places); ++i)
    items.push_back(relay::make_tuple_get_item(parts, i, context.span()));
  return items;
}

// ---- Masks

// Returns whether the positions 0, 1, ... of keys lie before each end, [batch, 1, 1, columns]; `starts` may be null.
Expr before_ends(NodeContext& context, const Expr& ends, const Expr& starts, int64_t columns) {
  const Span& span = context.span();
  context.check_table_size(columns);
  std::vector<int64_t> positions(static_cast<size_t>(columns));
  std::iota(positions.begin(), positions.end(), 0);
  const Expr each = context.cast(context.int_constant({columns}, positions), context.dtype(ends));
  const auto column = [&](const Expr& x) { return ops::expand_dims(x, 1, 3, span); };
  const Expr inside = ops::binary("less", each, column(ends), span);
  if (!starts) return inside;
  return ops::binary("logical_and", inside, ops::binary("greater_equal", each, column(starts), span), span);
}

// Returns the mask of a list of lengths, or with `has_starts` of as many ends followed by starts.
Expr mask_of_lengths(NodeContext& context, const Expr& mask, int64_t batch, int64_t columns, bool has_starts) {
  const int64_t count = context.known_dim(mask, 0);
  if (count == batch) return before_ends(context, mask, Expr(), columns);
  if (has_starts && count == 2 * batch) {
    const Exprs parts = split_at(context, mask, Shape{batch}, 0);
    return before_ends(context, parts[0], parts[1], columns);
  }
  context.refuse(HR_REASON_SHAPE_UNSUPPORTED,
                 "a mask of {} numbers for a batch of {} (cumulated lengths, of CUDA kernels) is not supported", count,
                 batch);
}

// Returns the mask of as many dimensions as it has, as bools that broadcast to the products [batch, heads, rows,
// columns]; null for one that masks nothing.
Expr mask_in_shape(NodeContext& context, const Expr& mask, const HeadOperands& operands, bool is_merged) {
  const Span& span = context.span();
  const int64_t columns = context.known_dim(operands.k, 2), rows = context.known_dim(operands.q, 2);
  const size_t rank = context.rank(mask);
  if (rank == 1) return mask_of_lengths(context, mask, context.known_dim(operands.q, 0), columns, is_merged);
  if (rank < 1 || rank > (is_merged ? 4U : 3U)) context.invalid("its mask has {} dimensions", rank);
  if (is_merged && rank == 2 && columns != 1 && is_int(context.dims(mask)[1], 1)) return {};
  const int64_t width = context.known_dim(mask, rank - 1);
  if (rank < 4 ? width != columns : width < columns)
    context.invalid("its mask has {} columns for {} positions of keys", width, columns);
  Expr shown = mask;
  if (rank == 4) {
    const int64_t past = operands.past;
    shown = ops::strided_slice(mask, {past, 0}, {past + rows, columns}, {1, 1}, {2, 3}, "end", span);
  }
  const Expr seen = ops::binary("greater", shown, context.scalar(0, context.dtype(mask)), span);
  return rank == 4 ? seen : ops::expand_dims(seen, 1, rank == 2 ? 2 : 1, span);
}

// Returns what is added to the scaled products: the mask's filter value where it hides a key, the causal mask, and
// the bias in input `bias`; null if there is none of them.
Expr added_to_products(NodeContext& context, const HeadOperands& operands, size_t mask, size_t bias, DataType dtype,
                       bool is_merged) {
  const Span& span = context.span();
  const double filter = context.float_attr("mask_filter_value", -10000);
  Expr sum = context.has(bias) ? context.cast(context.input(bias), dtype) : Expr();
  const auto add = [&](const Expr& term) { sum = sum ? ops::add(sum, term, span) : term; };
  if (context.has(mask)) {
    context.check_dtype(context.input(mask), "a mask", is_index, "int32");
    const Expr seen = mask_in_shape(context, context.input(mask), operands, is_merged);
    if (seen) add(ops::where(seen, context.scalar(0, dtype), context.scalar(filter, dtype), span));
  }
  if (!context.flag_attr("unidirectional", false)) return sum;
  const int64_t rows = context.known_dim(operands.q, 2), columns = context.known_dim(operands.k, 2);
  if (rows + operands.past != columns)
    context.refuse(HR_REASON_ATTRIBUTE_UNSUPPORTED,
                   "unidirectional attention of {} queries to {} keys of other positions is not supported", rows,
                   columns);
  add(causal_bias(context, rows, columns, operands.past, dtype, std::numeric_limits<float>::lowest()));
  return sum;
}

// ---- The operators

struct Attended {
  Expr result;    // [batch, positions, heads * size], in the dtype of the operands
  Expr products;  // scaled, with all that is added
};

// Computes softmax(Q K' scale + added) V. 16-bit numbers are computed in float32 and rounded at the end.
Attended attend(NodeContext& context, const HeadOperands& operands, size_t mask, size_t bias, bool is_merged) {
  const Span& span = context.span();
  const DataType dtype = context.dtype(operands.q);
  const double given = context.float_attr("scale", 0);
  const double scale = given != 0 ? given : 1 / std::sqrt(static_cast<double>(context.known_dim(operands.q, 3)));
  const Expr q = context.widened(operands.q), k = context.widened(operands.k), v = context.widened(operands.v);
  const DataType wide = context.dtype(q);
  Expr products =
      ops::multiply(multiply(context, q, ops::transpose(k, {0, 1, 3, 2}, span)), context.scalar(scale, wide), span);
  if (const Expr added = added_to_products(context, operands, mask, bias, wide, is_merged))
    products = ops::add(products, added, span);
  const Expr result = multiply(context, ops::softmax(products, -1, span), v);
  return {out_of_heads(context, context.cast(result, dtype)), products};
}

// Returns where the numbers of Q end, and those of K, in [Q | K | V] of that width.
Shape ends_of_parts(NodeContext& context, int64_t width) {
  const Shape sizes = context.ints_attr("qkv_hidden_sizes").value_or(Shape(3, width / 3));
  bool fits = sizes.size() == 3 && sizes[0] == sizes[1];
  int64_t rest = width;
  for (const int64_t size : sizes) {
    fits = fits && size > 0 && size <= rest;
    rest -= fits ? size : 0;
  }
  if (!fits || rest != 0)
    context.invalid("the sizes [{}] of Q, K and V do not make the {} columns of its weights", fmt::join(sizes, ", "),
                    width);
  return {sizes[0], sizes[0] + sizes[1]};
}

void refuse_flag(NodeContext& context, std::string_view name) {
  if (context.flag_attr(name, false))
    context.refuse(HR_REASON_ATTRIBUTE_UNSUPPORTED, "attribute '{}' is not supported", name);
}

void refuse_input(NodeContext& context, size_t i, std::string_view name) {
  if (context.has(i)) context.refuse(HR_REASON_ATTRIBUTE_UNSUPPORTED, "its input {} '{}' is not supported", i, name);
}

// Attention: x[batch, positions, input], weights and bias of Q, K and V side by side, mask, past[2, batch, heads,
// positions, size], and what is added to the products. Gives the result, and keys and values like the past.
Exprs convert_microsoft_attention(NodeContext& context) {
  const Span& span = context.span();
  const Expr x = context.input(0), weights = context.input(1);
  context.check_dtype(x, "data", is_float, "floating point");
  if (context.rank(x) != 3 || context.rank(weights) != 2)
    context.invalid("its input has {} and its weights {} dimensions, expected 3 and 2", context.rank(x),
                    context.rank(weights));
  for (const std::string_view name : {"do_rotary", "past_present_share_buffer"}) refuse_flag(context, name);
  context.ignore_attrs({"rotary_embedding_dim"});  // only do_rotary uses it
  refuse_input(context, 6, "past_sequence_length");
  const int64_t heads = head_count(context);
  Expr all = multiply(context, x, weights);
  if (context.has(2)) all = ops::add(all, context.input(2), span);
  const Exprs parts = split_at(context, all, ends_of_parts(context, context.known_dim(weights, 1)), 2);
  HeadOperands operands{.q = into_heads(context, parts[0], heads),
                        .k = into_heads(context, parts[1], heads),
                        .v = into_heads(context, parts[2], heads)};
  if (context.has(4)) {
    if (context.rank(context.input(4)) != 5)
      context.invalid("its past has {} dimensions, expected 5", context.rank(context.input(4)));
    operands.past = context.known_dim(context.input(4), 3);
    const Exprs past = split_at(context, context.input(4), Shape{1}, 0);
    const auto after = [&](size_t i, const Expr& own) {
      return ops::concatenate({ops::squeeze(past[i], Shape{0}, span), own}, 2, span);
    };
    operands.k = after(0, operands.k);
    operands.v = after(1, operands.v);
  }
  const Attended attended = attend(context, operands, 3, 5, true);
  return {attended.result, context.wants(1) ? ops::stack({operands.k, operands.v}, 0, span) : Expr()};
}

// Returns the parts of x[batch, positions, heads, count, size] as [batch, heads, positions, size].
Exprs packed_parts(NodeContext& context, const Expr& x, int64_t count, int64_t heads) {
  if (context.known_dim(x, 2) != heads || context.known_dim(x, 3) != count)
    context.invalid("its packed input {} does not have {} heads of {} parts", to_string(context.type(x)), heads, count);
  Shape places;
  for (int64_t i = 1; i < count; ++i) places.push_back(i);
  Exprs parts;
  for (const Expr& part : split_at(context, x, places, 3))
    parts.push_back(swap_heads(context, ops::squeeze(part, Shape{3}, context.span())));
  return parts;
}

// Returns the parts of the bias of Q, K and V; none if there is no bias.
Exprs bias_parts(NodeContext& context, int64_t width) {
  if (!context.has(3)) return {};
  const Expr bias = context.input(3);
  if (context.rank(bias) != 1 || context.known_dim(bias, 0) <= 2 * width)
    context.invalid("its bias {} is not one of Q, K and V, where Q has {} numbers", to_string(context.type(bias)),
                    width);
  return split_at(context, bias, Shape{width, 2 * width}, 0);
}

// Returns a tensor of heads, its part of the bias added.
Expr biased_heads(NodeContext& context, const Expr& x, const Exprs& bias, size_t i, int64_t heads) {
  return into_heads(context, bias.empty() ? x : ops::add(x, bias[i], context.span()), heads);
}

// Q, K and V in one tensor [batch, positions, heads, 3, size].
HeadOperands packed_operands(NodeContext& context, int64_t heads) {
  const Span& span = context.span();
  Expr x = context.input(0);
  if (context.has(1) || context.has(2)) context.invalid("its query is packed, but it has a key or a value");
  const int64_t size = context.known_dim(x, 4);
  if (context.has(3)) {
    const Expr bias = context.reshape(context.input(3), Shape{3, heads, size});
    x = ops::add(x, ops::transpose(bias, {1, 0, 2}, span), span);
  }
  const Exprs parts = packed_parts(context, x, 3, heads);
  return {.q = parts[0], .k = parts[1], .v = parts[2]};
}

// Returns Q, K and V, of the forms that the inputs have: Q [batch, positions, width], K and V alike, packed in one
// tensor, or with heads already.
HeadOperands operands_of(NodeContext& context, int64_t heads) {
  const size_t rank = context.rank(context.input(0));
  if (rank == 5) return packed_operands(context, heads);
  if (rank != 3) context.invalid("its query has {} dimensions, expected 3 or 5", rank);
  const Expr q = context.input(0), k = context.input(1);
  const size_t key_rank = context.rank(k);
  if (key_rank == 3 && context.rank(context.input(2)) == 3) {
    const Exprs bias = bias_parts(context, context.known_dim(q, 2));
    return {.q = biased_heads(context, q, bias, 0, heads),
            .k = biased_heads(context, k, bias, 1, heads),
            .v = biased_heads(context, context.input(2), bias, 2, heads)};
  }
  if (context.has(3)) context.invalid("it has a bias, but its key is packed or has heads already");
  if (key_rank == 4 && context.rank(context.input(2)) == 4)
    return {.q = into_heads(context, q, heads), .k = k, .v = context.input(2)};
  if (key_rank != 5 || context.has(2))
    context.invalid("its key has {} dimensions; with a value both have 3 or 4, without one the key has 5", key_rank);
  const Exprs parts = packed_parts(context, k, 2, heads);
  return {.q = into_heads(context, q, heads), .k = parts[0], .v = parts[1]};
}

// MultiHeadAttention: query, key, value, bias, mask, what is added to the products, and past keys and values. Gives the
// result, all keys and values, and the products before the softmax.
Exprs convert_multi_head_attention(NodeContext& context) {
  context.check_dtype(context.input(0), "data", is_float, "floating point");
  refuse_input(context, 8, "past_sequence_length");
  refuse_input(context, 9, "cache_indirection");
  if (context.has(6) != context.has(7)) context.invalid("one of past_key and past_value is missing");
  HeadOperands operands = operands_of(context, head_count(context));
  if (context.has(6)) {
    if (context.rank(context.input(6)) != 4)
      context.invalid("its past_key has {} dimensions, expected 4", context.rank(context.input(6)));
    operands.past = context.known_dim(context.input(6), 2);
  }
  operands.k = after_past_of(context, 6, operands.k);
  operands.v = after_past_of(context, 7, operands.v);
  const Attended attended = attend(context, operands, 4, 5, false);
  return {attended.result, operands.k, operands.v, attended.products};
}

// ---- RotaryEmbedding

// Returns the angles of each position, [batch or 1, positions, 1, pairs]: rows of a table, at the given positions or
// from a given one on.
Expr angles_at(NodeContext& context, size_t table, int64_t positions, int64_t pairs) {
  const Span& span = context.span();
  const Expr rows = context.input(table);
  if (context.rank(rows) != 2 || context.known_dim(rows, 1) != pairs)
    context.invalid("its {} {} is not a table of {} columns", table == 2 ? "cos_cache" : "sin_cache",
                    to_string(context.type(rows)), pairs);
  Expr ids = context.input(1);
  context.check_dtype(ids, "a position", is_index, "int32 or int64");
  if (context.rank(ids) < 2) {
    std::vector<int64_t> steps(static_cast<size_t>(positions));
    std::iota(steps.begin(), steps.end(), 0);
    const Expr each = context.cast(context.int_constant({1, positions}, steps), context.dtype(ids));
    ids = ops::add(each, context.one_number(1, "position_ids"), span);
  } else if (context.rank(ids) > 2 || context.known_dim(ids, 1) != positions) {
    context.invalid("its position_ids {} do not fit {} positions", to_string(context.type(ids)), positions);
  }
  return ops::expand_dims(ops::take(rows, ids, 0, "fast", 0, span), 2, 1, span);
}

// RotaryEmbedding: x[batch, positions, heads * size] or [batch, heads, positions, size], positions, tables of cosines
// and sines. Without rotary_embedding_dim a head is as wide as the tables rotate.
Exprs convert_microsoft_rotary_embedding(NodeContext& context) {
  const Expr x = context.input(0);
  context.check_dtype(x, "data", is_float, "floating point");
  refuse_flag(context, "is_packed_batching");
  if (const double scale = context.float_attr("scale", 1); scale != 1)
    context.refuse(HR_REASON_ATTRIBUTE_UNSUPPORTED, "attribute 'scale' is {}; only 1 is supported", scale);
  const size_t rank = context.rank(x);
  if (rank != 3 && rank != 4) context.invalid("its data has {} dimensions, expected 3 or 4", rank);
  if (context.rank(context.input(2)) != 2)
    context.invalid("its cos_cache has {} dimensions, expected 2", context.rank(context.input(2)));
  const int64_t wanted = context.int_attr("rotary_embedding_dim", 0), heads = context.int_attr("num_heads", 0);
  if (wanted < 0 || wanted > INT32_MAX || wanted % 2 != 0 || heads < 0)
    context.invalid("attribute 'rotary_embedding_dim' is {} and 'num_heads' {}", wanted, heads);
  if (wanted > 0 && heads == 0) context.invalid("attribute 'num_heads' is missing, which 'rotary_embedding_dim' needs");
  const int64_t size = wanted > 0 ? wanted : 2 * context.known_dim(context.input(2), 1);
  Expr all;
  if (rank == 4) {
    all = swap_heads(context, x);
  } else {
    const int64_t width = context.known_dim(x, 2);
    if (wanted == 0 && (size == 0 || width % size != 0))
      context.invalid("{} numbers a position do not make heads of {}", width, size);
    all = swap_heads(context, into_heads(context, x, wanted > 0 ? heads : width / size));
  }
  const int64_t positions = context.known_dim(all, 1);
  context.check_table_size(positions);
  const Expr cos = angles_at(context, 2, positions, size / 2), sin = angles_at(context, 3, positions, size / 2);
  const Expr result = rotate_heads(context, all, cos, sin, size, context.flag_attr("interleaved", false));
  return {rank == 4 ? swap_heads(context, result) : context.reshape(result, context.dims(x))};
}

}  // namespace

std::span<const OpRow> microsoft_attention_rows() {
  static constexpr OpRow kRows[] = {
      {"Attention", convert_microsoft_attention, 2, 7},
      {"MultiHeadAttention", convert_multi_head_attention, 1, 10},
      {"RotaryEmbedding", convert_microsoft_rotary_embedding, 4, 4},
  };
  return kRows;
}

}  // namespace headrace::onnx
