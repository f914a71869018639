// CombineParallelConv2D, CombineParallelDense, CombineParallelBatchMatmul: products that share their data become one.
//
//   %0 = nn.conv2d(%x, %w1);             %0 = nn.conv2d(%x, concatenate((%w1, %w2, %w3), axis=0));
//   %1 = nn.conv2d(%x, %w2);       ->    (strided_slice(%0, ...), strided_slice(%0, ...), strided_slice(%0, ...))
//   %2 = nn.conv2d(%x, %w3);
//
// Products of dense become the batches of one nn.batch_matmul, unless to_batch is false:
//
//   %0 = nn.dense(%x, %w1);              %0 = nn.batch_matmul(expand_dims(%x, axis=0), stack((%w1, %w2, %w3)));
//   %1 = nn.dense(%x, %w2);        ->    (squeeze(strided_slice(%0, begin=[0], end=[1], axes=[0]), axis=[0]), ...)
//   %2 = nn.dense(%x, %w3);
//
// Combined are at least min_num_branches calls in one scope with the same data, the same attributes and weights that
// differ in their number of outputs at most; convolutions without groups. The ops behind them follow while they are the
// same in every branch, element by element, with one reader each: activations of the same attributes, bias_add over the
// outputs, and binary ops whose other operand varies along the outputs alone or is the same constant in all; behind
// dense products, also one number for all outputs of a branch. Weights
// and operands that have effects, or are computed from another such product, are not moved.
//
// In batches weights have the same number of outputs too, and the other operands of binary ops are any of one shape;
// bias_add becomes add. Data of another number of dimensions than 2 makes one wider dense either way, since
// nn.batch_matmul takes no other.
//
// Needs types; shapes of weights and results must be static. FoldConstant afterwards joins the weights. Preserves
// results to the last bit, since every output is computed from its own weights as before.
#pragma once

#include "pass/pass.h"
#include "relay/expr.h"

namespace headrace::passes {

IRModule combine_parallel_conv2d(const IRModule& module, int64_t min_num_branches = 3);
IRModule combine_parallel_dense(const IRModule& module, int64_t min_num_branches = 3, bool to_batch = true);
IRModule combine_parallel_batch_matmul(const IRModule& module, int64_t min_num_branches = 3);

// Reads "relay.<pass>.min_num_branches" from the context's configuration; 3 without it. UserError when it is not a
// number from 2 on.
int64_t min_num_branches(const pass::PassContext& context, std::string_view pass);
// Reads "relay.CombineParallelDense.to_batch"; true without it. UserError when it is not a bool.
bool is_dense_to_batch(const pass::PassContext& context);

}  // namespace headrace::passes
