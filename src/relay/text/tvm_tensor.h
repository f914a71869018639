// Reads tensors as TVM writes them: a magic number, a device, a dtype, a shape and the bytes, all little-endian.
#pragma once

#include "tensor/ndarray.h"

namespace headrace::relay {

// Reads one tensor, which takes all of the bytes. UserError for bytes that are cut off or left over, another magic
// number, a dtype that there is not here, or a size that the shape does not have. Allocates no more than the bytes.
NDArray read_tvm_tensor(std::span<const std::byte> bytes);

}  // namespace headrace::relay
