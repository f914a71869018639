#include "ops/nn/recurrent.h"

#include <algorithm>
#include <cmath>

#include "arith/canonical.h"
#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/nn/normalization.h"
#include "ops/nn/recurrent_eval.h"
#include "ops/work.h"

namespace headrace::ops {

namespace {

// The attributes that a layer and its steps share.
template <typename A>
void layer_fields(FieldList<A>& f) {
  f.template field<&A::direction>(
       "direction",
       {.default_value = std::string("forward"), .has_default = true, .doc = "forward, reverse or bidirectional"})
      .template field<&A::activations>(
          "activations",
          {.default_value = Array<std::string>(),
           .has_default = true,
           .doc =
               "those of each direction in turn: of an LSTM those of the gates, of n and of c, of a GRU those of the "
               "gates and of n, of an RNN that of h; empty: as in the formulas"})
      .template field<&A::activation_alpha>(
          "activation_alpha",
          {.default_value = Array<double>(),
           .has_default = true,
           .doc = "alpha of those activations that have one, in their order; the rest take their default"})
      .template field<&A::activation_beta>(
          "activation_beta",
          {.default_value = Array<double>(), .has_default = true, .doc = "beta of those activations that have one"})
      .template field<&A::clip>("clip",
                                {.default_value = 0.0,
                                 .has_default = true,
                                 .doc = "limits what the activations of gates take to [-clip, clip]; 0: no limit"})
      .template field<&A::input_forget>(
          "input_forget",
          {.default_value = false, .has_default = true, .doc = "the forget gate of an LSTM is 1 - its input gate"})
      .template field<&A::linear_before_reset>(
          "linear_before_reset",
          {.default_value = false, .has_default = true, .doc = "the reset gate of a GRU multiplies h R' + b, not h"});
}

}  // namespace

void RecurrentAttrs::fields(FieldList<RecurrentAttrs>& f) { layer_fields(f); }

void RecurrentStepsAttrs::fields(FieldList<RecurrentStepsAttrs>& f) {
  f.field<&RecurrentStepsAttrs::cell>(
       "cell", {.default_value = std::string("lstm"), .has_default = true, .doc = "lstm, gru or rnn"})
      .field<&RecurrentStepsAttrs::all_steps>("all_steps",
                                              {.default_value = false,
                                               .has_default = true,
                                               .doc = "every sequence has all steps; sequence_lens is not read"})
      .field<&RecurrentStepsAttrs::rows>("rows",
                                         {.default_value = int64_t{1},
                                          .has_default = true,
                                          .doc = "rows of the batch that share each weight as it is read, 1 to 64; "
                                                 "speed only"});
  layer_fields(f);
}

int64_t gates_of(RecurrentCell cell) { return cell == RecurrentCell::lstm ? 4 : cell == RecurrentCell::gru ? 3 : 1; }

const ActivationFacts* find_activation(std::string_view name) {
  static constexpr ActivationFacts kRows[] = {
      {.name = "affine", .activation = Activation::affine, .has_alpha = true, .has_beta = true},
      {.name = "elu", .activation = Activation::elu, .has_alpha = true, .alpha = 1.0},
      {.name = "hard_sigmoid",
       .activation = Activation::hard_sigmoid,
       .has_alpha = true,
       .has_beta = true,
       .alpha = 0.2,
       .beta = 0.5},
      {.name = "leaky_relu", .activation = Activation::leaky_relu, .has_alpha = true, .alpha = 0.01},
      {.name = "relu", .activation = Activation::relu},
      {.name = "scaled_tanh", .activation = Activation::scaled_tanh, .has_alpha = true, .has_beta = true},
      {.name = "sigmoid", .activation = Activation::sigmoid},
      {.name = "softplus", .activation = Activation::softplus},
      {.name = "softsign", .activation = Activation::softsign},
      {.name = "tanh", .activation = Activation::tanh},
      {.name = "thresholded_relu", .activation = Activation::thresholded_relu, .has_alpha = true, .alpha = 1.0},
  };
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows), [&](const auto& r) { return r.name == name; });
  return row == std::end(kRows) ? nullptr : row;
}

namespace {

std::optional<RecurrentCell> find_cell(std::string_view name) {
  if (name == "lstm") return RecurrentCell::lstm;
  if (name == "gru") return RecurrentCell::gru;
  if (name == "rnn") return RecurrentCell::rnn;
  return std::nullopt;
}

size_t activations_of(RecurrentCell cell) {
  return cell == RecurrentCell::lstm ? 3 : cell == RecurrentCell::gru ? 2 : 1;
}

template <typename A>
size_t count_directions(const A& attrs) {
  return attrs.direction == "bidirectional" ? 2 : 1;
}

template <typename A>
std::vector<std::string> activation_names(RecurrentCell cell, const A& attrs) {
  if (!attrs.activations.empty()) return attrs.activations.to_vector();
  std::vector<std::string> names;
  for (size_t i = 0; i < count_directions(attrs); ++i) {
    if (cell != RecurrentCell::rnn) names.push_back("sigmoid");
    names.resize(names.size() + activations_of(cell) - (cell == RecurrentCell::rnn ? 0 : 1), "tanh");
  }
  return names;
}

// Takes the numbers of the activations from their list, in order.
class NumberList {
 public:
  explicit NumberList(const Array<double>& numbers) : numbers_(numbers) {}
  // Returns the next number, or the default where the list has ended; nothing where there is no default.
  std::optional<double> take(bool is_used, const std::optional<double>& otherwise) {
    if (!is_used) return 0.0;
    return next_ < numbers_.size() ? std::optional(numbers_[next_++]) : otherwise;
  }
  bool is_used_up() const { return next_ == numbers_.size(); }

 private:
  const Array<double>& numbers_;
  size_t next_ = 0;
};

template <typename A>
RecurrentForm form_of(RecurrentCell cell, const A& attrs) {
  RecurrentForm form{.cell = cell,
                     .clip = attrs.clip,
                     .input_forget = attrs.input_forget,
                     .linear_before_reset = attrs.linear_before_reset};
  NumberList alphas(attrs.activation_alpha), betas(attrs.activation_beta);
  const std::vector<std::string> names = activation_names(cell, attrs);
  size_t next = 0;
  const auto take = [&] {
    const ActivationFacts& facts = *find_activation(names.at(next++));
    const auto alpha = alphas.take(facts.has_alpha, facts.alpha), beta = betas.take(facts.has_beta, facts.beta);
    return CellActivation{facts.activation, alpha.value_or(0), beta.value_or(0)};
  };
  for (size_t i = 0; i < count_directions(attrs); ++i) {
    RecurrentForm::Direction direction{.is_reversed = i == 1 || attrs.direction == "reverse"};
    direction.f = take();
    if (cell != RecurrentCell::rnn) direction.g = take();
    if (cell == RecurrentCell::lstm) direction.h = take();
    form.directions.push_back(direction);
  }
  return form;
}

}  // namespace

RecurrentForm recurrent_form(RecurrentCell cell, const RecurrentAttrs& attrs) { return form_of(cell, attrs); }

RecurrentForm recurrent_form(const RecurrentStepsAttrs& attrs) {
  RecurrentForm form = form_of(find_cell(attrs.cell).value(), attrs);
  form.all_steps = attrs.all_steps;
  form.rows = attrs.rows;
  return form;
}

namespace {

// ---- type relations

void check_activations(const RelationInput& input, const std::vector<std::string>& names, const Array<double>& alpha,
                       const Array<double>& beta) {
  NumberList alphas(alpha), betas(beta);
  for (const std::string& name : names) {
    const ActivationFacts* facts = find_activation(name);
    if (facts == nullptr)
      input.fail(
          fmt::format("there is no activation '{}'; expected affine, elu, hard_sigmoid, leaky_relu, relu, "
                      "scaled_tanh, sigmoid, softplus, softsign, tanh or thresholded_relu",
                      name));
    for (const auto& [what, number] : {std::pair("activation_alpha", alphas.take(facts->has_alpha, facts->alpha)),
                                       std::pair("activation_beta", betas.take(facts->has_beta, facts->beta))}) {
      if (!number) input.fail(fmt::format("the activation {} needs a number in {}", name, what));
    }
  }
  if (!alphas.is_used_up() || !betas.is_used_up())
    input.fail(fmt::format("activation_alpha has {} numbers and activation_beta {}, more than the activations {} use",
                           alpha.size(), beta.size(), fmt::join(names, ", ")));
}

template <typename A>
void check_layer(const RelationInput& input, RecurrentCell cell, const A& attrs) {
  check_one_of(input, "direction", attrs.direction, {"forward", "reverse", "bidirectional"});
  const size_t wanted = activations_of(cell) * count_directions(attrs);
  const std::vector<std::string> names = activation_names(cell, attrs);
  if (names.size() != wanted)
    input.fail(fmt::format("activations names {}, expected {} for {} direction{}", names.size(), wanted,
                           count_directions(attrs), wanted == activations_of(cell) ? "" : "s"));
  check_activations(input, names, attrs.activation_alpha, attrs.activation_beta);
  if (!(attrs.clip >= 0)) input.fail(fmt::format("clip is {}, expected 0 or a positive number", attrs.clip));
}

PrimExpr times(int64_t factor, const PrimExpr& dim) { return arith::product({make_int(factor), dim}); }

// Checks that argument `i` has the dtype and the shape, and gives them to an argument that is not known yet. Returns
// whether it was known.
bool check_operand(const RelationInput& input, size_t i, DataType dtype, const std::vector<PrimExpr>& dims,
                   std::string_view name = {}) {
  const TensorType type = input.tensor(i);
  const TensorType wanted = make_tensor_type(Array<PrimExpr>(dims), dtype);
  if (!type) {
    input.assume(i, wanted);
    return false;
  }
  bool agrees = type->dtype == dtype && type->shape.size() == dims.size();
  for (size_t k = 0; agrees && k < dims.size(); ++k) agrees = unify_dims(type->shape[k], dims[k]).has_value();
  if (!agrees)
    input.fail(fmt::format("{} must be {}, got {}", name.empty() ? input.call.as_op()->arguments[i].name : name,
                           show(wanted), show(type)));
  return true;
}

// Gives the results of a layer: all values [T, D, B, H], the last ones [D, B, H], and of an LSTM the last cells.
Type layer_results(RecurrentCell cell, DataType dtype, const PrimExpr& steps, int64_t directions, const PrimExpr& batch,
                   const PrimExpr& hidden) {
  const PrimExpr d = make_int(directions);
  const Type all = make_tensor_type(Array<PrimExpr>{steps, d, batch, hidden}, dtype);
  const Type last = make_tensor_type(Array<PrimExpr>{d, batch, hidden}, dtype);
  return cell == RecurrentCell::lstm ? make_tuple_type({all, last, last}) : make_tuple_type({all, last});
}

TypeRelationFn relate_layer(RecurrentCell cell) {
  return [cell](const RelationInput& input) -> Type {
    const auto& attrs = input.call.attrs_as<RecurrentAttrs>();
    check_layer(input, cell, attrs);
    const TensorType data = float_data(input), recurrent = input.tensor(2);
    if (!data || !recurrent) return {};
    if (data->shape.size() != 3)
      input.fail(fmt::format("data must have the shape (steps, batch, inputs), got {}", show(data)));
    if (recurrent->shape.size() != 3)
      input.fail(fmt::format("recurrent must have the shape (directions, gates, hidden), got {}", show(recurrent)));
    const auto directions = static_cast<int64_t>(count_directions(attrs));
    const int64_t gates = gates_of(cell);
    const PrimExpr batch = data->shape[1], hidden = recurrent->shape[2], d = make_int(directions);
    const DataType dtype = data->dtype;
    bool all_known = check_operand(input, 1, dtype, {d, times(gates, hidden), data->shape[2]});
    all_known &= check_operand(input, 2, dtype, {d, times(gates, hidden), hidden});
    all_known &= check_operand(input, 3, dtype, {d, times(2 * gates, hidden)});
    all_known &= check_operand(input, 4, DataType::int_(32), {batch});
    all_known &= check_operand(input, 5, dtype, {d, batch, hidden});
    if (cell == RecurrentCell::lstm) {
      all_known &= check_operand(input, 6, dtype, {d, batch, hidden});
      all_known &= check_operand(input, 7, dtype, {d, times(3, hidden)});
    }
    if (!all_known) return {};
    return layer_results(cell, dtype, data->shape[0], directions, batch, hidden);
  };
}

// Kernels keep the sums of a tile in registers, so no machine wants tiles as large as this.
constexpr int64_t kMostRows = 64, kMostLanes = 256;

// Checks the number of arguments, which the cell determines.
RecurrentCell check_cell(const RelationInput& input, const RecurrentStepsAttrs& attrs) {
  check_one_of(input, "cell", attrs.cell, {"lstm", "gru", "rnn"});
  const RecurrentCell cell = *find_cell(attrs.cell);
  const size_t wanted = cell == RecurrentCell::lstm ? 6 : cell == RecurrentCell::gru ? 5 : 4;
  if (input.arg_types.size() != wanted)
    input.fail(fmt::format("a cell {} takes {} arguments, got {}", attrs.cell, wanted, input.arg_types.size()));
  return cell;
}

Type relate_steps(const RelationInput& input) {
  const auto& attrs = input.call.attrs_as<RecurrentStepsAttrs>();
  const RecurrentCell cell = check_cell(input, attrs);
  check_layer(input, cell, attrs);
  if (attrs.rows < 1 || attrs.rows > kMostRows)
    input.fail(fmt::format("rows is {}, expected 1 to {}", attrs.rows, kMostRows));
  const TensorType projected = float_data(input), recurrent = input.tensor(1);
  if (!projected || !recurrent) return {};
  const auto directions = static_cast<int64_t>(count_directions(attrs));
  if (projected->shape.size() != 3)
    input.fail(fmt::format("projected must have the shape (steps, batch, gates), got {}", show(projected)));
  if (recurrent->shape.size() != 5)
    input.fail(fmt::format("recurrent must have the shape (directions, tiles, hidden, gates, lanes), got {}",
                           show(recurrent)));
  const Array<PrimExpr>& tiles = recurrent->shape;
  const PrimExpr batch = projected->shape[1], hidden = tiles[2], d = make_int(directions);
  const DataType dtype = projected->dtype;
  const auto rows = as_int(arith::product({tiles[1], tiles[4]})), least = as_int(hidden);
  if (rows && least && *rows < *least)
    input.fail(fmt::format("the tiles of {} hold {} of {} hidden units", show(recurrent), *rows, *least));
  if (const auto lanes = as_int(tiles[4]); lanes && *lanes > kMostLanes)
    input.fail(fmt::format("a tile of {} has {} hidden units, expected up to {}", show(recurrent), *lanes, kMostLanes));
  check_operand(input, 0, dtype, {projected->shape[0], batch, times(directions * gates_of(cell), hidden)});
  check_operand(input, 1, dtype, {d, tiles[1], hidden, make_int(gates_of(cell)), tiles[4]});
  bool all_known = check_operand(input, 2, DataType::int_(32), {batch});
  all_known &= check_operand(input, 3, dtype, {d, batch, hidden});
  if (cell == RecurrentCell::gru) all_known &= check_operand(input, 4, dtype, {d, hidden}, "recurrent_bias");
  if (cell == RecurrentCell::lstm) {
    all_known &= check_operand(input, 4, dtype, {d, batch, hidden}, "initial_c");
    all_known &= check_operand(input, 5, dtype, {d, times(3, hidden)}, "peephole");
  }
  return all_known ? layer_results(cell, dtype, projected->shape[0], directions, batch, hidden) : Type();
}

// Returns the work of a recurrent layer: each step of each sequence multiplies all weights.
Work recurrent_work(const relay::CallNode& call, double weights) {
  const auto* data = call.args[0]->checked_type().as<TensorTypeNode>();
  const double width = std::max(size_of(data->shape[2]), 1.0);
  return {.operations = 2 * elements_of(*data) / width * weights};
}

Work layer_work(const relay::CallNode& call) {
  return recurrent_work(call, elements_of(call.args[1]->checked_type()) + elements_of(call.args[2]->checked_type()));
}

Work steps_work(const relay::CallNode& call) { return recurrent_work(call, elements_of(call.args[1]->checked_type())); }

// ---- registration

void layer_op(const char* name, RecurrentCell cell, const char* formulas, const char* gates) {
  const int64_t count = gates_of(cell);
  OpBuilder op(name,
               fmt::format("{} float16 and bfloat16 compute in float32. data f[T, B, I] -> (f[T, D, B, H], the values "
                           "of all steps, 0 past the end of a sequence; f[D, B, H], the last ones{}). ONNX {} (22).",
                           formulas, cell == RecurrentCell::lstm ? "; f[D, B, H], the last cells" : "",
                           cell == RecurrentCell::lstm  ? "LSTM"
                           : cell == RecurrentCell::gru ? "GRU"
                                                        : "RNN"));
  op.arg("data", "Tensor", "f[T, B, I]: a sequence of T steps for each of the batch")
      .arg("weight", "Tensor",
           fmt::format("f[D, {}H, I]: multiplies the data; its rows are {}; D is 2 if bidirectional", count, gates))
      .arg("recurrent", "Tensor", fmt::format("f[D, {}H, H]: multiplies the values of the step before", count))
      .arg("bias", "Tensor",
           fmt::format("f[D, {}H]: added to the product of weight, then to that of recurrent", 2 * count))
      .arg("sequence_lens", "Tensor", "int32[B]: the steps of each sequence, 0 to T")
      .arg("initial_h", "Tensor", "f[D, B, H]: the values before the first step");
  if (cell == RecurrentCell::lstm) {
    op.arg("initial_c", "Tensor", "f[D, B, H]: the cells before the first step")
        .arg("peephole", "Tensor", "f[D, 3H]: the weights P of input, output and forget gate; 0: none");
  }
  op.attrs<RecurrentAttrs>()
      .relation(relate_layer(cell))
      .fusion(FusionKind::opaque)
      .level(10)
      .fact(kWork, layer_work)
      .eval([cell](const EvalInput& input) { return eval_recurrent_layer(cell, input); });
}

void steps_op() {
  OpBuilder("nn.recurrent_steps",
            "The steps of nn.lstm, nn.gru or nn.rnn after the product of data and weight: projected f[T, B, D * G * H] "
            "for G gates -> that layer's results. Builds make it (SplitRecurrent).")
      .arg("projected", "Tensor", "f[T, B, D * G * H]: data times weight, and the biases that are added to it")
      .arg(
          "recurrent", "Tensor",
          "f[D, tiles, H, G, L]: element (d, t, k, g, l) is row g * H + t * L + l, column k, of the layer's recurrent; "
          "a row of a gate past H is not used")
      .arg("sequence_lens", "Tensor", "int32[B]: the steps of each sequence")
      .arg("initial_h", "Tensor",
           "f[D, B, H]: the values before the first step; after it an LSTM takes initial_c f[D, B, H] and peephole "
           "f[D, 3H], a GRU the bias f[D, H] of the product that it resets")
      .any_args()
      .attrs<RecurrentStepsAttrs>()
      .relation(relate_steps)
      .fusion(FusionKind::opaque)
      .level(10)
      .fact(kWork, steps_work)
      .eval(eval_recurrent_steps);
}

}  // namespace

void register_recurrent_ops() {
  layer_op(
      "nn.lstm", RecurrentCell::lstm,
      "Long short-term memory: i, f and o = sigmoid(x W' + h R' + b + P c), n = tanh(x W' + h R' + b), c = f c + i n, "
      "h = o tanh(c), where o reads the new c.",
      "those of the input, output and forget gate and of the new values");
  layer_op(
      "nn.gru", RecurrentCell::gru,
      "Gated recurrent unit: z and r = sigmoid(x W' + h R' + b), n = tanh(x W' + (r h) R' + b), h = (1 - z) n + z h.",
      "those of the update and reset gate and of the new values");
  layer_op("nn.rnn", RecurrentCell::rnn, "Recurrent layer: h = tanh(x W' + h R' + b).", "those of the values");
  steps_op();
}

// ---- calls

Expr recurrent_layer(RecurrentCell cell, RecurrentOperands operands, RecurrentAttrs attrs, Span span) {
  static constexpr std::string_view kNames[] = {"nn.lstm", "nn.gru", "nn.rnn"};
  Array<Expr> args{operands.data, operands.weight,        operands.recurrent,
                   operands.bias, operands.sequence_lens, operands.initial_h};
  if (cell == RecurrentCell::lstm) {
    args.push_back(operands.initial_c);
    args.push_back(operands.peephole);
  }
  return relay::make_call(kNames[static_cast<size_t>(cell)], std::move(args), make_object<RecurrentAttrs>(attrs), span);
}

Expr recurrent_steps(RecurrentCell cell, StepsOperands operands, const RecurrentAttrs& layer, StepsPlan plan,
                     Span span) {
  static constexpr const char* kCells[] = {"lstm", "gru", "rnn"};
  Array<Expr> args{operands.projected, operands.recurrent, operands.sequence_lens, operands.initial_h};
  if (cell == RecurrentCell::lstm) {
    args.push_back(operands.initial_c);
    args.push_back(operands.peephole);
  }
  if (cell == RecurrentCell::gru) args.push_back(operands.recurrent_bias);
  return call_with<RecurrentStepsAttrs>("nn.recurrent_steps", std::move(args), std::move(span),
                                        [&](RecurrentStepsAttrs& attrs) {
                                          attrs.cell = kCells[static_cast<size_t>(cell)];
                                          attrs.all_steps = plan.all_steps;
                                          attrs.rows = plan.rows;
                                          attrs.direction = layer.direction;
                                          attrs.activations = layer.activations;
                                          attrs.activation_alpha = layer.activation_alpha;
                                          attrs.activation_beta = layer.activation_beta;
                                          attrs.clip = layer.clip;
                                          attrs.input_forget = layer.input_forget;
                                          attrs.linear_before_reset = layer.linear_before_reset;
                                        });
}

}  // namespace headrace::ops
