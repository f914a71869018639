// SharedMemory: a mapping of a file in memory that another process maps, too.
#pragma once

#include <cstddef>
#include <span>

#include "base/descriptor.h"

namespace headrace::executors::pipeline::isolation {

class SharedMemory {
 public:
  // Makes a file of that size, which no process can make smaller. UserError when the system refuses.
  explicit SharedMemory(size_t nbytes);
  // Maps a file as large as it is.
  explicit SharedMemory(Descriptor file);
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  // Makes the file larger and maps all of it; then its size stays. What is not used takes no memory.
  void grow(size_t nbytes);
  // Maps the file as large as it is now.
  void map();

  int file() const { return file_.number(); }
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  void unmap();

  Descriptor file_;
  std::span<std::byte> bytes_;
};

}  // namespace headrace::executors::pipeline::isolation
