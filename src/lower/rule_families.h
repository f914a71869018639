// One function for each op family, which registers the rules of the family's ops; the comment beside it names its file.
// Called by all_rules.cc only.
#pragma once

namespace headrace::lower {

void register_elementwise_rules();        // rules/elementwise.cc
void register_broadcast_rules();          // rules/broadcast.cc
void register_reduce_rules();             // rules/reduce.cc
void register_normalization_rules();      // rules/normalization.cc
void register_conv_rules();               // rules/conv.cc
void register_matmul_rules();             // rules/matmul.cc
void register_pool_rules();               // rules/pool.cc
void register_shape_rules();              // rules/shape.cc
void register_join_rules();               // rules/join.cc
void register_slice_rules();              // rules/slice.cc
void register_creation_rules();           // rules/creation.cc
void register_pad_rules();                // rules/pad.cc
void register_image_rules();              // rules/image.cc
void register_scan_rules();               // rules/scan.cc
void register_sort_rules();               // rules/sort.cc
void register_select_rules();             // rules/select.cc
void register_scatter_rules();            // rules/scatter.cc
void register_mask_rules();               // rules/mask.cc
void register_rearrange_rules();          // rules/rearrange.cc
void register_block_rules();              // rules/blocks.cc
void register_group_norm_rules();         // rules/group_norm.cc
void register_recurrent_rules();          // rules/recurrent.cc
void register_loss_rules();               // rules/loss.cc
void register_adaptive_pool_rules();      // rules/adaptive_pool.cc
void register_vision_rules();             // rules/vision.cc
void register_class_suppression_rules();  // rules/class_suppression.cc
void register_grid_rules();               // rules/grid.cc
void register_detection_rules();          // rules/detection.cc
void register_dilation_rules();           // rules/dilation.cc
void register_correlation_rules();        // rules/correlation.cc
void register_deformable_rules();         // rules/deformable.cc
void register_random_rules();             // rules/random.cc
void register_fourier_rules();            // rules/fourier.cc
void register_sparse_rules();             // rules/sparse.cc
void register_bitserial_rules();          // rules/bitserial.cc
void register_quantize_rules();           // rules/quantize.cc

}  // namespace headrace::lower
