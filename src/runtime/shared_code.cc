#include "runtime/shared_code.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "artifact/trailer.h"
#include "base/file_stamp.h"
#include "base/memory_file.h"
#include "base/write_all.h"

namespace headrace::runtime {

namespace {

// Copies bytes begin .. end-1 of a file to the same place of another; false with errno.
bool copy_range(const artifact::FilePart& source, int target, int64_t begin, int64_t end) {
  if (::lseek(target, begin, SEEK_SET) < 0) return false;
  std::vector<uint8_t> buffer(static_cast<size_t>(std::min<int64_t>(end - begin, 1 << 18)));
  for (int64_t at = begin; at < end;) {
    const std::span<uint8_t> bytes =
        std::span(buffer).first(static_cast<size_t>(std::min<int64_t>(end - at, std::ssize(buffer))));
    if (!artifact::read_exactly(source, at, bytes) || !write_all(target, std::as_bytes(bytes))) return false;
    at += std::ssize(bytes);
  }
  return true;
}

// Returns the whole pages among the constants; none where they are few, or where their offsets in file and memory
// differ.
ConstantBytes mapped_pages(const ConstantBytes& constants, int64_t file_begin) {
  const int64_t page = ::sysconf(_SC_PAGESIZE);
  if (constants.nbytes <= SharedCode::kCopiedBytes) return {};
  if (file_begin % page != 0 ||
      constants.offset % page != static_cast<int64_t>(constants.address % static_cast<uint64_t>(page)))
    return {};
  const int64_t begin = (constants.offset + page - 1) / page * page;
  const int64_t end = (constants.offset + constants.nbytes) / page * page;
  return {begin, constants.address + static_cast<uint64_t>(begin - constants.offset), end - begin};
}

std::byte* load_address_of(void* handle) {
  link_map* map = nullptr;
  if (::dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) return nullptr;
  return reinterpret_cast<std::byte*>(map->l_addr);
}

// Returns whether profilers must find the symbols of the code: they look for them in the file that is mapped.
bool maps_the_file(const artifact::FilePart& source) { return source.begin == 0 && std::getenv("HEADRACE_PERF"); }

// Makes a file in memory: a copy of the other one without its `left_out` bytes.
Expected<Descriptor> copy_file(const artifact::FilePart& source, const ConstantBytes& left_out,
                               const std::string& name) {
  Expected<Descriptor> memory = make_memory_file(fmt::format("'{}'", name));
  if (!memory) return memory;
  const Descriptor& copy = memory.value();
  if (::ftruncate(copy.number(), source.nbytes) != 0 || !copy_range(source, copy.number(), 0, left_out.offset) ||
      !copy_range(source, copy.number(), left_out.offset + left_out.nbytes, source.nbytes))
    return artifact::system_refusal(name);
  return memory;
}

Expected<Descriptor> same_file(const artifact::FilePart& source, const std::string& name) {
  Descriptor file(::fcntl(source.descriptor, F_DUPFD_CLOEXEC, 0));
  if (file.number() < 0) return artifact::system_refusal(name);
  return file;
}

}  // namespace

struct SharedCode::Mapping {
  std::pair<FileStamp, int64_t> key;  // the file, and where in it the part begins
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
  std::map<std::pair<FileStamp, int64_t>, Mapping> mappings;
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

Expected<SharedCode::Mapping> SharedCode::load(const artifact::FilePart& source, const ConstantBytes& constants,
                                               const std::string& name) {
  const bool is_file = maps_the_file(source);
  const ConstantBytes pages = is_file ? ConstantBytes{} : mapped_pages(constants, source.begin);
  Expected<Descriptor> copy = is_file ? same_file(source, name) : copy_file(source, pages, name);
  if (!copy) return copy.refusal();
  std::string path = fmt::format("/proc/self/fd/{}", copy.value().number());
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    return Refusal{HR_REASON_NOT_AN_ARTIFACT, fmt::format("the system cannot load '{}': {}", name, ::dlerror())};
  if (pages.nbytes > 0 &&
      ::mmap(load_address_of(handle) + pages.address, static_cast<size_t>(pages.nbytes), PROT_READ,
             MAP_PRIVATE | MAP_FIXED, source.descriptor, source.begin + pages.offset) == MAP_FAILED) {
    const int reason = errno;
    ::dlclose(handle);
    errno = reason;
    return artifact::system_refusal(name);
  }
  return Mapping{.key = {}, .descriptor = std::move(copy.value()), .path = std::move(path), .handle = handle};
}

Expected<SharedCode> SharedCode::map(Descriptor descriptor, int64_t begin, int64_t nbytes,
                                     const ConstantBytes& constants, const std::string& name) {
  const std::optional<FileStamp> file = FileStamp::of(descriptor.number());
  if (!file) return artifact::system_refusal(name);
  Table& known = table();
  const std::lock_guard lock(known.mutex);
  const std::pair key(*file, begin);
  auto found = known.mappings.find(key);
  if (found == known.mappings.end()) {
    Expected<Mapping> mapping = load({descriptor.number(), begin, nbytes}, constants, name);
    if (!mapping) return mapping.refusal();
    mapping.value().key = key;
    found = known.mappings.emplace(key, std::move(mapping.value())).first;
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
  // Another part of the process may have opened the same file by dlopen. Then the path name stays in use, and the
  // descriptor must stay open.
  if (void* still_open = ::dlopen(mapping_->path.c_str(), RTLD_NOW | RTLD_NOLOAD); still_open != nullptr) {
    ::dlclose(still_open);
    mapping_->descriptor.release();
  }
  known.mappings.erase(std::pair(mapping_->key));
}

void* SharedCode::symbol(const char* name) const { return ::dlsym(mapping_->handle, name); }

int SharedCode::descriptor() const { return mapping_->descriptor.number(); }

std::byte* SharedCode::load_address() const { return load_address_of(mapping_->handle); }

}  // namespace headrace::runtime
