// SplitRecurrent: splits recurrent layers into the product of all inputs and the loop over the steps.
//
//   nn.lstm(x, w, r, b, lens, h0, c0, p)
//   ->
//   nn.recurrent_steps(reshape(nn.dense(reshape(x), w) + b'), tiles of r, lens, h0, c0, p, cell="lstm")
//
// and nn.gru and nn.rnn alike. The dense layer multiplies the inputs of all steps and both directions at once, where
// each step would read all weights again. b' is the sum of the two biases; the one that a GRU adds to a product that it
// resets (linear_before_reset) becomes an operand of the steps. The tiles of r lie in the order in which the kernel of
// the steps reads them (lower/rules/recurrent.cc). Where sequence_lens is a constant and every sequence has all steps,
// the steps do not look at it. float16 and bfloat16 are cast to float32 and the results back, because the ops compute
// in float32.
//
// Needs types. Runs in builds, after placement, since other backends look for the layer, and before FoldConstant, which
// computes b' and the tiles. Leaves alone a layer without a static shape, steps, inputs or batch. Preserves results up
// to rounding.
#pragma once

#include "cost/machine.h"
#include "relay/expr.h"

namespace headrace::passes {

IRModule split_recurrent(const IRModule& module, const cost::Machine& machine);

}  // namespace headrace::passes
