#include "base/readable_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <system_error>
#include <thread>

#include "base/error.h"

namespace headrace {

namespace {

// Reads of this size are shared by two threads: 102 MB that the system had in memory took 46 ms by one and 25 to 35 by
// two.
constexpr size_t kReadByTwo = size_t{16} << 20;

// The result of reading: all bytes, a file that ends before, or an error of the system.
struct Outcome {
  bool is_whole = true;
  int error = 0;
};

// Fills `bytes` from a place of the file on.
Outcome read_part(const Descriptor& descriptor, std::span<std::byte> bytes, size_t place) {
  while (!bytes.empty()) {
    const ssize_t count = ::pread(descriptor.number(), bytes.data(), bytes.size(), static_cast<off_t>(place));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return {.is_whole = false, .error = count == 0 ? 0 : errno};
    bytes = bytes.subspan(static_cast<size_t>(count));
    place += static_cast<size_t>(count);
  }
  return {};
}

// Fills `bytes` from a place of the file on; the second half by another thread, where there is one.
Outcome read_parts(const Descriptor& descriptor, std::span<std::byte> bytes, size_t place) {
  if (bytes.size() < kReadByTwo) return read_part(descriptor, bytes, place);
  const size_t half = bytes.size() / 2;
  Outcome last;
  const auto read_rest = [&] { last = read_part(descriptor, bytes.subspan(half), place + half); };
  std::thread other;
  try {
    other = std::thread(read_rest);
  } catch (const std::system_error&) {
    read_rest();
  }
  const Outcome first = read_part(descriptor, bytes.first(half), place);
  if (other.joinable()) other.join();
  return first.is_whole ? last : first;
}

// Returns whether an open file was written. Its name may change meanwhile, as when another file replaces it.
bool was_written(const FileStamp& before, const std::optional<FileStamp>& after) {
  return !after || before.size_bytes != after->size_bytes || before.modified_ns != after->modified_ns;
}

}  // namespace

ReadableFile::ReadableFile(std::string path, std::string_view what)
    : path_(std::move(path)), what_(what), descriptor_(Descriptor::try_open(path_)) {
  struct stat status{};
  if (descriptor_.number() < 0 || ::fstat(descriptor_.number(), &status) != 0) fail();
  if (S_ISDIR(status.st_mode)) throw_user_error("the {} '{}' is a directory; give the path of a file", what_, path_);
  if (!S_ISREG(status.st_mode)) throw_user_error("the {} '{}' is not a regular file", what_, path_);
  const std::optional<FileStamp> stamp = FileStamp::of(descriptor_.number());
  if (!stamp) fail();
  stamp_ = *stamp;
}

void ReadableFile::read(std::span<std::byte> bytes, size_t place) const {
  const Outcome outcome = read_parts(descriptor_, bytes, place);
  if (errno = outcome.error; errno != 0) fail();
  if (!outcome.is_whole || was_written(stamp_, FileStamp::of(descriptor_.number()))) fail_written();
}

void ReadableFile::fail() const {
  throw_user_error("cannot read the {} '{}': {}", what_, path_, std::generic_category().message(errno));
}

void ReadableFile::fail_written() const {
  throw_user_error("the {} '{}' was written to while it was read; try again when its writer is done", what_, path_);
}

}  // namespace headrace
