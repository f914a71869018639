// Data behind linked code: lld lays out a segment of sections without bytes, and this puts the bytes at the file's end.
// So weights never pass through the linker: they are copied once, from where they are into the output.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "codegen/native.h"

namespace headrace::codegen {

// Returns the bytes that the linker sees of a section: an empty one has one byte there, and none in the file's section
// table.
inline uint64_t linked_bytes(const DataSection& section) { return section.size_bytes > 0 ? section.size_bytes : 1; }

// The positions of the data sections in a linked image.
struct DataLayout {
  uint64_t file_size = 0;
  std::vector<uint64_t> offsets;  // by section: its offset in the file
};

// Changes the headers of `image`, a linked 64-bit little-endian ELF file, so that its `sections` (which have no bytes
// in the file; in a shared object they lie in a segment of their own) are read from behind the image. Rounds the relro
// range of a shared object up to whole pages as well: the loader protects only those.
DataLayout place_data(std::string& image, std::span<const DataSection> sections);

// Writes the image, and the chunks at their places, to `fd`, which is cut to exactly that size. UserError, which
// calls the output `name`, when a write fails.
void write_image(const std::string& image, std::span<const DataSection> sections, const DataLayout& layout, int fd,
                 const std::string& name);

}  // namespace headrace::codegen
