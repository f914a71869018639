// A file's bytes in memory, read-only: files of up to 2 GiB are read, larger ones are mapped.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/descriptor.h"

namespace headrace {

// Immutable; the bytes live as long as the object.
class MappedFile {
 public:
  // Files up to this size are read into memory, so that later writes to the file change nothing. Larger ones (external
  // data of large language models) are mapped, since a copy could exceed the machine's memory. Shrinking a mapped file
  // ends the process, so replace such files by renaming.
  static constexpr size_t kCopiedBytes = size_t{1} << 31;  // the size limit of one ONNX file

  // Throws UserError when `path` does not exist, cannot be read, is not a regular file, or changes while it is read.
  // `what` names the file's role in the message ("ONNX model", "external data file").
  static std::shared_ptr<const MappedFile> open(const std::string& path, std::string_view what);
  // Maps the first `size` bytes of an open file; nullptr, with errno set, when the system call fails.
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
