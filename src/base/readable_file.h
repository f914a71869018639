// A regular file that is open for reading. Every read detects that the file was written since it was opened.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/descriptor.h"
#include "base/file_stamp.h"

namespace headrace {

class ReadableFile {
 public:
  // Throws UserError when `path` does not exist, cannot be read, or is not a regular file. `what` names the file's role
  // in messages ("ONNX model", "external data file").
  ReadableFile(std::string path, std::string_view what);

  size_t size_bytes() const { return static_cast<size_t>(stamp_.size_bytes); }
  const Descriptor& descriptor() const { return descriptor_; }
  // Returns the file's version when it was opened.
  const FileStamp& stamp() const { return stamp_; }

  // Fills `bytes` from byte `place` of the file on; two threads share a large read. Throws UserError when the system
  // fails, and when the file ends before or was written since it was opened. A rename is no write.
  void read(std::span<std::byte> bytes, size_t place) const;

  // Throws the UserError for the last system call, which failed.
  [[noreturn]] void fail() const;
  // Throws the UserError for a file that another program writes.
  [[noreturn]] void fail_written() const;

 private:
  std::string path_;
  std::string what_;
  Descriptor descriptor_;
  FileStamp stamp_;
};

}  // namespace headrace
