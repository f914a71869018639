#include "base/mapped_file.h"

#include <sys/mman.h>

#include "base/readable_file.h"

namespace headrace {

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path, std::string_view what) {
  const ReadableFile source(path, what);
  const size_t size = source.size_bytes();
  if (size == 0 || size > kCopiedBytes) {
    auto file = map(source.descriptor(), size);
    if (file == nullptr) source.fail();
    return file;
  }
  void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) source.fail();
  const std::shared_ptr<const MappedFile> file(new MappedFile(static_cast<const std::byte*>(data), size));
  source.read({static_cast<std::byte*>(data), size}, 0);
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
