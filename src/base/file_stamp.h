// Identifies a version of a file, to detect that it was replaced or written.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>

namespace headrace {

// A file and its last change. Equal stamps, one taken after the other, mean that the file was neither replaced nor
// written in between, as far as the file system's clock tells. A renamed file has another stamp, too.
struct FileStamp {
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t size_bytes = 0;
  int64_t modified_ns = 0;
  int64_t changed_ns = 0;

  auto operator<=>(const FileStamp&) const = default;

  // Returns the stamp of an open file; nothing, with errno set, when the system call fails.
  static std::optional<FileStamp> of(int descriptor);
};

}  // namespace headrace
