#include "runtime/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "artifact/trailer.h"
#include "runtime/descriptor.h"

namespace headrace::runtime {

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), nbytes_(std::exchange(other.nbytes_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(nbytes_, other.nbytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), nbytes_);
}

Expected<MappedFile> MappedFile::open_side_file(const std::string& folder, const artifact::SideFile& side_file) {
  const std::string path = folder + side_file.name;
  const Expected<Descriptor> descriptor = Descriptor::open(path);
  if (!descriptor) {
    Refusal refusal = descriptor.refusal();
    refusal.message += "; it holds the artifact's weights and must lie beside it";
    return refusal;
  }
  const int number = descriptor.value().number();
  const Expected<int64_t> nbytes = artifact::file_size(number, path);
  if (!nbytes) return nbytes.refusal();
  if (nbytes.value() != side_file.nbytes) {
    return Refusal{HR_REASON_TRUNCATED,
                   fmt::format("'{}' has {} bytes, the artifact that it belongs to says {}; copy the "
                               "whole file, of the same compilation",
                               path, nbytes.value(), side_file.nbytes)};
  }
  const Expected<std::string> hash = artifact::file_content_hash(number, path);
  if (!hash) return hash.refusal();
  if (hash.value() != side_file.hash) {
    return Refusal{HR_REASON_BAD_CHECKSUM, fmt::format("'{}' is damaged or of another compilation: its checksum is not "
                                                       "the one in the artifact; copy both files again",
                                                       path)};
  }
  MappedFile file;
  if (nbytes.value() == 0) return file;
  file.nbytes_ = static_cast<size_t>(nbytes.value());
  void* mapped = ::mmap(nullptr, file.nbytes_, PROT_READ, MAP_PRIVATE, number, 0);
  if (mapped == MAP_FAILED)
    return Refusal{HR_REASON_SYSTEM, fmt::format("mapping '{}' failed: {}", path, std::strerror(errno))};
  file.data_ = static_cast<const std::byte*>(mapped);
  return file;
}

}  // namespace headrace::runtime
