// Rules of recurrent layers: the loop over the steps, by hand.
//
// A step multiplies the values h of the step before by the recurrent weights, which takes nearly all of the time: the
// weights are read once a step. So they lie in the order in which they are read (nn.recurrent_steps): a tile has L
// hidden units, and for each k the L weights of each gate. The sums of a tile, all of its gates, stay in registers;
// what the gates compute of them follows at once. Batches are cut into rows that share the weights as they are read.
#include "ops/nn/recurrent.h"

#include "lower/rules/rule.h"

namespace headrace::lower {

namespace {

using ops::RecurrentCell;
using ops::RecurrentForm;
using tir::ForKind;
using tir::make_if;
using tir::make_seq;
using tir::Scope;
using tir::Stmt;

PrimExpr activated(const ops::CellActivation& f, const PrimExpr& x) {
  using ops::Activation;
  const PrimExpr zero = number_like(0, x), one = number_like(1, x);
  const PrimExpr alpha = number_like(f.alpha, x), beta = number_like(f.beta, x);
  const auto is_least = [&](const PrimExpr& least) { return make_binary(BinaryOp::ge, x, least); };
  switch (f.activation) {
    case Activation::affine:
      return alpha * x + beta;
    case Activation::elu:
      return make_select(is_least(zero), x, alpha * (call(Intrinsic::exp, x) - one));
    case Activation::hard_sigmoid:
      return clamp(alpha * x + beta, zero, one);
    case Activation::leaky_relu:
      return rectified(x, alpha);
    case Activation::relu:
      return most(x, zero);
    case Activation::scaled_tanh:
      return alpha * call(Intrinsic::tanh, beta * x);
    case Activation::sigmoid:
      return divide(one, one + call(Intrinsic::exp, negative(x)));
    case Activation::softplus:  // the exponential does not overflow
      return most(x, zero) + call(Intrinsic::log, one + call(Intrinsic::exp, negative(call(Intrinsic::abs, x))));
    case Activation::softsign:
      return divide(x, one + call(Intrinsic::abs, x));
    case Activation::thresholded_relu:
      return make_select(is_least(alpha), x, zero);
    case Activation::tanh:
      break;
  }
  return call(Intrinsic::tanh, x);
}

// Returns the greatest power of 2 up to `count`.
int64_t power_of_two(int64_t count) {
  int64_t power = 1;
  while (power * 2 <= count) power *= 2;
  return power;
}

// Returns the vectors that cover `count` elements: where each begins and how wide it is, a power of 2 up to `lanes`.
std::vector<std::pair<int64_t, int64_t>> lanes_over(int64_t count, int64_t lanes) {
  std::vector<std::pair<int64_t, int64_t>> vectors;
  int64_t at = 0;
  for (int64_t width = power_of_two(lanes); width >= 1; width /= 2) {
    for (; count - at >= width; at += width) vectors.emplace_back(at, width);
  }
  return vectors;
}

// The tensors of a layer's steps; those that a cell does not have are null.
struct StepLines {
  const Line* projected = nullptr;       // [T, B, D * G * H]
  const Line* recurrent = nullptr;       // [D, tiles, H, G, L]
  const Line* lengths = nullptr;         // [B]
  const Line* initial_h = nullptr;       // [D, B, H]
  const Line* initial_c = nullptr;       // [D, B, H]
  const Line* peephole = nullptr;        // [D, 3 * H]
  const Line* recurrent_bias = nullptr;  // [D, ..., H], from `bias_begin` on, `bias_stride` a direction
  int64_t bias_begin = 0, bias_stride = 0;
};

// The state of some rows of the batch, [rows, H] each, in the dtype that is computed in.
struct State {
  const Line& h;       // the values of the step before
  const Line& next;    // those of this step
  const Line& other;   // the cells of an LSTM; reset times h of a GRU
  const Line& update;  // the update gate of a GRU
};

// Rows of the batch in one direction.
struct Rows {
  size_t direction = 0;
  PrimExpr first;
  int64_t count = 1;
};

class StepLoops {
 public:
  StepLoops(const KernelInput& input, RecurrentForm form, const StepLines& lines)
      : input_(input),
        form_(std::move(form)),
        lines_(lines),
        dtype_(wide_type(input.outputs[0].buffer->dtype)),
        steps_(input.outputs[0].shape[0]),
        batch_(input.outputs[0].shape[2]),
        hidden_(input.outputs[0].shape[3]),
        lanes_(lines.recurrent->shape[4]),
        rows_(form_.all_steps ? std::clamp<int64_t>(form_.rows, 1, std::max<int64_t>(batch_, 1)) : 1) {}

  Stmt emit() const {
    const int64_t parts = (batch_ + rows_ - 1) / rows_;
    if (batch_ == 0 || hidden_ == 0) return make_seq({});
    const auto directions = static_cast<int64_t>(form_.directions.size());
    const int64_t work = steps_ * directions * work_of_step(batch_, form_.gates());
    return each_parallel(input_, directions * parts, work, [&](const PrimExpr& part) {
      if (directions == 1) return emit_part(0, part);
      const PrimExpr is_first = make_binary(BinaryOp::lt, part, make_int(parts));
      return make_if(is_first, emit_part(0, part), emit_part(1, part - parts));
    });
  }

 private:
  // Returns the work of a step of some rows: the vectors of weights that it multiplies.
  int64_t work_of_step(int64_t rows, int64_t gates) const { return rows * gates * hidden_ * hidden_ / lanes_; }

  // ---- rows of the batch

  // Sequences of unlike lengths run one by one.
  Stmt emit_part(size_t direction, const PrimExpr& part) const {
    const int64_t full = batch_ / rows_, rest = batch_ % rows_;
    const auto some = [&](const PrimExpr& first, int64_t count) {
      return emit_rows({.direction = direction, .first = first, .count = count});
    };
    if (rest == 0) return some(part * rows_, rows_);
    return make_if(make_binary(BinaryOp::lt, part, make_int(full)), some(part * rows_, rows_),
                   some(make_int(full * rows_), rest));
  }

  Stmt emit_rows(const Rows& rows) const {
    const Shape shape{rows.count, hidden_};
    const auto scratch = [&](const char* name, bool is_used, const std::function<Stmt(const Line&)>& body) {
      return with_scratch(name, dtype_, is_used ? shape : Shape{0}, body);
    };
    const bool is_gru = form_.cell == RecurrentCell::gru;
    return scratch("h", true, [&](const Line& h) {
      return scratch("next", true, [&](const Line& next) {
        return scratch("other", form_.cell != RecurrentCell::rnn, [&](const Line& other) {
          return scratch("update", is_gru,
                         [&](const Line& update) { return emit_sequence(rows, {h, next, other, update}); });
        });
      });
    });
  }

  Stmt emit_sequence(const Rows& rows, const State& state) const {
    const auto steps = [&](const PrimExpr& length) {
      const Stmt loop = each(length, [&](const PrimExpr& s) {
        const bool is_reversed = form_.directions[rows.direction].is_reversed;
        return bind(is_reversed ? length - 1 - s : s, [&](const PrimExpr& t) { return emit_step(rows, state, t); });
      });
      return make_seq({load_initial(rows, state), loop, store_last(rows, state)});
    };
    if (form_.all_steps) return steps(make_int(steps_));
    return bind(as_index(lines_.lengths->item(rows.first)), [&](const PrimExpr& length) {
      const PrimExpr is_inside =
          both(make_binary(BinaryOp::ge, length, make_int(0)), make_binary(BinaryOp::le, length, make_int(steps_)));
      const Stmt rest = each(make_int(steps_) - length, [&](const PrimExpr& s) {
        return each_unit(rows.count, [&](int64_t row, const PrimExpr& i) {
          return set_output(0, all_offset(rows, length + s, row) + i, make_const(0, dtype_));
        });
      });
      return make_seq({tir::make_assert(is_inside, fmt::format("{}: a sequence length is not in [0, {}]",
                                                               input_.op.call.as_op()->name, steps_)),
                       steps(length), rest});
    });
  }

  Stmt load_initial(const Rows& rows, const State& state) const {
    return each_unit(rows.count, [&](int64_t row, const PrimExpr& i) {
      const PrimExpr from = last_offset(rows, row) + i;
      const Stmt h = set(state.h, row, i, wide(lines_.initial_h->item(from)));
      if (form_.cell != RecurrentCell::lstm) return h;
      return make_seq({h, set(state.other, row, i, wide(lines_.initial_c->item(from)))});
    });
  }

  Stmt store_last(const Rows& rows, const State& state) const {
    return each_unit(rows.count, [&](int64_t row, const PrimExpr& i) {
      const PrimExpr to = last_offset(rows, row) + i;
      const Stmt h = set_output(1, to, get(state.h, row, i));
      if (form_.cell != RecurrentCell::lstm) return h;
      return make_seq({h, set_output(2, to, get(state.other, row, i))});
    });
  }

  // ---- one step

  Stmt emit_step(const Rows& rows, const State& state, const PrimExpr& t) const {
    std::vector<Stmt> stmts;
    switch (form_.cell) {
      case RecurrentCell::lstm:
        stmts.push_back(each_tile(rows, state.h, {0, 1, 2, 3}, [&](const Tile& tile) { return lstm(tile, state, t); }));
        break;
      case RecurrentCell::rnn:
        stmts.push_back(each_tile(rows, state.h, {0}, [&](const Tile& tile) { return rnn(tile, state, t); }));
        break;
      case RecurrentCell::gru:
        if (form_.linear_before_reset) {
          stmts.push_back(each_tile(rows, state.h, {0, 1, 2}, [&](const Tile& tile) {
            return make_seq({gru_gates(tile, state, t), gru_value(tile, state, t)});
          }));
        } else {
          stmts.push_back(
              each_tile(rows, state.h, {0, 1}, [&](const Tile& tile) { return gru_gates(tile, state, t); }));
          stmts.push_back(
              each_tile(rows, state.other, {2}, [&](const Tile& tile) { return gru_value(tile, state, t); }));
        }
    }
    stmts.push_back(each_unit(rows.count, [&](int64_t row, const PrimExpr& i) {
      return make_seq({set(state.h, row, i, get(state.next, row, i)),
                       set_output(0, all_offset(rows, t, row) + i, get(state.next, row, i))});
    }));
    return make_seq(stmts);
  }

  // Hidden units whose sums are complete: some gates of some rows.
  struct Tile {
    const Rows& rows;
    PrimExpr begin;     // the first unit
    int64_t count = 0;  // how many of them there are
    Buffer sums;        // [rows, G, L]
  };

  // Calls `body` for the tiles of the hidden units. The sums of the gates, of the products of `values` and the
  // recurrent weights, are those of the tile.
  Stmt each_tile(const Rows& rows, const Line& values, const std::vector<int64_t>& gates,
                 const std::function<Stmt(const Tile&)>& body) const {
    const int64_t full = hidden_ / lanes_, rest = hidden_ % lanes_;
    const auto tile = [&](const PrimExpr& number, int64_t count) {
      const Buffer sums = make_sums("sums");
      const Tile units{rows, number * lanes_, count, sums};
      return tir::make_allocate(sums, Scope::registers,
                                make_seq({add_products(units, number, values, gates), body(units)}));
    };
    const auto full_tile = [&](const PrimExpr& number) { return tile(number, lanes_); };
    // Where one sequence runs alone, a step of much work starts the other threads. Loops inside parallel ones are
    // serial.
    const bool is_alone = form_.directions.size() == 1 && rows.count == batch_;
    const int64_t work = work_of_step(rows.count, static_cast<int64_t>(gates.size()));
    std::vector<Stmt> stmts{is_alone ? each_parallel(input_, full, work, full_tile) : each(full, full_tile)};
    if (rest != 0) stmts.push_back(tile(make_int(full), rest));
    return make_seq(stmts);
  }

  Buffer make_sums(const char* name) const {
    return make_buffer(name, dtype_, {make_int(rows_ * form_.gates() * lanes_)});
  }
  PrimExpr sum_place(int64_t row, int64_t gate) const { return make_int((row * form_.gates() + gate) * lanes_); }

  // Makes a loop over `count` elements in vectors. `body` gets the number of an element.
  Stmt each_lane(int64_t count, const ByValue& body) const {
    std::vector<Stmt> stmts;
    for (const auto& [at, width] : lanes_over(count, lanes_)) {
      stmts.push_back(each(
          width, [&, begin = at](const PrimExpr& lane) { return body(lane + begin); },
          width == 1 ? ForKind::serial : ForKind::vectorized));
    }
    return make_seq(stmts);
  }

  // Makes a loop over all hidden units of some rows.
  Stmt each_unit(int64_t rows, const std::function<Stmt(int64_t, const PrimExpr&)>& body) const {
    std::vector<Stmt> stmts;
    const int64_t full = hidden_ / lanes_;
    for (int64_t row = 0; row < rows; ++row) {
      stmts.push_back(each(full, [&](const PrimExpr& tile) {
        return each_lane(lanes_, [&](const PrimExpr& lane) { return body(row, tile * lanes_ + lane); });
      }));
      stmts.push_back(
          each_lane(hidden_ % lanes_, [&](const PrimExpr& lane) { return body(row, lane + full * lanes_); }));
    }
    return make_seq(stmts);
  }

  // Makes a loop over the units of a tile, in all of its rows.
  Stmt each_of(const Tile& tile, const std::function<Stmt(int64_t, const PrimExpr&)>& body) const {
    std::vector<Stmt> stmts;
    for (int64_t row = 0; row < tile.rows.count; ++row)
      stmts.push_back(each_lane(tile.count, [&](const PrimExpr& lane) { return body(row, lane); }));
    return make_seq(stmts);
  }

  // Sums in vectors of all lanes, those past the last hidden unit too, so that the sums stay in registers; a tile that
  // is not full then gets its sums in memory, where vectors of other widths read them.
  Stmt add_products(const Tile& tile, const PrimExpr& number, const Line& values,
                    const std::vector<int64_t>& gates) const {
    const Buffer acc = tile.count == lanes_ ? tile.sums : make_sums("acc");
    const auto each_sum = [&](const std::function<Stmt(int64_t, int64_t, const PrimExpr&)>& body) {
      std::vector<Stmt> stmts;
      for (int64_t row = 0; row < tile.rows.count; ++row) {
        for (const int64_t gate : gates)
          stmts.push_back(each_lane(lanes_, [&](const PrimExpr& lane) { return body(row, gate, lane); }));
      }
      return make_seq(stmts);
    };
    const Stmt clear = each_sum([&](int64_t row, int64_t gate, const PrimExpr& lane) {
      return tir::make_store(acc, make_const(0, dtype_), {sum_place(row, gate) + lane});
    });
    const PrimExpr first = (number + tiles_before(tile.rows.direction)) * (hidden_ * form_.gates() * lanes_);
    const Stmt sum = each(hidden_, [&](const PrimExpr& k) {
      return each_sum([&](int64_t row, int64_t gate, const PrimExpr& lane) {
        const PrimExpr weight =
            wide(lines_.recurrent->item(first + k * (form_.gates() * lanes_) + gate * lanes_ + lane));
        const PrimExpr place = sum_place(row, gate) + lane;
        return tir::make_store(
            acc, make_intrinsic(Intrinsic::fma, dtype_, {get(values, row, k), weight, make_load(acc, {place})}),
            {place});
      });
    });
    if (tile.count == lanes_) return make_seq({clear, sum});
    const Stmt copy = each_sum([&](int64_t row, int64_t gate, const PrimExpr& lane) {
      const PrimExpr place = sum_place(row, gate) + lane;
      return tir::make_store(tile.sums, make_load(acc, {place}), {place});
    });
    return tir::make_allocate(acc, Scope::registers, make_seq({clear, sum, copy}));
  }

  int64_t tiles_before(size_t direction) const { return static_cast<int64_t>(direction) * lines_.recurrent->shape[1]; }

  // ---- cells

  PrimExpr sum_of(const Tile& tile, int64_t row, int64_t gate, const PrimExpr& lane) const {
    return make_load(tile.sums, {sum_place(row, gate) + lane});
  }
  Stmt set_sum(const Tile& tile, int64_t row, int64_t gate, const PrimExpr& lane, const PrimExpr& value) const {
    return tir::make_store(tile.sums, value, {sum_place(row, gate) + lane});
  }
  // Returns what the data adds to a gate.
  PrimExpr projected(const Tile& tile, const PrimExpr& t, int64_t row, int64_t gate, const PrimExpr& lane) const {
    const auto directions = static_cast<int64_t>(form_.directions.size());
    const PrimExpr at = (t * batch_ + tile.rows.first + row) * (directions * form_.gates() * hidden_);
    const int64_t before = (static_cast<int64_t>(tile.rows.direction) * form_.gates() + gate) * hidden_;
    return wide(lines_.projected->item(at + before + tile.begin + lane));
  }
  PrimExpr clipped(const PrimExpr& x) const {
    if (form_.clip == 0) return x;
    return clamp(x, number_like(-form_.clip, x), number_like(form_.clip, x));
  }
  const RecurrentForm::Direction& direction(const Tile& tile) const { return form_.directions[tile.rows.direction]; }

  Stmt lstm(const Tile& tile, const State& state, const PrimExpr& t) const {
    enum : int64_t { kIn, kOut, kForget, kCell };
    const RecurrentForm::Direction& d = direction(tile);
    // The peepholes are those of the input, output and forget gate.
    const auto gate = [&](int64_t row, int64_t g, const PrimExpr& lane) {
      const int64_t before = (static_cast<int64_t>(tile.rows.direction) * 3 + g) * hidden_;
      const PrimExpr peephole = wide(lines_.peephole->item(tile.begin + lane + before));
      const PrimExpr x = sum_of(tile, row, g, lane) + projected(tile, t, row, g, lane);
      return activated(d.f, clipped(x + peephole * get(state.other, row, tile.begin + lane)));
    };
    const auto of_gate = [&](int64_t g) {
      return each_of(
          tile, [&](int64_t row, const PrimExpr& lane) { return set_sum(tile, row, g, lane, gate(row, g, lane)); });
    };
    const Stmt forget = each_of(tile, [&](int64_t row, const PrimExpr& lane) {
      const PrimExpr in = sum_of(tile, row, kIn, lane);
      return set_sum(tile, row, kForget, lane, form_.input_forget ? number_like(1, in) - in : gate(row, kForget, lane));
    });
    const Stmt cell = each_of(tile, [&](int64_t row, const PrimExpr& lane) {
      const PrimExpr value = sum_of(tile, row, kCell, lane) + projected(tile, t, row, kCell, lane);
      const PrimExpr old = sum_of(tile, row, kForget, lane) * get(state.other, row, tile.begin + lane);
      return set(state.other, row, tile.begin + lane,
                 old + sum_of(tile, row, kIn, lane) * activated(d.g, clipped(value)));
    });
    const Stmt result = each_of(tile, [&](int64_t row, const PrimExpr& lane) {
      const PrimExpr value = activated(d.h, get(state.other, row, tile.begin + lane));
      return set(state.next, row, tile.begin + lane, sum_of(tile, row, kOut, lane) * value);
    });
    return make_seq({of_gate(kIn), forget, cell, of_gate(kOut), result});
  }

  Stmt rnn(const Tile& tile, const State& state, const PrimExpr& t) const {
    return each_of(tile, [&](int64_t row, const PrimExpr& lane) {
      const PrimExpr x = sum_of(tile, row, 0, lane) + projected(tile, t, row, 0, lane);
      return set(state.next, row, tile.begin + lane, activated(direction(tile).f, clipped(x)));
    });
  }

  enum : int64_t { kUpdate, kReset, kHidden };

  // Computes the update gate, and the reset gate's product with h, or the gate itself where it multiplies later.
  Stmt gru_gates(const Tile& tile, const State& state, const PrimExpr& t) const {
    const auto gate = [&](int64_t row, int64_t g, const PrimExpr& lane) {
      return activated(direction(tile).f, clipped(sum_of(tile, row, g, lane) + projected(tile, t, row, g, lane)));
    };
    return each_of(tile, [&](int64_t row, const PrimExpr& lane) {
      const PrimExpr i = tile.begin + lane, reset = gate(row, kReset, lane);
      return make_seq({set(state.update, row, i, gate(row, kUpdate, lane)),
                       set(state.other, row, i, form_.linear_before_reset ? reset : reset * get(state.h, row, i))});
    });
  }

  Stmt gru_value(const Tile& tile, const State& state, const PrimExpr& t) const {
    const Stmt value = each_of(tile, [&](int64_t row, const PrimExpr& lane) {
      PrimExpr product = sum_of(tile, row, kHidden, lane);
      if (form_.linear_before_reset) {
        const int64_t before = lines_.bias_begin + static_cast<int64_t>(tile.rows.direction) * lines_.bias_stride;
        const PrimExpr bias = wide(lines_.recurrent_bias->item(tile.begin + lane + before));
        product = get(state.other, row, tile.begin + lane) * (product + bias);
      }
      return set_sum(tile, row, kHidden, lane,
                     activated(direction(tile).g, clipped(projected(tile, t, row, kHidden, lane) + product)));
    });
    const Stmt mix = each_of(tile, [&](int64_t row, const PrimExpr& lane) {
      const PrimExpr i = tile.begin + lane, update = get(state.update, row, i);
      const PrimExpr fresh = (number_like(1, update) - update) * sum_of(tile, row, kHidden, lane);
      return set(state.next, row, i, fresh + update * get(state.h, row, i));
    });
    return make_seq({value, mix});
  }

  // ---- places

  PrimExpr get(const Line& line, int64_t row, const PrimExpr& i) const { return line.item(i + row * hidden_); }
  Stmt set(const Line& line, int64_t row, const PrimExpr& i, const PrimExpr& value) const {
    return line.set_item(i + row * hidden_, value);
  }
  Stmt set_output(size_t output, const PrimExpr& at, const PrimExpr& value) const {
    return input_.outputs[output].set_item(at, value);
  }
  // Returns the place of a row in a tensor [D, B, H], and in the tensor [T, D, B, H] of all values.
  PrimExpr last_offset(const Rows& rows, int64_t row) const {
    return (rows.first + (static_cast<int64_t>(rows.direction) * batch_ + row)) * hidden_;
  }
  PrimExpr all_offset(const Rows& rows, const PrimExpr& t, int64_t row) const {
    return t * (static_cast<int64_t>(form_.directions.size()) * batch_ * hidden_) + last_offset(rows, row);
  }

  const KernelInput& input_;
  RecurrentForm form_;
  const StepLines& lines_;
  DataType dtype_;
  int64_t steps_, batch_, hidden_, lanes_, rows_;
};

Stmt steps_rule(const KernelInput& input) {
  const RecurrentForm form = ops::recurrent_form(input.attrs<ops::RecurrentStepsAttrs>());
  StepLines lines{.projected = &input.inputs[0],
                  .recurrent = &input.inputs[1],
                  .lengths = &input.inputs[2],
                  .initial_h = &input.inputs[3]};
  if (form.cell == RecurrentCell::lstm) {
    lines.initial_c = &input.inputs[4];
    lines.peephole = &input.inputs[5];
  }
  if (form.cell == RecurrentCell::gru) {
    lines.recurrent_bias = &input.inputs[4];
    lines.bias_stride = input.outputs[0].shape[3];
  }
  return StepLoops(input, form, lines).emit();
}

// ---- whole layers, as they are compiled when SplitRecurrent does not run; it is what fits tiles to a machine

// Writes data times weight, and the biases, to `projected`.
Stmt project(const KernelInput& input, const RecurrentForm& form, const Line& projected) {
  const Line &data = input.inputs[0], &weight = input.inputs[1], &bias = input.inputs[3];
  const int64_t inputs = data.shape[2], hidden = input.inputs[2].shape[2], rows = form.gates() * hidden;
  const int64_t added_rows = form.resets_product() ? rows - hidden : rows;
  const auto directions = static_cast<int64_t>(form.directions.size());
  return each_index({data.shape[0] * data.shape[1], directions, rows}, [&](const Index& i) {
    return with_cell(projected.buffer->dtype, [&](const Cell& sum) {
      const PrimExpr own = wide(bias.item(i[1] * (2 * rows) + i[2])),
                     other = wide(bias.item(i[1] * (2 * rows) + rows + i[2]));
      const PrimExpr added = added_rows == rows
                                 ? own + other
                                 : make_select(make_binary(BinaryOp::lt, i[2], make_int(added_rows)), own + other, own);
      const Stmt terms = each(inputs, [&](const PrimExpr& k) {
        return sum.set(sum.get() +
                       wide(data.item(i[0] * inputs + k)) * wide(weight.item((i[1] * rows + i[2]) * inputs + k)));
      });
      return make_seq({sum.set(make_const(0, projected.buffer->dtype)), terms,
                       projected.set_item((i[0] * directions + i[1]) * rows + i[2], sum.get() + added)});
    });
  });
}

// Writes the recurrent weights to tiles of one unit.
Stmt pack(const KernelInput& input, const RecurrentForm& form, const Line& tiles) {
  const Line& recurrent = input.inputs[2];
  const int64_t hidden = recurrent.shape[2];
  return each_index(tiles.shape, [&](const Index& i) {
    const PrimExpr from = ((i[0] * form.gates() + i[3]) * hidden + i[1]) * hidden + i[2];
    return tiles.set(i, wide(recurrent.item(from)));
  });
}

KernelRuleFn layer_rule(RecurrentCell cell) {
  return [cell](const KernelInput& input) {
    const RecurrentForm form = ops::recurrent_form(cell, input.attrs<ops::RecurrentAttrs>());
    const Shape& all = input.outputs[0].shape;
    const int64_t hidden = all[3];
    const DataType dtype = wide_type(input.outputs[0].buffer->dtype);
    // Tiles of one unit: those of more are the choice of SplitRecurrent, which knows the machine.
    const Shape packed{all[1], hidden, hidden, form.gates(), 1};
    return with_scratch(
        "projected", dtype, {all[0], all[2], all[1] * form.gates() * hidden}, [&](const Line& projected) {
          return with_scratch("tiles", dtype, packed, [&](const Line& tiles) {
            StepLines lines{.projected = &projected,
                            .recurrent = &tiles,
                            .lengths = &input.inputs[4],
                            .initial_h = &input.inputs[5],
                            .recurrent_bias = &input.inputs[3],
                            .bias_begin = 5 * hidden,
                            .bias_stride = 6 * hidden};
            if (cell == RecurrentCell::lstm) {
              lines.initial_c = &input.inputs[6];
              lines.peephole = &input.inputs[7];
            }
            return make_seq(
                {project(input, form, projected), pack(input, form, tiles), StepLoops(input, form, lines).emit()});
          });
        });
  };
}

}  // namespace

void register_recurrent_rules() {
  set_kernel_rule("nn.lstm", layer_rule(RecurrentCell::lstm));
  set_kernel_rule("nn.gru", layer_rule(RecurrentCell::gru));
  set_kernel_rule("nn.rnn", layer_rule(RecurrentCell::rnn));
  set_kernel_rule("nn.recurrent_steps", steps_rule);
}

}  // namespace headrace::lower
