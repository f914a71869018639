#include "artifact/trailer.h"

#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>

namespace headrace::artifact {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the format is little-endian and so are all our machines");

constexpr char kMagic[8] = {'H', 'E', 'A', 'D', 'R', 'A', 'C', 'E'};
constexpr int64_t kHashSize = 16;
constexpr int64_t kPiece = int64_t{4} << 20;
// More threads read memory no faster.
constexpr unsigned kMostThreads = 4;

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

// Hashes bytes begin .. end-1 of the file; nothing where reading fails (errno).
std::optional<XXH128_hash_t> hash_bytes(const FilePart& file, int64_t begin, int64_t end) {
  // A chunk stays in the cache between reading and hashing.
  constexpr int64_t kChunk = int64_t{256} << 10;
  const auto buffer = std::make_unique_for_overwrite<uint8_t[]>(kChunk);
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  for (int64_t offset = begin; offset < end; offset += kChunk) {
    const auto size = static_cast<size_t>(std::min(kChunk, end - offset));
    if (!read_exactly(file, offset, {buffer.get(), size})) return std::nullopt;
    XXH3_128bits_update(&state, buffer.get(), size);
  }
  return XXH3_128bits_digest(&state);
}

// Hashes bytes 0 .. length-1 of the file.
Expected<XXH128_hash_t> hash_range(const FilePart& file, int64_t length, const std::string& name) {
  const auto hash = hash_bytes(file, 0, length);
  if (!hash) return system_refusal(name);
  return *hash;
}

// Hashes pieces on this thread and others: hash_piece(begin, end) gives the hash of bytes begin .. end-1, or nothing
// and errno. Returns nothing, and errno, where that fails for a piece.
std::optional<std::vector<XXH128_hash_t>> hash_pieces(
    int64_t length, const std::function<std::optional<XXH128_hash_t>(int64_t, int64_t)>& hash_piece) {
  std::vector<XXH128_hash_t> hashes(static_cast<size_t>((length + kPiece - 1) / kPiece));
  std::atomic<size_t> next = 0;
  std::atomic<int> error = 0;
  const auto work = [&] {
    for (size_t i = next++; i < hashes.size() && error == 0; i = next++) {
      const int64_t begin = static_cast<int64_t>(i) * kPiece;
      const auto hash = hash_piece(begin, std::min(length, begin + kPiece));
      if (hash) {
        hashes[i] = *hash;
      } else {
        error = errno;
      }
    }
  };
  std::vector<std::jthread> others;
  const size_t most = std::min(std::thread::hardware_concurrency(), kMostThreads);
  try {
    while (others.size() + 1 < std::min(most, hashes.size())) others.emplace_back(work);
  } catch (const std::system_error&) {  // no more threads: those that are there do the work
  }
  work();
  others.clear();  // joins them
  errno = error;
  return error == 0 ? std::optional(std::move(hashes)) : std::nullopt;
}

XXH128_hash_t hash_of(const std::vector<XXH128_hash_t>& hashes) {
  std::vector<uint64_t> halves;
  for (const XXH128_hash_t& hash : hashes) halves.insert(halves.end(), {hash.low64, hash.high64});
  return XXH3_128bits(halves.data(), halves.size() * sizeof(uint64_t));
}

// Return the checksum of bytes 0 .. length-1, of a trailer of that version.
Expected<XXH128_hash_t> checksum(const FilePart& file, int64_t length, uint32_t version, const std::string& name) {
  if (version == 1) return hash_range(file, length, name);
  const auto hashes = hash_pieces(length, [&](int64_t begin, int64_t end) { return hash_bytes(file, begin, end); });
  if (!hashes) return system_refusal(name);
  return hash_of(*hashes);
}
XXH128_hash_t checksum(std::span<const uint8_t> bytes, uint32_t version) {
  if (version == 1) return XXH3_128bits(bytes.data(), bytes.size());
  return hash_of(*hash_pieces(static_cast<int64_t>(bytes.size()), [&](int64_t begin, int64_t end) {
    return std::optional(XXH3_128bits(bytes.data() + begin, static_cast<size_t>(end - begin)));
  }));
}

// Checks the fields whose values do not depend on the rest of the file.
std::optional<Refusal> check_fields(const Trailer& trailer, int64_t length, const std::string& name) {
  if (std::memcmp(trailer.magic, kMagic, sizeof kMagic) != 0) {
    return Refusal{
        HR_REASON_BAD_MAGIC,
        fmt::format(
            "'{}' does not end in Headrace's trailer: it is not an artifact, its end is missing, or a tool that "
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
          length == 0
              ? fmt::format("'{}' is empty; copy the whole file", name)
              : fmt::format("'{}' has {} bytes, fewer than an artifact's trailer; copy the whole file", name, length)};
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
  const XXH128_hash_t hash = checksum(file, kTrailerVersion);
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
  const XXH128_hash_t hash =
      checksum(descriptor, length + kTrailerSize - kHashSize, kTrailerVersion, name).value_or_throw();
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
  const Expected<XXH128_hash_t> hash = checksum(file, length - kHashSize, trailer.version, name);
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
  const XXH128_hash_t hash =
      checksum({reinterpret_cast<const uint8_t*>(file.data()), file.size() - kHashSize}, trailer.version);
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
