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
// Called by name it gives each batch a copy of the data, as Relay's does, and takes the batches apart with split;
// builds do not copy.
//
// Combined are at least min_num_branches calls in one scope with the same data, the same attributes and weights that
// differ in their number of outputs at most; convolutions without groups. The ops behind them follow while they are the
// same in every branch, element by element, with one reader each: activations of the same attributes, bias_add over the
// outputs, and binary ops whose other operand varies along the outputs alone or is the same constant in all; behind
// dense products that become a wider one, also one number for all outputs of a branch, an operand of one shape in all
// branches but for the outputs, of more axes too, and expand_dims. Weights
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
// The form that dense products of the same data get.
enum class DenseForm : uint8_t {
  wide,             // one wider nn.dense
  batch,            // one nn.batch_matmul that reads the data as it is
  batch_of_copies,  // Relay's: one of a copy of the data for each
};
IRModule combine_parallel_dense(const IRModule& module, int64_t min_num_branches = 3,
                                DenseForm form = DenseForm::batch);
IRModule combine_parallel_batch_matmul(const IRModule& module, int64_t min_num_branches = 3);

// Reads "relay.<pass>.min_num_branches" from the context's configuration; 3 without it. UserError when it is not a
// number from 2 on.
int64_t min_num_branches(const pass::PassContext& context, std::string_view pass);
// Reads "relay.CombineParallelDense.to_batch", true without it, and "copy_data". UserError when one is not a bool.
DenseForm dense_form(const pass::PassContext& context, bool copies_data);

}  // namespace headrace::passes
