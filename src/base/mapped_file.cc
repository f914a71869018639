#include "base/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <system_error>

#include "base/file_stamp.h"

namespace headrace {

namespace {

// Fills `bytes` from the start of the file; false where the system says no (errno) or the file ends before (0).
bool read_whole(const Descriptor& descriptor, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::read(descriptor.number(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      if (count == 0) errno = 0;
      return false;
    }
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return true;
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
  const bool is_whole = read_whole(descriptor, {static_cast<std::byte*>(data), size});
  if (!is_whole && errno != 0) fail();
  if (!is_whole || FileStamp::of(descriptor.number()) != before)
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
