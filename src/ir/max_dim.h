// How large a dimension may be.
#pragma once

#include <cstdint>

namespace headrace {

// The largest dimension of a tensor. Within it, sums and products with the sizes of windows fit into 64 bits.
// make_tensor_type refuses a larger dimension with a UserError; the readers of text and ONNX add its place.
inline constexpr int64_t kMaxDim = int64_t{1} << 47;

}  // namespace headrace
