#include "kit/guard_page.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace headrace::kit {

namespace {

constexpr std::byte kFill{0xA5};

size_t page_size() { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }

size_t round_up(size_t value, size_t multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace

GuardedBuffer::GuardedBuffer(size_t size_bytes, size_t alignment) : size_(size_bytes) {
  size_t page = page_size();
  HEADRACE_CHECK(alignment > 0 && alignment <= page && (alignment & (alignment - 1)) == 0, "alignment is {}",
                 alignment);
  size_t occupied = round_up(size_bytes, alignment);
  size_t inside = round_up(std::max<size_t>(occupied, 1), page);
  mapping_size_ = inside + 2 * page;
  void* mapping = ::mmap(nullptr, mapping_size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  HEADRACE_CHECK(mapping != MAP_FAILED, "cannot map {} bytes", mapping_size_);
  mapping_ = static_cast<std::byte*>(mapping);
  int status = ::mprotect(mapping_ + page, inside, PROT_READ | PROT_WRITE);
  HEADRACE_CHECK(status == 0, "cannot open {} bytes", inside);
  std::memset(mapping_ + page, std::to_integer<int>(kFill), inside);
  data_ = mapping_ + page + inside - occupied;
}

GuardedBuffer::~GuardedBuffer() {
  if (mapping_) ::munmap(mapping_, mapping_size_);
}

GuardedBuffer::GuardedBuffer(GuardedBuffer&& other) noexcept
    : mapping_(std::exchange(other.mapping_, nullptr)),
      mapping_size_(std::exchange(other.mapping_size_, 0)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

bool GuardedBuffer::is_slack_intact() const {
  auto is_filled = [](const std::byte* begin, const std::byte* end) {
    return std::all_of(begin, end, [](std::byte b) { return b == kFill; });
  };
  return is_filled(mapping_ + page_size(), data_) && is_filled(data_ + size_, mapping_ + mapping_size_ - page_size());
}

}  // namespace headrace::kit
