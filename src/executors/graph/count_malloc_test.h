// How often the process has asked the C allocator for memory.
#pragma once

#include <atomic>
#include <cstdint>

namespace headrace::testing {

extern std::atomic<int64_t> malloc_count;
extern const bool counts_mallocs;  // false: malloc_count stays 0

}  // namespace headrace::testing
