// Memory for tensors: 64-byte aligned, zero at first, given back on destruction.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace::runtime {

// Owns a block of memory. From 2 MB up it comes straight from the operating system, in huge pages where those are to be
// had, and only pages that are touched take memory.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  // Throws UserError when there is no such amount of memory. 0 bytes: an empty buffer.
  explicit AlignedBuffer(int64_t nbytes);
  AlignedBuffer(AlignedBuffer&& other) noexcept;
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;
  ~AlignedBuffer();

  // Returns the address; nullptr when empty.
  std::byte* data() const { return data_; }
  int64_t nbytes() const { return nbytes_; }

 private:
  std::byte* data_ = nullptr;
  int64_t nbytes_ = 0;
};

}  // namespace headrace::runtime
