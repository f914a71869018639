// LSTM, GRU and RNN.
#include <algorithm>

#include "frontend/onnx/file/field_reader.h"
#include "frontend/onnx/single/rows.h"
#include "ops/nn/recurrent.h"
#include "ops/tensor/shape.h"

namespace headrace::onnx {

namespace {

using ops::RecurrentCell;

// "LeakyRelu", in any case, becomes "leaky_relu".
std::string activation_name(NodeContext& context, std::string_view given) {
  static constexpr std::pair<std::string_view, std::string_view> kNames[] = {{"affine", "affine"},
                                                                             {"elu", "elu"},
                                                                             {"hardsigmoid", "hard_sigmoid"},
                                                                             {"leakyrelu", "leaky_relu"},
                                                                             {"relu", "relu"},
                                                                             {"scaledtanh", "scaled_tanh"},
                                                                             {"sigmoid", "sigmoid"},
                                                                             {"softplus", "softplus"},
                                                                             {"softsign", "softsign"},
                                                                             {"tanh", "tanh"},
                                                                             {"thresholdedrelu", "thresholded_relu"}};
  std::string lower(given);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  const auto* row = std::find_if(std::begin(kNames), std::end(kNames), [&](const auto& r) { return r.first == lower; });
  if (row == std::end(kNames))
    context.invalid("attribute 'activations' names {}, which is not an activation", printable(given));
  return std::string(row->second);
}

Array<double> numbers_attr(NodeContext& context, std::string_view name) {
  Array<double> numbers;
  for (const float number : context.floats_attr(name).value_or(std::vector<float>()))
    numbers.push_back(static_cast<double>(number));
  return numbers;
}

ops::RecurrentAttrs layer_attrs(NodeContext& context, RecurrentCell cell) {
  ops::RecurrentAttrs attrs;
  attrs.direction = context.string_attr("direction", "forward");
  for (const std::string_view name : context.strings_attr("activations"))
    attrs.activations.push_back(activation_name(context, name));
  attrs.activation_alpha = numbers_attr(context, "activation_alpha");
  attrs.activation_beta = numbers_attr(context, "activation_beta");
  attrs.clip = context.float_attr("clip", 0);
  if (context.has_attr("clip") && attrs.clip == 0)
    context.refuse(HR_REASON_ATTRIBUTE_UNSUPPORTED, "clip is 0, which leaves every gate 0; leave it out for no clip");
  if (cell == RecurrentCell::lstm) attrs.input_forget = context.flag_attr("input_forget", false);
  if (cell == RecurrentCell::gru) attrs.linear_before_reset = context.flag_attr("linear_before_reset", false);
  return attrs;
}

// The sizes of a layer.
struct LayerShape {
  int64_t steps, batch, directions, hidden;
};

LayerShape shape_of(NodeContext& context, const Expr& data) {
  const Expr weights = context.input(2);
  if (context.rank(data) != 3 || context.rank(weights) != 3)
    context.invalid("its inputs X and R have {} and {} dimensions, expected 3 each", context.rank(data),
                    context.rank(weights));
  const LayerShape shape{context.known_dim(data, 0), context.known_dim(data, 1), context.known_dim(weights, 0),
                         context.known_dim(weights, 2)};
  const int64_t hidden = context.int_attr("hidden_size", shape.hidden);
  if (hidden != shape.hidden)
    context.invalid("attribute 'hidden_size' is {}, but its input R is for {}", hidden, shape.hidden);
  return shape;
}

// Returns the number of elements, or INT64_MAX where that is greater than any tensor has.
int64_t count_up_to_most(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) {
    if (__builtin_mul_overflow(count, size, &count)) return INT64_MAX;
  }
  return count;
}

// Returns the lengths of sequences that have all steps.
Expr all_steps(const NodeContext& context, const LayerShape& s) {
  context.check_table_size(s.batch);
  const std::vector<int32_t> lengths(static_cast<size_t>(s.batch), static_cast<int32_t>(s.steps));
  return relay::make_constant(NDArray::from_vector({s.batch}, DataType::int_(32), lengths), context.span());
}

// Converts an LSTM, GRU or RNN (7, 14, 22). An input that is left out becomes zeros, or all steps of each sequence.
Exprs convert_layer(NodeContext& context, RecurrentCell cell) {
  const Span& span = context.span();
  context.check_dtype(context.input(0), "data", is_float, "floating point");
  const bool is_batch_first = context.flag_attr("layout", false);
  context.ignore_attrs({"output_sequence"});  // opset 1 has it; it says whether output 0 is used
  const auto swapped = [&](const Expr& x) { return is_batch_first ? ops::transpose(x, {1, 0, 2}, span) : x; };
  const Expr data = swapped(context.input(0));
  const LayerShape s = shape_of(context, data);
  const DataType dtype = context.dtype(data);
  const auto given = [&](size_t i, const Shape& shape) {
    if (context.has(i)) return context.input(i);
    context.check_table_size(count_up_to_most(shape));
    return Expr(relay::make_constant(NDArray::zeros(shape, dtype), span));
  };
  const auto state = [&](size_t i) {
    return context.has(i) ? swapped(context.input(i)) : given(i, {s.directions, s.batch, s.hidden});
  };
  ops::RecurrentOperands operands{.data = data, .weight = context.input(1), .recurrent = context.input(2)};
  operands.bias = given(3, {s.directions, 2 * ops::gates_of(cell) * s.hidden});
  operands.sequence_lens = context.has(4) ? context.input(4) : all_steps(context, s);
  operands.initial_h = state(5);
  if (cell == RecurrentCell::lstm) {
    operands.initial_c = state(6);
    operands.peephole = given(7, {s.directions, 3 * s.hidden});
  }
  const Expr layer = ops::recurrent_layer(cell, operands, layer_attrs(context, cell), span);
  const auto item = [&](int64_t i) { return Expr(relay::make_tuple_get_item(layer, i, span)); };
  Exprs results{is_batch_first ? ops::transpose(item(0), {2, 0, 1, 3}, span) : item(0), swapped(item(1))};
  if (cell == RecurrentCell::lstm) results.push_back(swapped(item(2)));
  return results;
}

Exprs convert_lstm(NodeContext& context) { return convert_layer(context, RecurrentCell::lstm); }
Exprs convert_gru(NodeContext& context) { return convert_layer(context, RecurrentCell::gru); }
Exprs convert_rnn(NodeContext& context) { return convert_layer(context, RecurrentCell::rnn); }

}  // namespace

std::span<const OpRow> recurrent_rows() {
  static constexpr OpRow kRows[] = {
      {"LSTM", convert_lstm, 3, 8},
      {"GRU", convert_gru, 3, 6},
      {"RNN", convert_rnn, 3, 6},
  };
  return kRows;
}

}  // namespace headrace::onnx
