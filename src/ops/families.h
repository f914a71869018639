// One function for each op family, which registers the family's ops; the comment beside it names its file. Called by
// all_ops.cc only.
#pragma once

namespace headrace::ops {

void register_elementwise_ops();           // tensor/elementwise.cc
void register_broadcast_ops();             // tensor/broadcast.cc
void register_reduce_ops();                // tensor/reduce.cc
void register_normalization_ops();         // nn/normalization.cc
void register_conv_ops();                  // nn/conv.cc
void register_matmul_ops();                // nn/matmul.cc
void register_pool_ops();                  // nn/pool.cc
void register_pad_ops();                   // nn/pad.cc
void register_image_ops();                 // image/image.cc
void register_shape_ops();                 // tensor/shape.cc
void register_join_ops();                  // tensor/join.cc
void register_einsum_op();                 // tensor/einsum.cc
void register_repeat_ops();                // tensor/repeat.cc
void register_slice_ops();                 // tensor/slice.cc
void register_creation_ops();              // tensor/creation.cc
void register_scan_ops();                  // algorithm/scan.cc
void register_sort_ops();                  // algorithm/sort.cc
void register_select_ops();                // algorithm/select.cc
void register_scatter_ops();               // algorithm/scatter.cc
void register_mask_ops();                  // tensor/mask.cc
void register_rearrange_ops();             // tensor/rearrange.cc
void register_block_ops();                 // tensor/blocks.cc
void register_group_norm_ops();            // nn/group_norm.cc
void register_recurrent_ops();             // nn/recurrent.cc
void register_loss_ops();                  // nn/loss.cc
void register_adaptive_pool_ops();         // nn/adaptive_pool.cc
void register_vision_ops();                // image/vision.cc
void register_class_suppression_ops();     // image/class_suppression.cc
void register_grid_ops();                  // image/grid.cc
void register_detection_ops();             // image/detection.cc
void register_dilation_ops();              // image/dilation.cc
void register_correlation_ops();           // nn/correlation.cc
void register_deformable_ops();            // nn/deformable.cc
void register_random_ops();                // algorithm/random.cc
void register_annotation_ops();            // tensor/annotation.cc
void register_compiler_annotation_ops();   // tensor/compiler_annotation.cc
void register_extern_onnx_op();            // tensor/extern_onnx.cc
void register_device_ops();                // tensor/device.cc
void register_memory_ops();                // tensor/memory.cc
void register_old_attrs();                 // nn/old_attrs.cc: no ops, but how saved programs wrote attributes
void register_fourier_ops();               // algorithm/fourier.cc
void register_sparse_ops();                // algorithm/sparse.cc
void register_sparse_matrix_ops();         // nn/sparse_matrix.cc
void register_bitserial_ops();             // nn/bitserial.cc
void register_quantize_ops();              // qnn/quantize.cc
void register_quantized_dense_op();        // qnn/dense.cc
void register_requantize_op();             // qnn/requantize.cc
void register_quantized_product_ops();     // qnn/products.cc
void register_quantized_broadcast_ops();   // qnn/broadcast.cc
void register_quantized_concatenate_op();  // qnn/concatenate.cc
void register_quantized_pool_op();         // qnn/avg_pool.cc
void register_quantized_functions();       // qnn/functions.cc
void register_quantized_softmax_op();      // qnn/softmax.cc
void register_quantized_dense_pack_op();   // qnn/dense_pack.cc
void register_simulated_quantize_ops();    // qnn/simulated.cc

}  // namespace headrace::ops
