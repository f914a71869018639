#include "base/descriptor.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace headrace {

void Descriptor::close() {
  if (number_ >= 0) ::close(release());
}

Descriptor Descriptor::try_open(const std::string& path) {
  if (path.find('\0') != std::string::npos) {  // the system would open the part before it
    errno = ENOENT;
    return Descriptor(-1);
  }
  // Not blocking: a named pipe would otherwise wait for a writer for ever. Regular files don't care.
  return Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

Expected<Descriptor> Descriptor::open(const std::string& path) {
  Descriptor descriptor = try_open(path);
  if (descriptor.number() >= 0) return descriptor;
  if (errno == ENOENT || errno == ENOTDIR)
    return Refusal{HR_REASON_NOT_FOUND, fmt::format("there is no file '{}'", path)};
  return Refusal{HR_REASON_SYSTEM, fmt::format("opening '{}' failed: {}", path, std::strerror(errno))};
}

}  // namespace headrace
