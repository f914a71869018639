#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/error.h"

namespace headrace {

namespace {

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

[[noreturn]] void fail(std::string_view what, const std::string& path, int error) {
  throw_user_error("cannot read the {} '{}': {}", what, path, std::generic_category().message(error));
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path, std::string_view what) {
  // O_NONBLOCK: opening a FIFO must not wait for a writer.
  Descriptor descriptor{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (descriptor.number < 0) fail(what, path, errno);
  struct stat status{};
  if (::fstat(descriptor.number, &status) != 0) fail(what, path, errno);
  if (S_ISDIR(status.st_mode)) throw_user_error("the {} '{}' is a directory; give the path of a file", what, path);
  if (!S_ISREG(status.st_mode)) throw_user_error("the {} '{}' is not a regular file", what, path);
  auto size = static_cast<size_t>(status.st_size);
  if (size == 0) return std::shared_ptr<const MappedFile>(new MappedFile(nullptr, 0));
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor.number, 0);
  if (data == MAP_FAILED) fail(what, path, errno);
  return std::shared_ptr<const MappedFile>(new MappedFile(static_cast<const std::byte*>(data), size));
}

MappedFile::~MappedFile() {
  if (size_ > 0) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace headrace
