#include "executors/pipeline/isolation/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace headrace::executors::pipeline::isolation {
namespace {

void require(bool holds) {
  if (!holds) throw_user_error("no memory to share with the process of a stage: {}", std::strerror(errno));
}

}  // namespace

// A process that made the file smaller would end the other one at its next access.
SharedMemory::SharedMemory(size_t nbytes) : file_(::memfd_create("headrace-stage", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  require(file_.number() >= 0 && ::ftruncate(file_.number(), static_cast<off_t>(nbytes)) == 0 &&
          ::fcntl(file_.number(), F_ADD_SEALS, F_SEAL_SHRINK) == 0);
  map();
}

SharedMemory::SharedMemory(Descriptor file) : file_(std::move(file)) { map(); }

SharedMemory::~SharedMemory() { unmap(); }

void SharedMemory::unmap() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
  bytes_ = {};
}

void SharedMemory::grow(size_t nbytes) {
  require(nbytes <= bytes_.size() || ::ftruncate(file_.number(), static_cast<off_t>(nbytes)) == 0);
  require(::fcntl(file_.number(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SEAL) == 0);
  map();
}

void SharedMemory::map() {
  unmap();
  struct stat status{};
  require(::fstat(file_.number(), &status) == 0);
  const auto nbytes = static_cast<size_t>(status.st_size);
  void* place = ::mmap(nullptr, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file_.number(), 0);
  require(place != MAP_FAILED);
  bytes_ = {static_cast<std::byte*>(place), nbytes};
}

}  // namespace headrace::executors::pipeline::isolation
