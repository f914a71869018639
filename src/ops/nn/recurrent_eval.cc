#include "ops/nn/recurrent_eval.h"

#include <algorithm>
#include <cmath>

#include "ops/loops/element.h"

namespace headrace::ops {

namespace {

template <typename C>
C activated(const CellActivation& f, C x) {
  const C alpha = static_cast<C>(f.alpha), beta = static_cast<C>(f.beta), zero = 0, one = 1;
  switch (f.activation) {
    case Activation::affine:
      return alpha * x + beta;
    case Activation::elu:
      return x >= zero ? x : alpha * (std::exp(x) - one);
    case Activation::hard_sigmoid:
      return std::min(std::max(alpha * x + beta, zero), one);
    case Activation::leaky_relu:
      return x > zero ? x : x * alpha;
    case Activation::relu:
      return std::max(x, zero);
    case Activation::scaled_tanh:
      return alpha * std::tanh(beta * x);
    case Activation::sigmoid:
      return one / (one + std::exp(-x));
    case Activation::softplus:  // the exponential does not overflow
      return std::max(x, zero) + std::log(one + std::exp(-std::abs(x)));
    case Activation::softsign:
      return x / (one + std::abs(x));
    case Activation::thresholded_relu:
      return x >= alpha ? x : zero;
    case Activation::tanh:
      break;
  }
  return std::tanh(x);
}

template <typename C>
std::vector<C> numbers_of(const NDArray& array) {
  const auto read = reader_as<C>(array.dtype());
  std::vector<C> numbers;
  for (int64_t i = 0; i < array.num_elements(); ++i) numbers.push_back(read(array, i));
  return numbers;
}

// The operands of the steps, as numbers that are computed with. G rows of gates have H numbers each.
template <typename C>
struct StepNumbers {
  int64_t steps = 0, batch = 0, hidden = 0;
  std::vector<C> projected = {};       // [T, B, D, G * H]
  std::vector<C> recurrent = {};       // [D, G * H, H]
  std::vector<C> recurrent_bias = {};  // [D, H], of a GRU whose product is reset
  std::vector<C> peephole = {};        // [D, 3 * H], of an LSTM
  std::vector<C> h = {}, c = {};       // [D, B, H], the initial values, then the last ones
  std::vector<C> all = {};             // [T, D, B, H], the values of all steps
  std::vector<int64_t> lengths = {};   // [B]
};

// Runs the steps of a layer.
template <typename C>
class StepLoop {
 public:
  StepLoop(const RecurrentForm& form, StepNumbers<C>& numbers) : form_(form), n_(numbers) {
    n_.all.assign(static_cast<size_t>(n_.steps * directions() * n_.batch * n_.hidden), 0);
  }

  void run() {
    for (int64_t d = 0; d < directions(); ++d) {
      for (int64_t b = 0; b < n_.batch; ++b) run_sequence(d, b);
    }
  }

 private:
  int64_t directions() const { return static_cast<int64_t>(form_.directions.size()); }
  C clipped(C x) const {
    const C clip = static_cast<C>(form_.clip);
    return clip == 0 ? x : std::min(std::max(x, -clip), clip);
  }

  void run_sequence(int64_t d, int64_t b) {
    const int64_t length = n_.lengths[static_cast<size_t>(b)], at = (d * n_.batch + b) * n_.hidden;
    C* const h = n_.h.data() + at;
    C* const c = form_.cell == RecurrentCell::lstm ? n_.c.data() + at : nullptr;
    for (int64_t s = 0; s < length; ++s) {
      const int64_t t = form_.directions[static_cast<size_t>(d)].is_reversed ? length - 1 - s : s;
      const C* const x = n_.projected.data() + ((t * n_.batch + b) * directions() + d) * form_.gates() * n_.hidden;
      const std::vector<C> next = step(d, x, h, c);
      std::copy(next.begin(), next.end(), h);
      std::copy(next.begin(), next.end(), n_.all.begin() + ((t * directions() + d) * n_.batch + b) * n_.hidden);
    }
  }

  std::vector<C> step(int64_t d, const C* x, const C* h, C* c) const {
    switch (form_.cell) {
      case RecurrentCell::lstm:
        return step_lstm(d, x, h, c);
      case RecurrentCell::gru:
        return step_gru(d, x, h);
      case RecurrentCell::rnn:
        break;
    }
    return step_rnn(d, x, h);
  }

  // Returns the product of row `i` of a gate and the values `h`.
  C product(int64_t d, int64_t gate, int64_t i, const C* h) const {
    const C* const row = n_.recurrent.data() + ((d * form_.gates() + gate) * n_.hidden + i) * n_.hidden;
    C sum = 0;
    for (int64_t k = 0; k < n_.hidden; ++k) sum += row[k] * h[k];
    return sum;
  }

  std::vector<C> step_lstm(int64_t d, const C* x, const C* h, C* c) const {
    const RecurrentForm::Direction& direction = form_.directions[static_cast<size_t>(d)];
    const int64_t n = n_.hidden;
    const C* const p = n_.peephole.data() + d * 3 * n;
    std::vector<C> next;
    for (int64_t i = 0; i < n; ++i) {
      const auto gate = [&](int64_t g) { return x[g * n + i] + product(d, g, i, h); };
      const C in = activated(direction.f, clipped(gate(0) + p[i] * c[i]));
      const C forget = form_.input_forget ? 1 - in : activated(direction.f, clipped(gate(2) + p[2 * n + i] * c[i]));
      c[i] = forget * c[i] + in * activated(direction.g, clipped(gate(3)));
      const C out = activated(direction.f, clipped(gate(1) + p[n + i] * c[i]));
      next.push_back(out * activated(direction.h, c[i]));
    }
    return next;
  }

  std::vector<C> step_gru(int64_t d, const C* x, const C* h) const {
    const RecurrentForm::Direction& direction = form_.directions[static_cast<size_t>(d)];
    const int64_t n = n_.hidden;
    const auto gate = [&](int64_t g, int64_t i) {
      return activated(direction.f, clipped(x[g * n + i] + product(d, g, i, h)));
    };
    std::vector<C> reset, reset_h, next;
    for (int64_t i = 0; i < n; ++i) {
      reset.push_back(gate(1, i));
      reset_h.push_back(reset.back() * h[i]);
    }
    for (int64_t i = 0; i < n; ++i) {
      const C recurrent = form_.linear_before_reset
                              ? reset[static_cast<size_t>(i)] *
                                    (product(d, 2, i, h) + n_.recurrent_bias[static_cast<size_t>(d * n + i)])
                              : product(d, 2, i, reset_h.data());
      const C value = activated(direction.g, clipped(x[2 * n + i] + recurrent)), update = gate(0, i);
      next.push_back((1 - update) * value + update * h[i]);
    }
    return next;
  }

  std::vector<C> step_rnn(int64_t d, const C* x, const C* h) const {
    std::vector<C> next;
    for (int64_t i = 0; i < n_.hidden; ++i)
      next.push_back(activated(form_.directions[static_cast<size_t>(d)].f, clipped(x[i] + product(d, 0, i, h))));
    return next;
  }

  const RecurrentForm& form_;
  StepNumbers<C>& n_;
};

std::vector<int64_t> read_lengths(const EvalInput& input, const RecurrentForm& form, const NDArray& lens,
                                  int64_t steps) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < lens.num_elements(); ++i) {
    const int64_t length = form.all_steps ? steps : element_as_int(lens.tensor(), i);
    if (length < 0 || length > steps)
      throw_at(input.call.span, input.call.as_op()->name,
               fmt::format("sequence_lens[{}] is {}; it must lie in [0, {}], the steps of the data", i, length, steps));
    lengths.push_back(length);
  }
  return lengths;
}

template <typename T, typename C>
NDArray array_of(const EvalInput& input, size_t i, const std::vector<C>& numbers) {
  const NDArray out = input.make_output(i);
  const Elements<T> elements(out);
  for (size_t k = 0; k < numbers.size(); ++k) elements.set(static_cast<int64_t>(k), numbers[k]);
  return out;
}

// Runs the steps and returns the layer's results.
template <typename T>
std::vector<NDArray> run_steps(const EvalInput& input, const RecurrentForm& form, StepNumbers<Compute<T>> numbers) {
  StepLoop<Compute<T>>(form, numbers).run();
  std::vector<NDArray> results{array_of<T>(input, 0, numbers.all), array_of<T>(input, 1, numbers.h)};
  if (form.cell == RecurrentCell::lstm) results.push_back(array_of<T>(input, 2, numbers.c));
  return results;
}

// Returns the bias that is added to the products before the steps: both, but not the one that a GRU resets.
template <typename C>
std::vector<C> added_bias(const RecurrentForm& form, const std::vector<C>& bias, int64_t hidden) {
  std::vector<C> sum;
  const auto rows = static_cast<size_t>(form.gates() * hidden);
  for (size_t at = 0; at < bias.size(); at += 2 * rows) {
    for (size_t i = 0; i < rows; ++i) {
      const bool is_reset = form.resets_product() && i >= rows - static_cast<size_t>(hidden);
      sum.push_back(bias[at + i] + (is_reset ? 0 : bias[at + rows + i]));
    }
  }
  return sum;
}

// Returns the products of the data and the weights, with the biases: [T, B, D * G * H].
template <typename C>
std::vector<C> project(const std::vector<C>& data, const std::vector<C>& weight, const std::vector<C>& bias,
                       const Shape& shape) {
  const auto rows = static_cast<int64_t>(bias.size());
  const int64_t count = shape[0] * shape[1], inputs = shape[2];
  std::vector<C> result;
  for (int64_t at = 0; at < count; ++at) {
    for (int64_t row = 0; row < rows; ++row) {
      C sum = 0;
      for (int64_t k = 0; k < inputs; ++k)
        sum += data[static_cast<size_t>(at * inputs + k)] * weight[static_cast<size_t>(row * inputs + k)];
      result.push_back(sum + bias[static_cast<size_t>(row)]);
    }
  }
  return result;
}

// Returns the bias of the hidden gate's product, [D, H].
template <typename C>
std::vector<C> reset_bias(const std::vector<C>& bias, int64_t directions, int64_t hidden) {
  std::vector<C> result;
  for (int64_t d = 0; d < directions; ++d) {
    const auto begin = bias.begin() + (d * 6 + 5) * hidden;
    result.insert(result.end(), begin, begin + hidden);
  }
  return result;
}

// Returns the recurrent weights [D, G * H, H] from their tiles [D, tiles, H, G, L].
template <typename C>
std::vector<C> without_tiles(const std::vector<C>& tiles, const Shape& shape) {
  const int64_t hidden = shape[2], gates = shape[3], lanes = shape[4];
  std::vector<C> result;
  for (int64_t d = 0; d < shape[0]; ++d) {
    for (int64_t g = 0; g < gates; ++g) {
      for (int64_t i = 0; i < hidden; ++i) {
        for (int64_t k = 0; k < hidden; ++k) {
          const int64_t at = (((d * shape[1] + i / lanes) * hidden + k) * gates + g) * lanes + i % lanes;
          result.push_back(tiles[static_cast<size_t>(at)]);
        }
      }
    }
  }
  return result;
}

int64_t steps_work(const RecurrentForm& form, int64_t steps, int64_t batch, int64_t hidden, int64_t terms) {
  return steps * batch * static_cast<int64_t>(form.directions.size()) * form.gates() * hidden * terms;
}

}  // namespace

std::vector<NDArray> eval_recurrent_layer(RecurrentCell cell, const EvalInput& input) {
  const RecurrentForm form = recurrent_form(cell, input.attrs<RecurrentAttrs>());
  const Shape &data = input.args[0].shape(), &recurrent = input.args[2].shape();
  input.spend(steps_work(form, data[0], data[1], recurrent[2], data[2] + recurrent[2]));
  return dispatch_float(input.out_types[0]->dtype, [&]<typename T>() {
    using C = Compute<T>;
    const std::vector<C> bias = numbers_of<C>(input.args[3]);
    StepNumbers<C> numbers{.steps = data[0], .batch = data[1], .hidden = recurrent[2]};
    const std::vector<C> added = added_bias(form, bias, numbers.hidden);
    numbers.projected = project(numbers_of<C>(input.args[0]), numbers_of<C>(input.args[1]), added, data);
    numbers.recurrent = numbers_of<C>(input.args[2]);
    numbers.lengths = read_lengths(input, form, input.args[4], data[0]);
    numbers.h = numbers_of<C>(input.args[5]);
    if (cell == RecurrentCell::gru) numbers.recurrent_bias = reset_bias(bias, recurrent[0], numbers.hidden);
    if (cell == RecurrentCell::lstm) {
      numbers.c = numbers_of<C>(input.args[6]);
      numbers.peephole = numbers_of<C>(input.args[7]);
    }
    return run_steps<T>(input, form, std::move(numbers));
  });
}

std::vector<NDArray> eval_recurrent_steps(const EvalInput& input) {
  const RecurrentForm form = recurrent_form(input.attrs<RecurrentStepsAttrs>());
  const Shape &projected = input.args[0].shape(), &recurrent = input.args[1].shape();
  input.spend(steps_work(form, projected[0], projected[1], recurrent[2], recurrent[2]));
  return dispatch_float(input.out_types[0]->dtype, [&]<typename T>() {
    using C = Compute<T>;
    StepNumbers<C> numbers{.steps = projected[0], .batch = projected[1], .hidden = recurrent[2]};
    numbers.projected = numbers_of<C>(input.args[0]);
    numbers.recurrent = without_tiles(numbers_of<C>(input.args[1]), recurrent);
    numbers.lengths = read_lengths(input, form, input.args[2], projected[0]);
    numbers.h = numbers_of<C>(input.args[3]);
    if (form.cell == RecurrentCell::gru) numbers.recurrent_bias = numbers_of<C>(input.args[4]);
    if (form.cell == RecurrentCell::lstm) {
      numbers.c = numbers_of<C>(input.args[4]);
      numbers.peephole = numbers_of<C>(input.args[5]);
    }
    return run_steps<T>(input, form, std::move(numbers));
  });
}

}  // namespace headrace::ops
