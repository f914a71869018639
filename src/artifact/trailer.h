// The last 64 bytes of an artifact, and of a relocatable object with a model in it: they prove that every byte of the
// file is as it was written.
//
//   offset  0  magic[8]   "HEADRACE"
//   offset  8  u32        version of the trailer
//   offset 12  u32        0
//   offset 16  u64        length of the file, trailer included
//   offset 24  u8[24]     0
//   offset 48  u8[16]     the checksum of every byte before this field: low half, then high half
//
// The checksum is XXH3-128 over the XXH3-128s of these bytes in pieces of 4 MiB, each low half first, the last piece as
// long as it is; so several threads can compute it. In version 1 it was XXH3-128 of all bytes.
//
// All numbers are little-endian. Linkers, the dynamic one too, ignore bytes after the last section, so the file stays
// an ordinary shared object or relocatable object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/expected.h"

namespace headrace::artifact {

inline constexpr size_t kTrailerSize = 64;
inline constexpr uint32_t kTrailerVersion = 2;
inline constexpr uint32_t kTrailerOldest = 1;

// A file, or a part of one that is read as a file of its own: offsets are relative to its start.
struct FilePart {
  FilePart(int whole) : descriptor(whole) {}  // NOLINT: a file is a part of itself
  FilePart(int file, int64_t first, int64_t size_bytes) : descriptor(file), begin(first), nbytes(size_bytes) {}

  int descriptor;
  int64_t begin = 0;
  int64_t nbytes = -1;  // -1: to the end of the file
};

// Returns a refusal that says that reading the file failed, with the text of errno.
Refusal system_refusal(const std::string& name);

// Appends zero bytes up to a multiple of 64, then the trailer.
void append_trailer(std::vector<uint8_t>& file);
// Appends a trailer to a file that is open for reading and writing, which it reads once. UserError that names `name`
// when a system call fails.
void append_trailer(int descriptor, const std::string& name);

// Returns the size of a regular file, or of the part; the part lies within the file. Refuses with NOT_AN_ARTIFACT (no
// regular file) or SYSTEM. `name` is for messages.
Expected<int64_t> file_size(const FilePart& file, const std::string& name);

// Reads the file once with pread (so the file's bytes never have to be in memory at once, and a file that becomes
// shorter meanwhile is an error, not a signal), a large one on several threads, and checks the trailer. The value is
// the file's length. Refuses with TRUNCATED, NOT_AN_ARTIFACT, BAD_MAGIC, BAD_VERSION, BAD_CHECKSUM or SYSTEM.
Expected<int64_t> verify_trailer(const FilePart& file, const std::string& name);
// Verifies the trailer of a file whose bytes are in memory.
Expected<int64_t> verify_trailer(std::span<const std::byte> file, const std::string& name);

// Return XXH3-128 of memory, or of a whole file read with pread, as 32 hexadecimal digits.
std::string content_hash(std::span<const uint8_t> bytes);
Expected<std::string> file_content_hash(const FilePart& file, const std::string& name);

// Reads exactly `bytes.size()` bytes at `offset`; false at end of file or on an error (errno).
bool read_exactly(const FilePart& file, int64_t offset, std::span<uint8_t> bytes);

}  // namespace headrace::artifact
