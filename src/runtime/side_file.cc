#include "runtime/side_file.h"

#include <cerrno>
#include <cstring>

#include "artifact/trailer.h"

namespace headrace::runtime {

Expected<std::shared_ptr<const MappedFile>> map_side_file(const std::string& folder,
                                                          const artifact::SideFile& side_file) {
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
  auto file = MappedFile::map(descriptor.value(), static_cast<size_t>(nbytes.value()));
  if (file == nullptr)
    return Refusal{HR_REASON_SYSTEM, fmt::format("mapping '{}' failed: {}", path, std::strerror(errno))};
  return file;
}

}  // namespace headrace::runtime
