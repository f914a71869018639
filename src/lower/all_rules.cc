#include <mutex>

#include "lower/kernel_rule.h"
#include "lower/rule_families.h"
#include "ops/all_ops.h"

namespace headrace::lower {

void register_all_rules() {
  static std::once_flag once;
  std::call_once(once, [] {
    ops::register_all_ops();
    register_elementwise_rules();
    register_broadcast_rules();
    register_reduce_rules();
    register_normalization_rules();
    register_conv_rules();
    register_matmul_rules();
    register_pool_rules();
    register_shape_rules();
    register_join_rules();
    register_slice_rules();
    register_creation_rules();
    register_pad_rules();
    register_image_rules();
    register_scan_rules();
    register_sort_rules();
    register_select_rules();
    register_scatter_rules();
    register_fourier_rules();
    register_sparse_rules();
    register_bitserial_rules();
    register_quantize_rules();
    register_mask_rules();
    register_rearrange_rules();
    register_block_rules();
    register_group_norm_rules();
    register_recurrent_rules();
    register_loss_rules();
    register_adaptive_pool_rules();
    register_vision_rules();
    register_class_suppression_rules();
    register_grid_rules();
    register_detection_rules();
    register_dilation_rules();
    register_correlation_rules();
    register_deformable_rules();
    register_random_rules();
  });
}

std::vector<std::string> ops_without_rule() {
  std::vector<std::string> names;
  for (const std::string& name : op_names()) {
    const Op op = get_op(name);
    if (op->find(kComputeRule) == nullptr && op->find(kKernelRule) == nullptr) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace headrace::lower
