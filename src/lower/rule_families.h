// One function for each op family, which registers the compute rules of its ops. Called by all_rules.cc only.
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
void register_scan_rules();           // rules/scan.cc: cumsum, cumprod
void register_sort_rules();           // rules/sort.cc: sort, argsort, topk, searchsorted
void register_select_rules();         // rules/select.cc: argwhere_bounded, unique
void register_scatter_rules();        // rules/scatter.cc: scatter_elements, scatter_nd, invert_permutation
void register_fourier_rules();        // rules/fourier.cc: dft, stft
void register_sparse_rules();         // rules/sparse.cc: sparse_to_dense, sparse_reshape, sparse_dense, ...
void register_bitserial_rules();      // rules/bitserial.cc: bitpack, bitserial_dense, bitserial_conv2d, ...
void register_mask_rules();           // rules/mask.cc: one_hot, trilu, sequence_mask, matrix_set_diag, strided_set
void register_rearrange_rules();      // rules/rearrange.cc: layout_transform, sliding_window, meshgrid, adv_index, ...
void register_block_rules();          // rules/blocks.cc: depth_to_space, space_to_depth, ..._batch_nd, dilate
void register_group_norm_rules();     // rules/group_norm.cc: group_norm, instance_norm, l2_normalize
void register_loss_rules();           // rules/loss.cc: cross_entropy, cross_entropy_with_logits, nll_loss
void register_adaptive_pool_rules();  // rules/adaptive_pool.cc: adaptive max and avg pools of 1 to 3 axes
void register_vision_rules();         // rules/vision.cc: get_valid_counts, non_max_suppression, roi_align
void register_class_suppression_rules();  // rules/class_suppression.cc: all_class_non_max_suppression
void register_grid_rules();               // rules/grid.cc: affine_grid, grid_sample, crop_and_resize
void register_detection_rules();          // rules/detection.cc: multibox_prior, multibox_transform_loc, roi_pool, ...
void register_dilation_rules();           // rules/dilation.cc: dilation2d
void register_correlation_rules();        // rules/correlation.cc: correlation
void register_deformable_rules();         // rules/deformable.cc: deformable_conv2d
void register_random_rules();  // rules/random.cc: threefry_generate, threefry_split, uniform, normal, multinomial

}  // namespace headrace::lower
