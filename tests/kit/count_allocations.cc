#include "kit/count_allocations.h"

#include <atomic>
#include <cerrno>
#include <cstddef>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KIT_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define KIT_SANITIZED 1
#endif
#endif

namespace headrace::kit {

namespace {

std::atomic<bool> counting{false};
std::atomic<int64_t> allocations{0};
std::atomic<int64_t> allocated_bytes{0};

void count_one(size_t size) {
  if (!counting.load(std::memory_order_relaxed)) return;
  allocations.fetch_add(1, std::memory_order_relaxed);
  allocated_bytes.fetch_add(static_cast<int64_t>(size), std::memory_order_relaxed);
}

}  // namespace

}  // namespace headrace::kit

#ifdef KIT_SANITIZED
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void*, size_t),
                                                         void (*on_free)(const volatile void*));

namespace headrace::kit {
static void install_hooks() {
  static const int installed = __sanitizer_install_malloc_and_free_hooks(
      [](const volatile void*, size_t size) { count_one(size); }, [](const volatile void*) {});
  (void)installed;
}
}  // namespace headrace::kit
#else
// glibc exports its allocator under these names too, for exactly this use.
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* pointer, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) {
  headrace::kit::count_one(size);
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  headrace::kit::count_one(count * size);
  return __libc_calloc(count, size);
}
void* realloc(void* pointer, size_t size) {
  headrace::kit::count_one(size);
  return __libc_realloc(pointer, size);
}
void* memalign(size_t alignment, size_t size) {
  headrace::kit::count_one(size);
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void** result, size_t alignment, size_t size) {
  void* pointer = memalign(alignment, size);
  if (!pointer) return ENOMEM;
  *result = pointer;
  return 0;
}
}

namespace headrace::kit {
static void install_hooks() {}
}  // namespace headrace::kit
#endif

namespace headrace::kit {

CountAllocations::CountAllocations() {
  install_hooks();
  allocations = 0;
  allocated_bytes = 0;
  counting = true;
}

CountAllocations::~CountAllocations() { counting = false; }

AllocationCount CountAllocations::count() const { return {allocations.load(), allocated_bytes.load()}; }

}  // namespace headrace::kit
