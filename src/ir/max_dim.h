// How large a dimension may be.
#pragma once

#include <cstdint>

namespace headrace {

// The largest dimension of a tensor, as of an array in memory: sums and products with the sizes of windows stay within
// 64 bits. make_tensor_type refuses a larger one with a UserError; the readers of text and ONNX say where it stands.
inline constexpr int64_t kMaxDim = int64_t{1} << 47;

}  // namespace headrace
