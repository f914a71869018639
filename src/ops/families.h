// One function for each op family, which registers the family's ops. Called by all_ops.cc only.
#pragma once

namespace headrace::ops {

void register_elementwise_ops();        // elementwise.cc: unary functions, activations, clip, cast, dropout
void register_broadcast_ops();          // broadcast.cc: arithmetic, comparisons, logicals, where, bias_add
void register_reduce_ops();             // reduce.cc: sum, mean, ..., argmax, argmin
void register_normalization_ops();      // normalization.cc: batch_norm, layer_norm, softmax, log_softmax, lrn
void register_conv_ops();               // conv.cc: conv2d, conv2d_transpose
void register_matmul_ops();             // matmul.cc: dense, matmul, batch_matmul
void register_pool_ops();               // pool.cc: max, avg, global pools
void register_pad_ops();                // pad.cc: pad, mirror_pad
void register_image_ops();              // image.cc: resize2d
void register_shape_ops();              // shape.cc: reshape, transpose, squeeze, expand_dims, batch_flatten
void register_join_ops();               // join.cc: concatenate, stack, split
void register_einsum_op();              // einsum.cc
void register_repeat_ops();             // repeat.cc: broadcast_to, tile, repeat, reverse
void register_slice_ops();              // slice.cc: strided_slice, take
void register_creation_ops();           // creation.cc: full, arange, shape_of, ...
void register_scan_ops();               // scan.cc: cumsum, cumprod
void register_sort_ops();               // sort.cc: sort, argsort, topk, searchsorted
void register_select_ops();             // select.cc: argwhere, argwhere_bounded, unique
void register_scatter_ops();            // scatter.cc: scatter_elements, scatter_nd, invert_permutation
void register_fourier_ops();            // fourier.cc: dft, stft
void register_sparse_ops();             // sparse.cc: sparse_to_dense, sparse_reshape, sparse_fill_empty_rows
void register_sparse_matrix_ops();      // sparse_matrix.cc: sparse_dense, sparse_add, sparse_transpose
void register_bitserial_ops();          // bitserial.cc: bitpack, bitserial_dense, bitserial_conv2d, contrib_dense_pack
void register_mask_ops();               // mask.cc: one_hot, trilu, sequence_mask, matrix_set_diag, strided_set
void register_rearrange_ops();          // rearrange.cc: layout_transform, sliding_window, meshgrid, adv_index, ...
void register_block_ops();              // blocks.cc: depth_to_space, space_to_depth, ..._batch_nd, dilate
void register_group_norm_ops();         // group_norm.cc: group_norm, instance_norm, l2_normalize
void register_loss_ops();               // loss.cc: cross_entropy, cross_entropy_with_logits, nll_loss
void register_adaptive_pool_ops();      // adaptive_pool.cc: adaptive max and avg pools of 1 to 3 axes
void register_vision_ops();             // vision.cc: get_valid_counts, non_max_suppression, roi_align
void register_class_suppression_ops();  // class_suppression.cc: all_class_non_max_suppression
void register_grid_ops();               // grid.cc: affine_grid, grid_sample, crop_and_resize
void register_detection_ops();          // detection.cc: multibox_prior, multibox_transform_loc, roi_pool, yolo_reorg
void register_dilation_ops();           // dilation.cc: dilation2d
void register_correlation_ops();        // correlation.cc: correlation
void register_deformable_ops();         // deformable.cc: deformable_conv2d
void register_random_ops();             // random.cc: threefry_generate, threefry_split, uniform, normal, multinomial
void register_annotation_ops();         // annotation.cc: stop_fusion
void register_device_ops();             // device.cc: on_device, device_copy
void register_memory_ops();             // memory.cc: storages, views, calls that write into them
void register_old_attrs();              // old_attrs.cc: attributes of pools and convolutions that older programs saved

}  // namespace headrace::ops
