#include "base/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>

namespace headrace {

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path, std::string_view what) {
  const auto fail = [&] {
    throw_user_error("cannot read the {} '{}': {}", what, path, std::generic_category().message(errno));
  };
  const Descriptor descriptor = Descriptor::try_open(path);
  struct stat status{};
  if (descriptor.number() < 0 || ::fstat(descriptor.number(), &status) != 0) fail();
  if (S_ISDIR(status.st_mode)) throw_user_error("the {} '{}' is a directory; give the path of a file", what, path);
  if (!S_ISREG(status.st_mode)) throw_user_error("the {} '{}' is not a regular file", what, path);
  auto file = map(descriptor, static_cast<size_t>(status.st_size));
  if (file == nullptr) fail();
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
