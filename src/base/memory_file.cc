#include "base/memory_file.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "base/write_all.h"

namespace headrace {

Expected<Descriptor> make_memory_file(std::string_view what) { return make_memory_file(what, {}); }

Expected<Descriptor> make_memory_file(std::string_view what, std::span<const std::byte> bytes) {
  Descriptor descriptor(::memfd_create("headrace-model", MFD_CLOEXEC));
  if (descriptor.number() < 0 || !write_all(descriptor.number(), bytes))
    return Refusal{HR_REASON_SYSTEM, fmt::format("no file in memory for {}: {}", what, std::strerror(errno))};
  return descriptor;
}

}  // namespace headrace
