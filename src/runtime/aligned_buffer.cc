#include "runtime/aligned_buffer.h"

#include <headrace/kernel_abi.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "tensor/kept_memory.h"

namespace headrace::runtime {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

size_t round_up(size_t size, size_t unit) { return (size + unit - 1) / unit * unit; }

bool is_mapped(int64_t nbytes) { return static_cast<size_t>(nbytes) >= kHugePage; }

// Maps memory that starts at a huge page's boundary; nullptr when there is no room. The system only promises the
// boundary of a small page, so a larger piece is mapped and its ends are returned.
void* map_huge(size_t size) {
  const size_t total = size + kHugePage;
  void* mapped = ::mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  const auto begin = reinterpret_cast<uintptr_t>(mapped);
  const uintptr_t aligned = round_up(begin, kHugePage);
  if (aligned > begin) ::munmap(mapped, aligned - begin);
  if (const size_t rest = begin + total - (aligned + size); rest > 0)
    ::munmap(reinterpret_cast<void*>(aligned + size), rest);
  // Advice only: without huge pages everything works, with more misses in the address cache.
  ::madvise(reinterpret_cast<void*>(aligned), size, MADV_HUGEPAGE);
  return reinterpret_cast<void*>(aligned);
}

void* allocate_small(size_t size) {
  void* memory = std::aligned_alloc(HR_ALIGNMENT, round_up(size, HR_ALIGNMENT));
  if (memory != nullptr) std::memset(memory, 0, size);
  return memory;
}

}  // namespace

AlignedBuffer::AlignedBuffer(int64_t nbytes) {
  HEADRACE_CHECK(nbytes >= 0, "a buffer of {} bytes", nbytes);
  if (nbytes == 0) return;
  const auto size = static_cast<size_t>(nbytes);
  void* memory = is_mapped(nbytes) ? map_huge(round_up(size, kHugePage)) : allocate_small(size);
  if (memory == nullptr)
    throw_user_error("{} bytes of memory are needed and not available; use a smaller model or batch", nbytes);
  data_ = static_cast<std::byte*>(memory);
  nbytes_ = nbytes;
}

AlignedBuffer::AlignedBuffer(AlignedBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), nbytes_(std::exchange(other.nbytes_, 0)) {}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(nbytes_, other.nbytes_);
  return *this;
}

AlignedBuffer::~AlignedBuffer() {
  if (data_ == nullptr || holds_kept_memory(data_, static_cast<size_t>(nbytes_))) return;
  if (is_mapped(nbytes_)) {
    ::munmap(data_, round_up(static_cast<size_t>(nbytes_), kHugePage));
  } else {
    std::free(data_);
  }
}

}  // namespace headrace::runtime
