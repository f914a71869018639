// Counts calls of the C allocator, which operator new uses too. Under a sanitizer, which has its own, nothing is
// counted.
#include "executors/graph/count_malloc_test.h"

#include <atomic>
#include <cstddef>

namespace headrace::testing {
std::atomic<int64_t> malloc_count = 0;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
const bool headrace::testing::counts_mallocs = false;
#else
const bool headrace::testing::counts_mallocs = true;

extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

void* malloc(std::size_t size) {
  ++headrace::testing::malloc_count;
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  ++headrace::testing::malloc_count;
  return __libc_calloc(count, size);
}
void* realloc(void* memory, std::size_t size) {
  ++headrace::testing::malloc_count;
  return __libc_realloc(memory, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  ++headrace::testing::malloc_count;
  return __libc_memalign(alignment, size);
}
}
#endif
