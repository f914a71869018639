// Attention and RotaryEmbedding, as composites by the formulas of the ONNX specification.
#include <cmath>
#include <limits>
#include <numeric>

#include "frontend/onnx/compositions/attention.h"
#include "frontend/onnx/parts/matmul.h"
#include "frontend/onnx/compositions/rows.h"
#include "ops/nn/normalization.h"
#include "ops/nn/pad.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/join.h"
#include "ops/tensor/reduce.h"
#include "ops/tensor/repeat.h"
#include "ops/tensor/shape.h"
#include "ops/tensor/slice.h"

namespace headrace::onnx {

namespace {

constexpr double kMasked = -std::numeric_limits<double>::infinity();

// Reshapes [batch, sequence, heads * size] to [batch, sequence, heads, size].
Expr with_heads(NodeContext& context, const Expr& x, int64_t heads, std::string_view attribute) {
  const Shape shape = context.known_shape(x);
  if (heads < 1 || shape[2] % heads != 0)
    context.invalid("attribute '{}' is {} for {} numbers a position", attribute, heads, shape[2]);
  return context.reshape(x, Shape{shape[0], shape[1], heads, shape[2] / heads});
}

// ---- RotaryEmbedding

// Returns the cosines or sines of each position, [batch, positions, 1, pairs].
Expr angles(NodeContext& context, size_t i, std::string_view name, const Shape& x, int64_t pairs) {
  const Span& span = context.span();
  Expr table = context.input(i);
  const size_t rank = context.has(3) ? 2 : 3;
  if (context.rank(table) != rank || context.known_dim(table, rank - 1) != pairs)
    context.invalid("its {} is not a table of {} dimensions with {} columns", name, rank, pairs);
  if (context.has(3)) {
    context.check_dtype(context.input(3), "a position", is_index, "int32 or int64");
    if (context.known_shape(context.input(3)) != Shape{x[0], x[1]})
      context.invalid("its position_ids are not {} times {}", x[0], x[1]);
    table = ops::take(table, context.input(3), 0, "fast", 0, span);
  }
  return ops::expand_dims(table, 2, 1, span);
}

// Throws Refused unless the first `size` of all numbers of a head make pairs.
void check_pairs(const NodeContext& context, int64_t size, int64_t all) {
  if (size < 0 || size > all || size % 2 != 0)
    context.invalid("{} of {} numbers of a head are rotated in pairs", size, all);
}

// Rotates pairs of numbers by an angle. The numbers of a pair are adjacent (interleaved), or half a row apart.
Expr rotated(NodeContext& context, const Expr& x, const Expr& cos, const Expr& sin, bool interleaved) {
  const Span& span = context.span();
  const Shape shape = context.known_shape(x);
  Expr pairs = x;
  if (interleaved) pairs = context.reshape(x, Shape{shape[0], shape[1], shape[2], shape[3] / 2, 2});
  const Expr both = ops::split(pairs, 2, -1, span);
  const auto part = [&](int64_t i) {
    const Expr item = relay::make_tuple_get_item(both, i, span);
    return interleaved ? ops::squeeze(item, Shape{-1}, span) : item;
  };
  const Expr a = part(0), b = part(1);
  const Expr real = ops::subtract(ops::multiply(cos, a, span), ops::multiply(sin, b, span), span);
  const Expr imaginary = ops::add(ops::multiply(sin, a, span), ops::multiply(cos, b, span), span);
  if (!interleaved) return ops::concatenate({real, imaginary}, -1, span);
  return context.reshape(ops::stack({real, imaginary}, -1, span), shape);
}

}  // namespace

Expr swap_heads(NodeContext& context, const Expr& x) { return ops::transpose(x, {0, 2, 1, 3}, context.span()); }

Expr rotate_heads(NodeContext& context, const Expr& x, const Expr& cos, const Expr& sin, int64_t size,
                  bool interleaved) {
  const int64_t all = context.known_dim(x, 3);
  check_pairs(context, size, all);
  if (size == all) return rotated(context, x, cos, sin, interleaved);
  const auto slice = [&](int64_t begin, int64_t end) {
    return ops::strided_slice(x, {begin}, {end}, {1}, {3}, "end", context.span());
  };
  return ops::concatenate({rotated(context, slice(0, size), cos, sin, interleaved), slice(size, all)}, 3,
                          context.span());
}

Expr causal_bias(NodeContext& context, int64_t rows, int64_t columns, int64_t past, DataType dtype, double masked) {
  context.check_table_size(rows * columns);
  std::vector<float> bias;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) bias.push_back(j <= i + past ? 0.0F : static_cast<float>(masked));
  }
  const NDArray data = NDArray::from_vector({rows, columns}, DataType::float_(32), bias);
  return context.cast(relay::make_constant(data, context.span()), dtype);
}

namespace {

// ONNX RotaryEmbedding (23).
Exprs convert_rotary_embedding(NodeContext& context) {
  const Expr x = context.input(0);
  context.check_dtype(x, "data", is_float, "floating point");
  const size_t rank = context.rank(x);
  if (rank != 3 && rank != 4) context.invalid("its data has {} dimensions, expected 3 or 4", rank);
  const int64_t heads = context.int_attr("num_heads", 0);
  const Expr all = rank == 4 ? swap_heads(context, x) : with_heads(context, x, heads, "num_heads");
  const Shape shape = context.known_shape(all);
  const int64_t wanted = context.int_attr("rotary_embedding_dim", 0), size = wanted == 0 ? shape[3] : wanted;
  check_pairs(context, size, shape[3]);
  const bool interleaved = context.flag_attr("interleaved", false);
  const Expr cos = angles(context, 1, "cos_cache", shape, size / 2),
             sin = angles(context, 2, "sin_cache", shape, size / 2);
  const Expr result = rotate_heads(context, all, cos, sin, size, interleaved);
  return {rank == 4 ? swap_heads(context, result) : context.reshape(result, context.known_shape(x))};
}

// ---- Attention

// The positions that a query sees of those around its own: so many before and after it, and none after it if causal.
struct Window {
  std::optional<int64_t> before, after;
  bool is_full() const { return !before && !after; }
};

Window window_of(NodeContext& context) {
  Window window;
  if (context.opset() >= 25) {
    for (const auto& [name, side] :
         {std::pair("left_window_size", &window.before), std::pair("right_window_size", &window.after)}) {
      const int64_t size = context.int_attr(name, -1);
      if (size < -1) context.invalid("attribute '{}' is {}", name, size);
      if (size >= 0) *side = size;
    }
  }
  if (context.flag_attr("is_causal", false)) window.after = 0;
  return window;
}

// The operands of attention. 16-bit numbers are computed in float32 and rounded at the end.
struct AttentionParts {
  Expr q, k, v;  // [batch, heads, positions, size], keys and values with those of the past
  DataType dtype, computed;
  int64_t past = 0;  // positions
};

Expr heads_of(NodeContext& context, size_t i, std::string_view attribute) {
  const Expr x = context.input(i);
  if (context.rank(x) == 4) return x;
  return swap_heads(context, with_heads(context, x, context.int_attr(attribute), attribute));
}

Expr after_past(NodeContext& context, size_t i, const Expr& x) {
  return context.has(i) ? ops::concatenate({context.input(i), x}, 2, context.span()) : x;
}

AttentionParts parts_of(NodeContext& context) {
  AttentionParts parts;
  const size_t rank = context.rank(context.input(0));
  for (size_t i = 0; i < 3; ++i) {
    context.check_dtype(context.input(i), "data", is_float, "floating point");
    if (context.rank(context.input(i)) != rank || (rank != 3 && rank != 4))
      context.invalid("Q, K and V have {}, {} and {} dimensions, expected 3 or 4 each", rank,
                      context.rank(context.input(1)), context.rank(context.input(2)));
  }
  if (context.has(4) != context.has(5)) context.invalid("one of past_key and past_value is missing");
  if (rank == 4) context.ignore_attrs({"q_num_heads", "kv_num_heads"});
  parts.q = heads_of(context, 0, "q_num_heads");
  parts.k = after_past(context, 4, heads_of(context, 1, "kv_num_heads"));
  parts.v = after_past(context, 5, heads_of(context, 2, "kv_num_heads"));
  if (context.has(4)) parts.past = context.known_dim(context.input(4), 2);
  parts.dtype = context.dtype(parts.q);
  parts.computed = parts.dtype == DataType::float_(64) ? parts.dtype : DataType::float_(32);
  return parts;
}

// Repeats each head of the keys or values for all heads of queries that share it.
Expr shared_heads(NodeContext& context, const Expr& x, const Expr& q) {
  const int64_t heads = context.known_dim(x, 1), wanted = context.known_dim(q, 1);
  if (heads == wanted) return x;
  if (heads < 1 || wanted % heads != 0)
    context.invalid("{} heads of queries share {} of keys or values", wanted, heads);
  return ops::repeat(x, wanted / heads, 1, context.span());
}

// Converts the mask to a term that is added to the products. Columns that the mask does not have are masked.
Expr mask_bias(NodeContext& context, int64_t columns, DataType dtype) {
  const Span& span = context.span();
  Expr mask = context.input(3);
  if (context.dtype(mask).is_bool())
    mask = ops::where(mask, context.scalar(0, dtype), context.scalar(kMasked, dtype), span);
  mask = context.cast(mask, dtype);
  const size_t rank = context.rank(mask);
  if (rank == 0) context.invalid("its attn_mask is a scalar");
  const int64_t lacking = columns - context.known_dim(mask, rank - 1);
  if (lacking <= 0) return mask;
  Array<Shape> widths(std::vector<Shape>(rank, Shape{0, 0}));
  widths.set(rank - 1, Shape{0, lacking});
  return ops::pad(mask, widths, context.scalar(kMasked, dtype), "constant", span);
}

// Returns the bias of a window around query i, whose position is i + past.
Expr window_bias(NodeContext& context, const Window& window, int64_t rows, int64_t columns, int64_t past,
                 DataType dtype) {
  context.check_table_size(rows * columns);
  std::vector<float> bias;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      const int64_t distance = j - i - past;
      const bool is_seen =
          (!window.before || -distance <= *window.before) && (!window.after || distance <= *window.after);
      bias.push_back(is_seen ? 0.0F : static_cast<float>(kMasked));
    }
  }
  const NDArray data = NDArray::from_vector({rows, columns}, DataType::float_(32), bias);
  return context.cast(relay::make_constant(data, context.span()), dtype);
}

// Returns the bias of a cache that holds nonpad_kv_seqlen positions of each sample, the last of which are those of the
// queries: of a window around each query, and of the positions behind.
Expr cache_bias(NodeContext& context, const Window& window, int64_t rows, int64_t columns, DataType dtype) {
  const Span& span = context.span();
  context.check_dtype(context.input(6), "nonpad_kv_seqlen", is_index, "int64");
  const int64_t batch = context.known_dim(context.input(0), 0);
  if (context.known_shape(context.input(6)) != Shape{batch})
    context.invalid("its nonpad_kv_seqlen are not {}, one for each sample", batch);
  if (context.has(4)) context.invalid("it has both past_key and nonpad_kv_seqlen");
  const auto numbers = [&](const Shape& shape, int64_t first) {
    std::vector<int64_t> values(static_cast<size_t>(num_elements(shape)));
    std::iota(values.begin(), values.end(), first);
    return context.int_constant(shape, values);
  };
  const auto passes = [&](const char* order, const Expr& a, const Expr& b) { return ops::binary(order, a, b, span); };
  const Expr sizes = context.reshape(context.cast(context.input(6), DataType::int_(64)), Shape{batch, 1, 1, 1});
  const Expr at = numbers({1, 1, 1, columns}, 0);
  Expr is_seen = passes("less", at, sizes);
  if (!window.is_full()) {
    const Expr distance = ops::subtract(at, ops::add(sizes, numbers({1, 1, rows, 1}, -rows), span), span);
    const auto add = [&](const char* order, int64_t bound) {
      const Expr limit = context.scalar(static_cast<double>(bound), DataType::int_(64));
      is_seen = passes("logical_and", is_seen, passes(order, distance, limit));
    };
    if (window.before) add("greater_equal", -*window.before);
    if (window.after) add("less_equal", *window.after);
  }
  return ops::where(is_seen, context.scalar(0, dtype), context.scalar(kMasked, dtype), span);
}

// Returns the sum of the mask and the biases of window and cache, which is added to the products; null if there is
// none.
Expr bias_of(NodeContext& context, const AttentionParts& parts) {
  const int64_t rows = context.known_dim(parts.q, 2), columns = context.known_dim(parts.k, 2);
  const Window window = window_of(context);
  const Expr mask = context.has(3) ? mask_bias(context, columns, parts.computed) : Expr();
  Expr other;
  if (context.has(6)) {
    other = cache_bias(context, window, rows, columns, parts.computed);
  } else if (!window.is_full()) {
    other = window_bias(context, window, rows, columns, parts.past, parts.computed);
  }
  return mask && other ? ops::add(mask, other, context.span()) : mask ? mask : other;
}

// Multiplies Q and the transpose of K, each scaled by the square root of the scale in the dtype of the data.
Expr products(NodeContext& context, const AttentionParts& parts) {
  const Span& span = context.span();
  const double size = static_cast<double>(context.known_dim(parts.q, 3));
  const double scale = context.has_attr("scale") ? context.float_attr("scale", 1) : 1 / std::sqrt(size);
  if (!(scale >= 0)) context.invalid("attribute 'scale' is {}, which has no root", scale);
  const Expr root = context.cast(context.scalar(std::sqrt(scale), parts.dtype), parts.computed);
  const Expr q = ops::multiply(context.cast(parts.q, parts.computed), root, span);
  const Expr k = ops::multiply(context.cast(shared_heads(context, parts.k, parts.q), parts.computed), root, span);
  return multiply(context, q, ops::transpose(k, {0, 1, 3, 2}, span));
}

Expr softcapped(NodeContext& context, const Expr& x, double cap) {
  if (cap <= 0) return x;
  const Expr limit = context.scalar(cap, context.dtype(x));
  return ops::multiply(ops::unary("tanh", ops::divide(x, limit, context.span()), context.span()), limit,
                       context.span());
}

// Returns the softmax of each row. A row that is masked completely becomes 0.
Expr weights_of(NodeContext& context, const Expr& x, const Expr& bias) {
  const Span& span = context.span();
  DataType dtype = context.dtype(x);
  if (context.has_attr("softmax_precision")) {
    dtype = context.float_type_attr("softmax_precision", ElementType::kFloat);
  }
  const Expr soft = context.cast(ops::softmax(context.cast(x, dtype), -1, span), context.dtype(x));
  if (!bias) return soft;
  const Expr most = ops::reduce("max", bias, Shape{-1}, true, false, span);
  const Expr is_masked = ops::binary("equal", most, context.scalar(kMasked, context.dtype(bias)), span);
  return ops::where(is_masked, context.scalar(0, context.dtype(x)), soft, span);
}

// ONNX Attention (23, 24, 25): softmax(Q K' scale + bias) V, in groups of heads, with the cached keys and values of
// earlier positions.
Exprs convert_attention(NodeContext& context) {
  const Span& span = context.span();
  const AttentionParts parts = parts_of(context);
  const int64_t shown = context.int_attr("qk_matmul_output_mode", 0);
  if (shown < 0 || shown > 3) context.invalid("attribute 'qk_matmul_output_mode' is {}", shown);
  const Expr raw = products(context, parts);
  const Expr capped = softcapped(context, raw, context.float_attr("softcap", 0));
  const Expr bias = bias_of(context, parts);
  const Expr biased = bias ? ops::add(capped, bias, span) : capped;
  const Expr weights = weights_of(context, biased, bias);
  const Expr values = context.cast(shared_heads(context, parts.v, parts.q), parts.computed);
  Expr result = context.cast(multiply(context, weights, values), parts.dtype);
  if (context.rank(context.input(0)) == 3) {
    const Shape shape = context.known_shape(result);
    result = context.reshape(swap_heads(context, result), Shape{shape[0], shape[2], shape[1] * shape[3]});
  }
  const Expr stages[] = {raw, capped, biased, weights};
  return {result, parts.k, parts.v, context.cast(stages[shown], parts.dtype)};
}

}  // namespace

std::span<const OpRow> composed_attention_rows() {
  static constexpr OpRow kRows[] = {
      {"Attention", convert_attention, 3, 7, 23},
      {"RotaryEmbedding", convert_rotary_embedding, 3, 4, 23},
  };
  return kRows;
}

}  // namespace headrace::onnx
