// Replaces operator new for the whole program, the libraries it links included.
#include "bench/count_allocations.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace headrace::bench {

static std::atomic<int64_t> total{0};

int64_t allocated_bytes() { return total.load(std::memory_order_relaxed); }

// Returns null when there is no memory.
static void* counted(size_t size, size_t alignment) noexcept {
  total.fetch_add(static_cast<int64_t>(size), std::memory_order_relaxed);
  if (alignment <= alignof(std::max_align_t)) return std::malloc(std::max<size_t>(size, 1));
  return std::aligned_alloc(alignment, std::max<size_t>((size + alignment - 1) / alignment, 1) * alignment);
}

static void* counted_or_throw(size_t size, size_t alignment) {
  void* memory = counted(size, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace headrace::bench

// operator new[] also comes here.
void* operator new(size_t size) { return headrace::bench::counted_or_throw(size, 1); }
void* operator new(size_t size, const std::nothrow_t&) noexcept { return headrace::bench::counted(size, 1); }
void* operator new(size_t size, std::align_val_t alignment) {
  return headrace::bench::counted_or_throw(size, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
