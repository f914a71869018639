// Writing to a descriptor.
#pragma once

#include <cstddef>
#include <span>

namespace headrace {

// Writes all of `bytes` to an open file, from where it stands; false, with errno, when the system says no.
bool write_all(int descriptor, std::span<const std::byte> bytes);

}  // namespace headrace
