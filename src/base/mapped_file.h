// A file mapped into memory, read-only.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/descriptor.h"

namespace headrace {

// Immutable; the bytes live as long as the object. A file that another process truncates while it is mapped is
// outside what a reader can guard against: replace model files by renaming, not by writing into them.
class MappedFile {
 public:
  // Throws UserError when `path` does not exist, cannot be read, or is not a regular file. `what` names the file's
  // role in the message ("ONNX model", "external data file").
  static std::shared_ptr<const MappedFile> open(const std::string& path, std::string_view what);
  // The first `size` bytes of an open file, nullptr where the system says no (errno).
  static std::shared_ptr<const MappedFile> map(const Descriptor& descriptor, size_t size);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  MappedFile(const std::byte* data, size_t size) : data_(data), size_(size) {}
  const std::byte* data_;
  size_t size_;
};

}  // namespace headrace
