#include "passes/nn/split_recurrent.h"

#include <algorithm>

#include "ops/nn/matmul.h"
#include "ops/nn/pad.h"
#include "ops/nn/recurrent.h"
#include "ops/op_handles.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/shape.h"
#include "ops/tensor/slice.h"
#include "passes/rewrite/for_each_function.h"
#include "relay/function_attrs.h"
#include "relay/match.h"
#include "relay/visit.h"

namespace headrace::passes {

using ops::RecurrentAttrs;
using ops::RecurrentCell;
using relay::CallNode;

namespace {

std::optional<RecurrentCell> cell_of(const CallNode& call) {
  if (relay::is_call(call, op::kLstm)) return RecurrentCell::lstm;
  if (relay::is_call(call, op::kGru)) return RecurrentCell::gru;
  if (relay::is_call(call, op::kRnn)) return RecurrentCell::rnn;
  return std::nullopt;
}

// Returns whether `lens` is a constant that gives every sequence all steps.
bool has_all_steps(const Expr& lens, int64_t steps) {
  const auto* constant = lens.as<relay::ConstantNode>();
  if (constant == nullptr) return false;
  const NDArray data = constant->data.to_dense();
  for (int64_t i = 0; i < data.num_elements(); ++i) {
    if (element_as_int(data.tensor(), i) != steps) return false;
  }
  return true;
}

// The sizes of a layer: steps, batch, inputs, directions, hidden units, and the gates of its cell.
struct LayerSizes {
  int64_t t, b, i, d, h, g;
};

// Returns the sizes of a typed layer; nothing where one is not known, or where there is nothing to multiply.
std::optional<LayerSizes> sizes_of(const CallNode& call, RecurrentCell cell) {
  const auto* data = relay::tensor_type_of(call.args[0]);
  const auto* recurrent = relay::tensor_type_of(call.args[2]);
  if (data == nullptr || recurrent == nullptr) return std::nullopt;
  const auto x = as_shape(data->shape), r = as_shape(recurrent->shape);
  if (!x || !r) return std::nullopt;
  const LayerSizes sizes{(*x)[0], (*x)[1], (*x)[2], (*r)[0], (*r)[2], ops::gates_of(cell)};
  const bool is_empty = std::min({sizes.t, sizes.b, sizes.i, sizes.h}) == 0;
  return is_empty ? std::nullopt : std::optional(sizes);
}

// Returns the hidden units of a tile: enough vectors that the sums of all gates hide the time of a multiply-add. A
// batch has rows for that.
int64_t lanes_of_tile(const LayerSizes& sizes, const cost::Machine& machine, DataType dtype) {
  const int64_t vectors = sizes.b > 1 && sizes.g > 1 ? 1 : sizes.g > 1 ? 2 : 4;
  int64_t lanes = cost::lanes_of(machine, dtype) * vectors;
  while (lanes > 1 && lanes >= 2 * sizes.h) lanes /= 2;
  return lanes;
}

// Returns the rows of the batch whose sums fit the registers beside each other; some registers hold the weights and the
// values that are multiplied. Sequences of unlike lengths run one by one.
int64_t rows_of_tile(const LayerSizes& sizes, int64_t lanes, bool all_steps, const cost::Machine& machine,
                     DataType dtype) {
  if (!all_steps) return 1;
  const int64_t vectors = std::max<int64_t>(1, lanes / cost::lanes_of(machine, dtype));
  const int64_t sums = machine.vector_registers - 4;
  const int64_t most = std::clamp<int64_t>(sums / (sizes.g * vectors), 1, sizes.b);
  const int64_t parts = (sizes.b + most - 1) / most;
  return (sizes.b + parts - 1) / parts;  // parts of about one size
}

// Writes the two parts of one layer. `typed` carries the types, `call` the operands as rewritten so far.
class LayerSplitter {
 public:
  LayerSplitter(const CallNode& typed, const CallNode& call, RecurrentCell cell, const LayerSizes& sizes)
      : call_(call),
        cell_(cell),
        s_(sizes),
        attrs_(call.attrs_as<RecurrentAttrs>()),
        own_(relay::tensor_type_of(typed.args[0])->dtype),
        dtype_(own_.bits() == 16 ? DataType::float_(32) : own_) {}

  Expr split(const cost::Machine& machine) const {
    const int64_t lanes = lanes_of_tile(s_, machine, dtype_);
    const bool all_steps = has_all_steps(call_.args[4], s_.t);
    ops::StepsOperands operands{
        .projected = project(), .recurrent = tiles(lanes), .sequence_lens = call_.args[4], .initial_h = wide(5)};
    if (cell_ == RecurrentCell::lstm) {
      operands.initial_c = wide(6);
      operands.peephole = wide(7);
    }
    if (cell_ == RecurrentCell::gru) operands.recurrent_bias = hidden_bias();
    const int64_t rows = rows_of_tile(s_, lanes, all_steps, machine, dtype_);
    return narrow(ops::recurrent_steps(cell_, operands, attrs_, {.all_steps = all_steps, .rows = rows}, call_.span));
  }

 private:
  Expr wide(size_t i) const { return own_ == dtype_ ? call_.args[i] : ops::cast(call_.args[i], dtype_, call_.span); }
  Expr reshape(const Expr& x, const Shape& shape) const { return ops::reshape(x, shape, false, call_.span); }

  // Casts the results back to the dtype of the layer.
  Expr narrow(const Expr& steps) const {
    if (own_ == dtype_) return steps;
    Array<Expr> items;
    for (int64_t i = 0; i < (cell_ == RecurrentCell::lstm ? 3 : 2); ++i)
      items.push_back(ops::cast(relay::make_tuple_get_item(steps, i, call_.span), own_, call_.span));
    return relay::make_tuple(items, call_.span);
  }

  int64_t rows() const { return s_.d * s_.g * s_.h; }
  bool resets_product() const { return cell_ == RecurrentCell::gru && attrs_.linear_before_reset; }

  Expr project() const {
    const Expr product =
        ops::dense(reshape(wide(0), {s_.t * s_.b, s_.i}), reshape(wide(1), {rows(), s_.i}), {}, call_.span);
    return reshape(ops::add(product, reshape(added_bias(), {rows()}), call_.span), {s_.t, s_.b, rows()});
  }

  // Returns the rows [begin, end) of the gates of one of the two biases, [D, 1, end - begin, H].
  Expr bias_rows(int64_t which, int64_t begin, int64_t end) const {
    const Expr both = reshape(wide(3), {s_.d, 2, s_.g, s_.h});
    return ops::strided_slice(both, {which, begin}, {which + 1, end}, {1, 1}, {1, 2}, "end", call_.span);
  }

  Expr added_bias() const {
    Expr other = bias_rows(1, 0, resets_product() ? s_.g - 1 : s_.g);
    if (resets_product()) {
      const Array<Shape> widths{Shape{0, 0}, Shape{0, 0}, Shape{0, 1}, Shape{0, 0}};
      other = ops::pad(other, widths, relay::make_scalar(0, dtype_), "constant", call_.span);
    }
    return ops::add(bias_rows(0, 0, s_.g), other, call_.span);
  }

  // Returns the bias of the hidden gate of a GRU, [D, H].
  Expr hidden_bias() const { return reshape(bias_rows(1, s_.g - 1, s_.g), {s_.d, s_.h}); }

  // Returns the recurrent weights as [D, tiles, H, G, L].
  Expr tiles(int64_t lanes) const {
    const int64_t count = (s_.h + lanes - 1) / lanes, lacking = count * lanes - s_.h;
    Expr rows = reshape(wide(2), {s_.d, s_.g, s_.h, s_.h});
    if (lacking > 0) {
      const Array<Shape> widths{Shape{0, 0}, Shape{0, 0}, Shape{0, lacking}, Shape{0, 0}};
      rows = ops::pad(rows, widths, relay::make_scalar(0, dtype_), "constant", call_.span);
    }
    return ops::transpose(reshape(rows, {s_.d, s_.g, count, lanes, s_.h}), {0, 2, 4, 1, 3}, call_.span);
  }

  const CallNode& call_;
  RecurrentCell cell_;
  LayerSizes s_;
  const RecurrentAttrs& attrs_;
  DataType own_, dtype_;  // dtype of the layer's tensors; dtype that it computes in
};

Expr split_layer(const Expr& before, const Expr& after, const cost::Machine& machine) {
  const auto* call = relay::op_call(after);
  const auto cell = call == nullptr ? std::nullopt : cell_of(*call);
  if (!cell) return after;
  const auto& typed = *before.as<CallNode>();
  const auto sizes = sizes_of(typed, *cell);
  return sizes ? LayerSplitter(typed, *call, *cell, *sizes).split(machine) : after;
}

}  // namespace

IRModule split_recurrent(const IRModule& module, const cost::Machine& machine) {
  return rewrite_bodies(module, [&](const Expr& body) {
    return relay::rewrite_post_order(body, relay::is_entered, [&](const Expr& before, const Expr& after) {
      return split_layer(before, after, machine);
    });
  });
}

}  // namespace headrace::passes
