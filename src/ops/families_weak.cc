#include "ops/families.h"
namespace headrace::ops {
__attribute__((weak)) void register_elementwise_ops() {}
__attribute__((weak)) void register_broadcast_ops() {}
__attribute__((weak)) void register_reduce_ops() {}
__attribute__((weak)) void register_normalization_ops() {}
__attribute__((weak)) void register_conv_ops() {}
__attribute__((weak)) void register_matmul_ops() {}
__attribute__((weak)) void register_pool_ops() {}
__attribute__((weak)) void register_pad_ops() {}
__attribute__((weak)) void register_image_ops() {}
__attribute__((weak)) void register_shape_ops() {}
__attribute__((weak)) void register_slice_ops() {}
__attribute__((weak)) void register_creation_ops() {}
}
