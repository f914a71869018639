#include "runtime/shared_code.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

namespace headrace::runtime {

using FileId = std::pair<dev_t, ino_t>;

struct SharedCode::Mapping {
  FileId file;
  Descriptor descriptor;
  std::string path;
  void* handle = nullptr;
  int64_t users = 0;
};

// All mappings of the process. The dynamic linker knows a library by its path name, here /proc/self/fd/N, and would
// take a later file with the same N for this one: a descriptor stays open as long as its file is mapped. Mapping and
// unmapping happen under its lock, so that a file that is being closed by one thread is either still there for another,
// descriptor included, or wholly gone.
struct SharedCode::Table {
  std::mutex mutex;
  std::map<FileId, Mapping> mappings;
};

SharedCode::Table& SharedCode::table() {
  // Never destroyed: artifacts that are held by static objects are closed after main.
  static Table& table = *new Table;
  return table;
}

SharedCode::SharedCode(SharedCode&& other) noexcept : mapping_(std::exchange(other.mapping_, nullptr)) {}

SharedCode& SharedCode::operator=(SharedCode&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  return *this;
}

Expected<SharedCode> SharedCode::map(Descriptor descriptor, const std::string& name) {
  struct stat status{};
  if (::fstat(descriptor.number(), &status) != 0)
    return Refusal{HR_REASON_SYSTEM, fmt::format("reading '{}' failed: {}", name, std::strerror(errno))};
  const FileId file{status.st_dev, status.st_ino};
  Table& known = table();
  const std::lock_guard lock(known.mutex);
  auto found = known.mappings.find(file);
  if (found == known.mappings.end()) {
    std::string path = fmt::format("/proc/self/fd/{}", descriptor.number());
    void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr)
      return Refusal{HR_REASON_NOT_AN_ARTIFACT, fmt::format("the system cannot load '{}': {}", name, ::dlerror())};
    Mapping mapping{.file = file, .descriptor = std::move(descriptor), .path = std::move(path), .handle = handle};
    found = known.mappings.emplace(file, std::move(mapping)).first;
  }
  ++found->second.users;
  SharedCode code;
  code.mapping_ = &found->second;
  return code;
}

SharedCode::~SharedCode() {
  if (mapping_ == nullptr) return;
  Table& known = table();
  const std::lock_guard lock(known.mutex);
  if (--mapping_->users > 0) return;
  ::dlclose(mapping_->handle);
  // Somebody else may have the same file open with dlopen. Then the path name stays taken, and so must the descriptor.
  if (void* still_open = ::dlopen(mapping_->path.c_str(), RTLD_NOW | RTLD_NOLOAD); still_open != nullptr) {
    ::dlclose(still_open);
    mapping_->descriptor.release();
  }
  known.mappings.erase(FileId(mapping_->file));
}

void* SharedCode::symbol(const char* name) const { return ::dlsym(mapping_->handle, name); }

int SharedCode::descriptor() const { return mapping_->descriptor.number(); }

std::byte* SharedCode::load_address() const {
  link_map* map = nullptr;
  if (::dlinfo(mapping_->handle, RTLD_DI_LINKMAP, &map) != 0) return nullptr;
  return reinterpret_cast<std::byte*>(map->l_addr);
}

}  // namespace headrace::runtime
