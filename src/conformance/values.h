// The values of the parameters of cases. Inner header of this room.
#pragma once

#include <random>
#include <string_view>

#include "ir/type.h"
#include "tensor/ndarray.h"

namespace headrace::conformance {

// Returns random values: small, so that integers do not overflow in a few ops; positive where the name begins with p.
NDArray random_tensor(const TensorTypeNode& type, std::string_view name, std::mt19937& random);

// Reads "float32 2 2 3 1.5 ..." (dtype, rank, shape, elements) as a tensor of the type. Where the type has integers in
// place of those floats, they are rounded, and their absolute values are taken if it has no negative ones. NaN and
// infinity become 1, because libraries such as oneDNN do not carry NaN on.
NDArray given_tensor(const TensorTypeNode& type, std::string_view text);

// Returns the tensor with its elements the other way round if they are floats, else the tensor itself. Integers may be
// indices into another tensor, whose order counts.
NDArray reversed(const NDArray& tensor);

}  // namespace headrace::conformance
