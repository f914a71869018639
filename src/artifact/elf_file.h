// A small reader of ELF64 section headers, just enough to find Headrace's sections. Every offset is checked against the
// file's length: a damaged or hostile file is a refusal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/trailer.h"
#include "base/expected.h"

namespace headrace::artifact {

struct ElfSection {
  std::string name;
  uint64_t address = 0;  // where it is mapped, relative to the load address; 0 when it is not mapped
  bool is_mapped = false;
  int64_t offset = 0;  // in the file
  int64_t nbytes = 0;
};

struct ElfFile {
  std::string_view architecture;     // the one that its code is for: "x86_64" or "aarch64"
  std::vector<ElfSection> sections;  // in the file's order, without those of type NOBITS and NULL, which have no bytes

  const ElfSection* find(std::string_view name) const;  // nullptr: no such section
};

// Reads the section table of a 64-bit little-endian shared object for x86-64 or AArch64; loading it is for the machine
// of that architecture only. `length` is the length of the file. Refuses with NOT_AN_ARTIFACT or SYSTEM. `name` is for
// messages.
Expected<ElfFile> read_elf_file(const FilePart& file, int64_t length, const std::string& name);

// Returns the bytes of a section, read from the file.
Expected<std::string> read_section(const FilePart& file, const ElfSection& section, const std::string& name);

}  // namespace headrace::artifact
