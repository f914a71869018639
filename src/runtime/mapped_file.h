// A whole file mapped for reading.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "artifact/manifest.h"
#include "base/expected.h"

namespace headrace::runtime {

class MappedFile {
 public:
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  // nullptr when empty.
  const std::byte* data() const { return data_; }

  // Maps the side file of weights in folder `folder`, after its length and checksum were found right. Refuses with
  // NOT_FOUND, TRUNCATED, BAD_CHECKSUM or SYSTEM.
  static Expected<MappedFile> open_side_file(const std::string& folder, const artifact::SideFile& side_file);

 private:
  const std::byte* data_ = nullptr;
  size_t nbytes_ = 0;
};

}  // namespace headrace::runtime
