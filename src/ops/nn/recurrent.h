// Recurrent layers: nn.lstm, nn.gru and nn.rnn by the formulas of the ONNX specification, and nn.recurrent_steps, the
// loop over the steps that is left of them when their inputs have been multiplied by the weights.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

// Attributes of nn.lstm, nn.gru and nn.rnn.
struct RecurrentAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.RecurrentAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<RecurrentAttrs>& f);
  std::string direction = "forward";
  Array<std::string> activations;
  Array<double> activation_alpha, activation_beta;
  double clip = 0;
  bool input_forget = false;
  bool linear_before_reset = false;
};

// Attributes of nn.recurrent_steps: those of the layer, which layer it is, and how its loops are cut.
struct RecurrentStepsAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.RecurrentStepsAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<RecurrentStepsAttrs>& f);
  std::string cell = "lstm";
  bool all_steps = false;
  int64_t rows = 1;
  std::string direction = "forward";
  Array<std::string> activations;
  Array<double> activation_alpha, activation_beta;
  double clip = 0;
  bool input_forget = false;
  bool linear_before_reset = false;
};

enum class RecurrentCell : uint8_t { lstm, gru, rnn };

// Returns the gates of a cell, whose rows follow each other in weights and biases: input, output, forget and cell of an
// LSTM; update, reset and hidden of a GRU; one of a plain RNN.
int64_t gates_of(RecurrentCell cell);

enum class Activation : uint8_t {
  affine,            // alpha * x + beta
  elu,               // x where x >= 0, else alpha * (exp(x) - 1)
  hard_sigmoid,      // min(max(alpha * x + beta, 0), 1)
  leaky_relu,        // x where x > 0, else alpha * x
  relu,              // max(x, 0)
  scaled_tanh,       // alpha * tanh(beta * x)
  sigmoid,           // 1 / (1 + exp(-x))
  softplus,          // log(1 + exp(x))
  softsign,          // x / (1 + |x|)
  tanh,              // tanh(x)
  thresholded_relu,  // x where x >= alpha, else 0
};

// Which of its two numbers an activation uses, and their defaults. Without a default the number must be given.
struct ActivationFacts {
  std::string_view name;  // as in the attribute `activations`
  Activation activation;
  bool has_alpha = false, has_beta = false;
  std::optional<double> alpha = {}, beta = {};
};
// Returns the row of an activation by its name; null for an unknown name.
const ActivationFacts* find_activation(std::string_view name);

struct CellActivation {
  Activation activation = Activation::tanh;
  double alpha = 0, beta = 0;
};

// A layer as its loops see it.
struct RecurrentForm {
  // One direction of the layer. f is that of the gates, g that of the new values, h that of an LSTM's result.
  struct Direction {
    bool is_reversed = false;
    CellActivation f = {}, g = {}, h = {};
  };
  RecurrentCell cell = RecurrentCell::lstm;
  std::vector<Direction> directions = {};
  double clip = 0;  // 0: none
  bool input_forget = false;
  bool linear_before_reset = false;
  bool all_steps = false;  // every sequence has all steps, whatever sequence_lens says
  int64_t rows = 1;        // rows of the batch that share each weight as it is read

  int64_t gates() const { return gates_of(cell); }
  // Returns whether the bias of the hidden gate is added before the reset gate multiplies.
  bool resets_product() const { return cell == RecurrentCell::gru && linear_before_reset; }
};

// Return the form of a call whose type relation has checked it.
RecurrentForm recurrent_form(RecurrentCell cell, const RecurrentAttrs& attrs);
RecurrentForm recurrent_form(const RecurrentStepsAttrs& attrs);

// The operands of a layer, in the order of the op's arguments. An LSTM has the last two.
struct RecurrentOperands {
  Expr data, weight, recurrent, bias = {}, sequence_lens = {}, initial_h = {}, initial_c = {}, peephole = {};
};
// Makes nn.lstm, nn.gru or nn.rnn.
Expr recurrent_layer(RecurrentCell cell, RecurrentOperands operands, RecurrentAttrs attrs = {}, Span span = {});

// The operands of nn.recurrent_steps. An LSTM has the initial cell and the peepholes, a GRU has the bias.
struct StepsOperands {
  Expr projected, recurrent, sequence_lens, initial_h, initial_c = {}, peephole = {}, recurrent_bias = {};
};
// The attributes that nn.recurrent_steps has beside those of its layer.
struct StepsPlan {
  bool all_steps = false;
  int64_t rows = 1;
};
// Makes nn.recurrent_steps of a layer's attributes.
Expr recurrent_steps(RecurrentCell cell, StepsOperands operands, const RecurrentAttrs& layer, StepsPlan plan,
                     Span span = {});

}  // namespace headrace::ops
