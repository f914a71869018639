#include <mutex>

#include "lower/compute_rule.h"
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
  });
}

std::vector<std::string> ops_without_rule() {
  std::vector<std::string> names;
  for (const std::string& name : op_names()) {
    if (get_op(name)->find(kComputeRule) == nullptr) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace headrace::lower
