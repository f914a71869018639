#include "ops/all_ops.h"

#include <mutex>

#include "ops/families.h"
#include "relay/expr.h"

namespace headrace::ops {

void register_all_ops() {
  static std::once_flag once;
  std::call_once(once, [] {
    relay::register_types();
    register_elementwise_ops();
    register_broadcast_ops();
    register_reduce_ops();
    register_normalization_ops();
    register_conv_ops();
    register_matmul_ops();
    register_pool_ops();
    register_pad_ops();
    register_image_ops();
    register_shape_ops();
    register_join_ops();
    register_einsum_op();
    register_repeat_ops();
    register_slice_ops();
    register_creation_ops();
    register_scan_ops();
    register_sort_ops();
    register_select_ops();
    register_scatter_ops();
    register_fourier_ops();
    register_sparse_ops();
    register_sparse_matrix_ops();
    register_bitserial_ops();
    register_quantize_ops();
    register_quantized_dense_op();
    register_requantize_op();
    register_quantized_product_ops();
    register_quantized_broadcast_ops();
    register_quantized_concatenate_op();
    register_quantized_pool_op();
    register_quantized_functions();
    register_quantized_softmax_op();
    register_quantized_dense_pack_op();
    register_simulated_quantize_ops();
    register_mask_ops();
    register_rearrange_ops();
    register_block_ops();
    register_group_norm_ops();
    register_recurrent_ops();
    register_loss_ops();
    register_adaptive_pool_ops();
    register_vision_ops();
    register_class_suppression_ops();
    register_grid_ops();
    register_detection_ops();
    register_dilation_ops();
    register_correlation_ops();
    register_deformable_ops();
    register_random_ops();
    register_annotation_ops();
    register_compiler_annotation_ops();
    register_extern_onnx_op();
    register_device_ops();
    register_memory_ops();
    register_old_attrs();
  });
}

}  // namespace headrace::ops
