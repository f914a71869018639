#include "base/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <system_error>
#include <thread>

#include "base/file_stamp.h"

namespace headrace {

namespace {

// Files of this size are read by two threads: 102 MB that the system had in memory took 46 ms by one and 25 to 35 by
// two.
constexpr size_t kReadByTwo = size_t{16} << 20;

// What reading came to: all bytes, a file that ends before, or an error of the system.
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

// Fills `bytes` from the start of the file; the second half by another thread, where there is one.
Outcome read_whole(const Descriptor& descriptor, std::span<std::byte> bytes) {
  if (bytes.size() < kReadByTwo) return read_part(descriptor, bytes, 0);
  const size_t half = bytes.size() / 2;
  Outcome last;
  const auto read_rest = [&] { last = read_part(descriptor, bytes.subspan(half), half); };
  std::thread other;
  try {
    other = std::thread(read_rest);
  } catch (const std::system_error&) {
    read_rest();
  }
  const Outcome first = read_part(descriptor, bytes.first(half), 0);
  if (other.joinable()) other.join();
  return first.is_whole ? last : first;
}

// Returns whether an open file was written. Its name may change meanwhile, as when another file replaces it.
bool was_written(const std::optional<FileStamp>& before, const std::optional<FileStamp>& after) {
  return !before || !after || before->size_bytes != after->size_bytes || before->modified_ns != after->modified_ns;
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path, std::string_view what) {
  const auto fail = [&] {
    throw_user_error("cannot read the {} '{}': {}", what, path, std::generic_category().message(errno));
  };
  const Descriptor descriptor = Descriptor::try_open(path);
  struct stat status{};
  if (descriptor.number() < 0 || ::fstat(descriptor.number(), &status) != 0) fail();
  if (S_ISDIR(status.st_mode)) throw_user_error("the {} '{}' is a directory; give the path of a file", what, path);
  if (!S_ISREG(status.st_mode)) throw_user_error("the {} '{}' is not a regular file", what, path);
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0 || size > kCopiedBytes) {
    auto file = map(descriptor, size);
    if (file == nullptr) fail();
    return file;
  }
  const std::optional<FileStamp> before = FileStamp::of(descriptor.number());
  void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) fail();
  const std::shared_ptr<const MappedFile> file(new MappedFile(static_cast<const std::byte*>(data), size));
  const Outcome outcome = read_whole(descriptor, {static_cast<std::byte*>(data), size});
  if (errno = outcome.error; errno != 0) fail();
  if (!outcome.is_whole || was_written(before, FileStamp::of(descriptor.number())))
    throw_user_error("the {} '{}' was written to while it was read; try again when its writer is done", what, path);
  ::mprotect(data, size, PROT_READ);
  return file;
}

std::shared_ptr<const MappedFile> MappedFile::map(const Descriptor& descriptor, size_t size) {
  void* data = nullptr;  // the system maps no empty files
  if (size > 0) data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor.number(), 0);
  if (data == MAP_FAILED) return nullptr;
  return std::shared_ptr<const MappedFile>(new MappedFile(static_cast<const std::byte*>(data), size));
}

MappedFile::~MappedFile() {
  if (size_ > 0) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace headrace
