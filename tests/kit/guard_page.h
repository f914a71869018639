// A buffer that ends where an inaccessible page begins: code that sanitizers don't see (generated kernels) faults as
// soon as it reads or writes one byte past the end, or before the page of the beginning.
#pragma once

#include <cstddef>
#include <span>

namespace headrace::kit {

class GuardedBuffer {
 public:
  // Makes `size_bytes` bytes, filled with 0xA5, whose end is as near to the guard page as `alignment` (a power of two,
  // at most a page) allows. The alignment - 1 bytes of slack also hold 0xA5, and is_slack_intact() checks them.
  explicit GuardedBuffer(size_t size_bytes, size_t alignment = 1);
  ~GuardedBuffer();
  GuardedBuffer(GuardedBuffer&& other) noexcept;
  GuardedBuffer& operator=(GuardedBuffer&&) = delete;

  std::byte* data() { return data_; }
  std::span<std::byte> bytes() { return {data_, size_}; }
  template <typename T>
  std::span<T> as() {
    return {reinterpret_cast<T*>(data_), size_ / sizeof(T)};
  }
  // Returns false when something wrote between the pages' beginning and data(), or between the end and the guard page.
  bool is_slack_intact() const;

 private:
  std::byte* mapping_ = nullptr;
  size_t mapping_size_ = 0;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace headrace::kit
