// The .npy format of NumPy (NEP 1, format versions 1 to 3): one array a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace headrace::tools {

// A dense array in row-major order, little-endian.
struct NpyArray {
  char kind =
      'f';  // NumPy's dtype.kind: f float, i int, u unsigned, b bool, c complex, V raw (bfloat16, narrow dtypes)
  int64_t item_bytes = 4;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;
};

// Reads arrays of either byte order and either memory order. Throws UserError for a missing, truncated or malformed
// file, for what is not a regular file, for bools other than 0 and 1, and for dtypes without a fixed plain layout
// (objects, strings, records, dates). The file's bytes are copied once.
NpyArray read_npy(const std::filesystem::path& path);

// Parses a file in memory; `source` names it in messages.
NpyArray parse_npy(std::span<const std::byte> file, const std::string& source);

// Writes format version 1, with the data at a multiple of 64 bytes. UserError when the file cannot be written.
void write_npy(const std::filesystem::path& path, const NpyArray& array);

// Returns the bytes that write_npy writes.
std::vector<std::byte> encode_npy(const NpyArray& array);

}  // namespace headrace::tools
