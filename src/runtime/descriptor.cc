#include "runtime/descriptor.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace headrace::runtime {

Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

Expected<Descriptor> Descriptor::open(const std::string& path) {
  // Not blocking: a named pipe would otherwise wait for a writer for ever. Regular files don't care.
  const int number = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (number < 0 && (errno == ENOENT || errno == ENOTDIR))
    return Refusal{HR_REASON_NOT_FOUND, fmt::format("there is no file '{}'", path)};
  if (number < 0) return Refusal{HR_REASON_SYSTEM, fmt::format("opening '{}' failed: {}", path, std::strerror(errno))};
  return Descriptor(number);
}

}  // namespace headrace::runtime
