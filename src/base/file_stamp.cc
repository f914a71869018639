#include "base/file_stamp.h"

#include <sys/stat.h>

namespace headrace {

std::optional<FileStamp> FileStamp::of(int descriptor) {
  const auto nanoseconds = [](const timespec& time) { return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; };
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) return std::nullopt;
  return FileStamp{status.st_dev, status.st_ino, status.st_size, nanoseconds(status.st_mtim),
                   nanoseconds(status.st_ctim)};
}

}  // namespace headrace
