// The .npy format of NumPy (NEP 1, format versions 1 to 3): one array a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
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

// The head of a file: all of it but the elements.
struct NpyHeader {
  char kind = 'f';
  int64_t item_bytes = 4;
  std::vector<int64_t> shape;
  bool is_big_endian = false;
  bool is_fortran = false;  // column-major
  size_t head_bytes = 0;    // the elements begin here
  int64_t data_bytes = 0;   // the size of all elements
};

// Throws if an array is not wanted, before memory is taken for its elements.
using AdmitArray = std::function<void(const NpyHeader&)>;

// Reads arrays of either byte order and either memory order. Throws UserError for a missing, truncated or malformed
// file, for what is not a regular file, for bools other than 0 and 1, and for dtypes without a fixed plain layout
// (objects, strings, records, dates). The file's bytes are copied once, after `admit` has seen the head.
NpyArray read_npy(const std::filesystem::path& path, const AdmitArray& admit = {});
// Reads the head of a file alone, with the same errors.
NpyHeader read_npy_header(const std::filesystem::path& path);

// Parses a file in memory; `source` names it in messages.
NpyArray parse_npy(std::span<const std::byte> file, const std::string& source, const AdmitArray& admit = {});

// The parts of parse_npy, for files that are read in pieces: the size of a file's head, which its first
// kNpyPrefixBytes bytes tell (fewer: the whole file); the head; and the array from the bytes of its elements.
inline constexpr size_t kNpyPrefixBytes = 12;
size_t npy_head_bytes(std::span<const std::byte> prefix, const std::string& source);
NpyHeader parse_npy_header(std::span<const std::byte> head, const std::string& source);
NpyArray make_npy(const NpyHeader& header, std::vector<std::byte> elements, const std::string& source);

// Writes format version 1, with the data at a multiple of 64 bytes. UserError when the file cannot be written.
void write_npy(const std::filesystem::path& path, const NpyArray& array);

// Returns the bytes that write_npy writes.
std::vector<std::byte> encode_npy(const NpyArray& array);

}  // namespace headrace::tools
