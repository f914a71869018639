#include "artifact/trailer.h"

#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

namespace headrace::artifact {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the format is little-endian and so are all our machines");

constexpr char kMagic[8] = {'H', 'E', 'A', 'D', 'R', 'A', 'C', 'E'};
constexpr int64_t kHashSize = 16;

struct Trailer {
  char magic[8];
  uint32_t version;
  uint32_t zero;
  uint64_t file_length;
  uint8_t zeros[24];
  uint64_t hash_low;
  uint64_t hash_high;
};
static_assert(sizeof(Trailer) == kTrailerSize);

std::string hex(XXH128_hash_t hash) { return fmt::format("{:016x}{:016x}", hash.high64, hash.low64); }

// Hashes bytes 0 .. length-1 of the file.
Expected<XXH128_hash_t> hash_range(const FilePart& file, int64_t length, const std::string& name) {
  // 1 MB keeps the number of system calls low; larger buffers read no faster from the page cache.
  constexpr int64_t kChunk = int64_t{1} << 20;
  const auto buffer = std::make_unique_for_overwrite<uint8_t[]>(kChunk);
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  for (int64_t offset = 0; offset < length; offset += kChunk) {
    const auto size = static_cast<size_t>(std::min(kChunk, length - offset));
    if (!read_exactly(file, offset, {buffer.get(), size})) return system_refusal(name);
    XXH3_128bits_update(&state, buffer.get(), size);
  }
  return XXH3_128bits_digest(&state);
}

// Checks the fields whose values do not depend on the rest of the file.
std::optional<Refusal> check_fields(const Trailer& trailer, int64_t length, const std::string& name) {
  if (std::memcmp(trailer.magic, kMagic, sizeof kMagic) != 0) {
    return Refusal{
        HR_REASON_BAD_MAGIC,
        fmt::format("'{}' does not end in Headrace's trailer: it is no artifact, its end is missing, or a tool that "
                    "rewrites files, such as strip, took the trailer away; copy the whole file or compile "
                    "the model again",
                    name)};
  }
  if (trailer.version < kTrailerOldest || trailer.version > kTrailerVersion) {
    return Refusal{HR_REASON_BAD_VERSION,
                   fmt::format("'{}' has trailer version {}, this runtime reads {} to {}; use the runtime that belongs "
                               "to the compiler, or compile the model again",
                               name, trailer.version, kTrailerOldest, kTrailerVersion)};
  }
  if (trailer.file_length != static_cast<uint64_t>(length)) {
    return Refusal{HR_REASON_TRUNCATED, fmt::format("'{}' has {} bytes, its trailer says {}; copy the whole file", name,
                                                    length, trailer.file_length)};
  }
  return std::nullopt;
}

Refusal too_short(int64_t length, const std::string& name) {
  return {HR_REASON_TRUNCATED,
          fmt::format("'{}' has {} bytes, fewer than an artifact's trailer; copy the whole file", name, length)};
}

std::optional<Refusal> check_hash(const Trailer& trailer, XXH128_hash_t hash, const std::string& name) {
  if (hash.low64 == trailer.hash_low && hash.high64 == trailer.hash_high) return std::nullopt;
  return Refusal{
      HR_REASON_BAD_CHECKSUM,
      fmt::format("'{}' is damaged: its checksum does not match; copy it again or compile the model again", name)};
}

size_t padded_length(size_t length) { return (length + kTrailerSize - 1) / kTrailerSize * kTrailerSize; }

// Makes a trailer without the hash, for a file with `length` bytes before the trailer.
Trailer unsealed_trailer(size_t length) {
  Trailer trailer{};
  std::memcpy(trailer.magic, kMagic, sizeof kMagic);
  trailer.version = kTrailerVersion;
  trailer.file_length = length + kTrailerSize;
  return trailer;
}

bool write_exactly(int descriptor, int64_t offset, std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(descriptor, bytes.data(), bytes.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(count));
    offset += count;
  }
  return true;
}

}  // namespace

Refusal system_refusal(const std::string& name) {
  return {HR_REASON_SYSTEM, fmt::format("reading '{}' failed: {}", name, std::strerror(errno))};
}

bool read_exactly(const FilePart& file, int64_t offset, std::span<uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::pread(file.descriptor, bytes.data(), bytes.size(), file.begin + offset);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      if (count == 0) errno = EIO;  // the file became shorter while we read it
      return false;
    }
    bytes = bytes.subspan(static_cast<size_t>(count));
    offset += count;
  }
  return true;
}

Expected<int64_t> file_size(const FilePart& file, const std::string& name) {
  if (file.nbytes >= 0) return file.nbytes;
  struct stat status{};
  if (::fstat(file.descriptor, &status) != 0) return system_refusal(name);
  if (!S_ISREG(status.st_mode)) {
    return Refusal{HR_REASON_NOT_AN_ARTIFACT, fmt::format("'{}' is not a regular file", name)};
  }
  return int64_t{status.st_size};
}

void append_trailer(std::vector<uint8_t>& file) {
  file.resize(padded_length(file.size()), 0);
  const Trailer trailer = unsealed_trailer(file.size());
  const auto* bytes = reinterpret_cast<const uint8_t*>(&trailer);
  file.insert(file.end(), bytes, bytes + kTrailerSize - kHashSize);
  const XXH128_hash_t hash = XXH3_128bits(file.data(), file.size());
  const std::array<uint64_t, 2> halves = {hash.low64, hash.high64};
  const auto* hash_bytes = reinterpret_cast<const uint8_t*>(halves.data());
  file.insert(file.end(), hash_bytes, hash_bytes + kHashSize);
}

void append_trailer(int descriptor, const std::string& name) {
  const auto check = [&](bool ok) {
    if (!ok) throw_user_error("writing '{}' failed: {}", name, std::strerror(errno));
  };
  const int64_t size = file_size(descriptor, name).value_or_throw();
  const auto length = static_cast<int64_t>(padded_length(static_cast<size_t>(size)));
  Trailer trailer = unsealed_trailer(static_cast<size_t>(length));
  check(::ftruncate(descriptor, length) == 0);
  check(write_exactly(descriptor, length, {reinterpret_cast<const uint8_t*>(&trailer), kTrailerSize}));
  const XXH128_hash_t hash = hash_range(descriptor, length + kTrailerSize - kHashSize, name).value_or_throw();
  trailer.hash_low = hash.low64;
  trailer.hash_high = hash.high64;
  check(write_exactly(descriptor, length, {reinterpret_cast<const uint8_t*>(&trailer), kTrailerSize}));
}

Expected<int64_t> verify_trailer(const FilePart& file, const std::string& name) {
  const Expected<int64_t> size = file_size(file, name);
  if (!size) return size;
  const int64_t length = size.value();
  if (length < static_cast<int64_t>(kTrailerSize)) return too_short(length, name);
  Trailer trailer{};
  if (!read_exactly(file, length - static_cast<int64_t>(kTrailerSize),
                    {reinterpret_cast<uint8_t*>(&trailer), kTrailerSize})) {
    return system_refusal(name);
  }
  if (std::optional<Refusal> refusal = check_fields(trailer, length, name)) return *std::move(refusal);
  const Expected<XXH128_hash_t> hash = hash_range(file, length - kHashSize, name);
  if (!hash) return hash.refusal();
  if (std::optional<Refusal> refusal = check_hash(trailer, hash.value(), name)) return *std::move(refusal);
  return length;
}

Expected<int64_t> verify_trailer(std::span<const std::byte> file, const std::string& name) {
  const auto length = static_cast<int64_t>(file.size());
  if (file.size() < kTrailerSize) return too_short(length, name);
  Trailer trailer{};
  std::memcpy(&trailer, file.last(kTrailerSize).data(), kTrailerSize);
  if (std::optional<Refusal> refusal = check_fields(trailer, length, name)) return *std::move(refusal);
  const XXH128_hash_t hash = XXH3_128bits(file.data(), file.size() - static_cast<size_t>(kHashSize));
  if (std::optional<Refusal> refusal = check_hash(trailer, hash, name)) return *std::move(refusal);
  return length;
}

std::string content_hash(std::span<const uint8_t> bytes) { return hex(XXH3_128bits(bytes.data(), bytes.size())); }

Expected<std::string> file_content_hash(const FilePart& file, const std::string& name) {
  const Expected<int64_t> size = file_size(file, name);
  if (!size) return size.refusal();
  const Expected<XXH128_hash_t> hash = hash_range(file, size.value(), name);
  if (!hash) return hash.refusal();
  return hex(hash.value());
}

}  // namespace headrace::artifact
