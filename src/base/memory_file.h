// Files that have no place in the file system.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "base/descriptor.h"

namespace headrace {

// An empty file in memory, gone with its last descriptor and mapping. `what` is what it is for, in messages: "the
// compiled model". Refuses with SYSTEM when the system gives no more.
Expected<Descriptor> make_memory_file(std::string_view what);
// The same with those bytes.
Expected<Descriptor> make_memory_file(std::string_view what, std::span<const std::byte> bytes);

}  // namespace headrace
