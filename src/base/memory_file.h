// Files that have no place in the file system.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "base/descriptor.h"

namespace headrace {

// Makes an empty file in memory that disappears with its last descriptor and mapping. `what` names its purpose in
// messages: "the compiled model". Refuses with SYSTEM when the system call fails.
Expected<Descriptor> make_memory_file(std::string_view what);
// Makes a file in memory that holds `bytes`.
Expected<Descriptor> make_memory_file(std::string_view what, std::span<const std::byte> bytes);

}  // namespace headrace
