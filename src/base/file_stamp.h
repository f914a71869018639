// Which contents a file had when it was looked at.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>

namespace headrace {

// Two equal stamps are of one file that nobody wrote to in between, as far as the system's clock tells.
struct FileStamp {
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t size_bytes = 0;
  int64_t modified_ns = 0;
  int64_t changed_ns = 0;

  auto operator<=>(const FileStamp&) const = default;

  // Nothing, with errno, where the system says no.
  static std::optional<FileStamp> of(int descriptor);
};

}  // namespace headrace
