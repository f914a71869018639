// One function an op family: it gives the family's ops their compute rules. Called by all_rules.cc only.
#pragma once

namespace headrace::lower {

void register_elementwise_rules();    // rules/elementwise.cc: unary functions, activations, clip, cast, dropout
void register_broadcast_rules();      // rules/broadcast.cc: arithmetic, comparisons, logicals, where, bias_add
void register_reduce_rules();         // rules/reduce.cc: sum, mean, ..., argmax, argmin, variance
void register_normalization_rules();  // rules/normalization.cc: batch_norm, layer_norm, softmax, log_softmax, lrn
void register_conv_rules();           // rules/conv.cc: conv2d, conv2d_transpose
void register_matmul_rules();         // rules/matmul.cc: dense, matmul, batch_matmul
void register_pool_rules();           // rules/pool.cc: max, avg, global pools
void register_shape_rules();          // rules/shape.cc: reshape, transpose, broadcast_to, tile, ...
void register_join_rules();           // rules/join.cc: concatenate, stack, split
void register_slice_rules();          // rules/slice.cc: strided_slice, take, gather, gather_nd
void register_creation_rules();       // rules/creation.cc: full, zeros, ones, arange, shape_of, ...
void register_pad_rules();            // rules/pad.cc: pad, mirror_pad
void register_image_rules();          // rules/image.cc: resize2d

}  // namespace headrace::lower
