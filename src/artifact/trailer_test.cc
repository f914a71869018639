// The trailer's checksum, computed here by its definition, and files of version 1.
#include "artifact/trailer.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <xxhash.h>

#include <cstring>

#include "base/memory_file.h"

namespace headrace::artifact {
namespace {

constexpr size_t kPiece = size_t{4} << 20;

std::vector<uint8_t> bytes_of(size_t count) {
  std::vector<uint8_t> bytes(count);
  uint32_t state = 1;
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>((state = state * 1664525 + 1013904223) >> 24);
  return bytes;
}

XXH128_hash_t stored_hash(const std::vector<uint8_t>& file) {
  XXH128_hash_t hash;
  std::memcpy(&hash.low64, file.data() + file.size() - 16, 8);
  std::memcpy(&hash.high64, file.data() + file.size() - 8, 8);
  return hash;
}

// Replaces the checksum, and the version, of a file with a trailer by those of version 1.
void make_version_1(std::vector<uint8_t>& file) {
  const uint32_t version = 1;
  std::memcpy(file.data() + file.size() - kTrailerSize + 8, &version, sizeof version);
  const XXH128_hash_t hash = XXH3_128bits(file.data(), file.size() - 16);
  std::memcpy(file.data() + file.size() - 16, &hash.low64, 8);
  std::memcpy(file.data() + file.size() - 8, &hash.high64, 8);
}

hr_reason verify(const std::vector<uint8_t>& file) {
  const Expected<int64_t> in_memory = verify_trailer(std::as_bytes(std::span(file)), "it");
  const Descriptor descriptor = make_memory_file("trailer").value_or_throw();
  EXPECT_EQ(::write(descriptor.number(), file.data(), file.size()), static_cast<ssize_t>(file.size()));
  const Expected<int64_t> in_file = verify_trailer(descriptor.number(), "it");
  EXPECT_EQ(in_memory.has_value(), in_file.has_value());
  if (in_memory) {
    EXPECT_EQ(in_memory.value(), static_cast<int64_t>(file.size()));
    EXPECT_EQ(in_file.value(), static_cast<int64_t>(file.size()));
    return HR_REASON_NONE;
  }
  EXPECT_EQ(in_memory.refusal().code, in_file.refusal().code);
  return in_memory.refusal().code;
}

TEST(Trailer, ChecksumIsThatOfTheHashesOfPieces) {
  for (const size_t count : {size_t{0}, size_t{1000}, kPiece - 48, kPiece, 2 * kPiece + 12345, 7 * kPiece + 1}) {
    std::vector<uint8_t> file = bytes_of(count);
    append_trailer(file);
    ASSERT_EQ(file.size() % 64, 0u);
    std::vector<uint8_t> hashes;
    for (size_t begin = 0; begin < file.size() - 16; begin += kPiece) {
      const XXH128_hash_t piece = XXH3_128bits(file.data() + begin, std::min(kPiece, file.size() - 16 - begin));
      for (const uint64_t half : {piece.low64, piece.high64}) {
        for (int i = 0; i < 8; ++i) hashes.push_back(static_cast<uint8_t>(half >> (8 * i)));
      }
    }
    const XXH128_hash_t want = XXH3_128bits(hashes.data(), hashes.size()), got = stored_hash(file);
    EXPECT_TRUE(XXH128_isEqual(want, got)) << count << " bytes";
    EXPECT_EQ(verify(file), HR_REASON_NONE) << count << " bytes";
    const Descriptor descriptor = make_memory_file("trailer").value_or_throw();
    const std::vector<uint8_t> content = bytes_of(count);
    ASSERT_EQ(::write(descriptor.number(), content.data(), count), static_cast<ssize_t>(count));
    append_trailer(descriptor.number(), "it");
    std::vector<uint8_t> sealed(file.size());
    ASSERT_TRUE(read_exactly(descriptor.number(), 0, sealed));
    EXPECT_EQ(sealed, file) << "a trailer appended to a file";
  }
}

TEST(Trailer, DamageOfAnyPieceIsSeen) {
  for (const bool is_old : {false, true}) {
    std::vector<uint8_t> file = bytes_of(5 * kPiece + 77);
    append_trailer(file);
    if (is_old) make_version_1(file);
    ASSERT_EQ(verify(file), HR_REASON_NONE);
    for (size_t piece = 0; piece <= 5; ++piece) {
      uint8_t& byte = file[std::min(piece * kPiece + 1000, file.size() - 100)];
      byte ^= 4;
      EXPECT_EQ(verify(file), HR_REASON_BAD_CHECKSUM) << "piece " << piece;
      byte ^= 4;
    }
    std::swap_ranges(file.begin(), file.begin() + kPiece, file.begin() + 2 * kPiece);
    EXPECT_EQ(verify(file), HR_REASON_BAD_CHECKSUM) << "two pieces in each other's place";
  }
}

TEST(Trailer, FilesOfVersion1AreRead) {
  for (const size_t count : {size_t{100}, 2 * kPiece}) {
    std::vector<uint8_t> file = bytes_of(count);
    append_trailer(file);
    make_version_1(file);
    EXPECT_EQ(verify(file), HR_REASON_NONE);
  }
}

}  // namespace
}  // namespace headrace::artifact
