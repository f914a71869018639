// Writing to a descriptor.
#pragma once

#include <cstddef>
#include <span>

namespace headrace {

// Writes all of `bytes` to an open file at its current offset. Returns false and sets errno when a write fails.
bool write_all(int descriptor, std::span<const std::byte> bytes);

}  // namespace headrace
