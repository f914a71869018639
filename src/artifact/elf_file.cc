#include "artifact/elf_file.h"

#include <elf.h>

#include <cstring>
#include <span>

#include "artifact/trailer.h"

namespace headrace::artifact {
namespace {

// The architectures that artifacts are made for.
struct Machine {
  uint16_t number;  // e_machine
  std::string_view architecture;
};
constexpr Machine kMachines[] = {{EM_X86_64, "x86_64"}, {EM_AARCH64, "aarch64"}};

// Returns an empty name for a machine that artifacts are not made for.
std::string_view architecture_of_machine(uint16_t number) {
  for (const Machine& machine : kMachines) {
    if (machine.number == number) return machine.architecture;
  }
  return "";
}

// Names of an artifact's sections take a few hundred bytes; the limit keeps a hostile file from making us allocate.
constexpr int64_t kMaxNameTable = int64_t{16} << 20;

Refusal not_an_artifact(const std::string& name, const std::string& why) {
  return {HR_REASON_NOT_AN_ARTIFACT, fmt::format("'{}' is not an artifact of Headrace: {}", name, why)};
}

// Returns whether `nbytes` bytes at `offset` lie inside a file of `length` bytes.
bool lies_inside(uint64_t offset, uint64_t nbytes, int64_t length) {
  const auto limit = static_cast<uint64_t>(length);
  return offset <= limit && nbytes <= limit - offset;
}

// Returns why the header is not that of a library we can load, or an empty string.
std::string header_problem(const Elf64_Ehdr& header) {
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return "it is not an ELF file";
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
    return "it is not a 64-bit little-endian ELF file";
  if (header.e_type == ET_REL)
    return "it is an object file, no shared object; link it into a shared library first (cc -shared), and seal that";
  if (header.e_type != ET_DYN) return "it is not a shared object";
  if (architecture_of_machine(header.e_machine).empty())
    return fmt::format("it is for the ELF machine {}; artifacts are for x86_64 ({}) or aarch64 ({})", header.e_machine,
                       EM_X86_64, EM_AARCH64);
  if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shnum == 0 || header.e_shstrndx >= header.e_shnum)
    return "it has no usable section table";
  return "";
}

// Returns the NUL-terminated string at `offset` of the table, cut at its end.
std::string name_at(const std::string& table, uint32_t offset) {
  if (offset >= table.size()) return "";
  return table.substr(offset, table.find('\0', offset) - offset);
}

Expected<std::vector<Elf64_Shdr>> read_rows(const FilePart& file, const Elf64_Ehdr& header, int64_t length,
                                            const std::string& name) {
  const uint64_t nbytes = uint64_t{header.e_shnum} * sizeof(Elf64_Shdr);
  if (!lies_inside(header.e_shoff, nbytes, length))
    return not_an_artifact(name, "its section table is outside the file");
  std::vector<Elf64_Shdr> rows(header.e_shnum);
  if (!read_exactly(file, static_cast<int64_t>(header.e_shoff), {reinterpret_cast<uint8_t*>(rows.data()), nbytes})) {
    return system_refusal(name);
  }
  for (const Elf64_Shdr& row : rows) {
    if (row.sh_type != SHT_NOBITS && row.sh_type != SHT_NULL && !lies_inside(row.sh_offset, row.sh_size, length))
      return not_an_artifact(name, "a section is outside the file");
  }
  return rows;
}

}  // namespace

const ElfSection* ElfFile::find(std::string_view name) const {
  for (const ElfSection& section : sections) {
    if (section.name == name) return &section;
  }
  return nullptr;
}

Expected<std::string> read_section(const FilePart& file, const ElfSection& section, const std::string& name) {
  std::string bytes(static_cast<size_t>(section.nbytes), '\0');
  if (!read_exactly(file, section.offset, {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()}))
    return system_refusal(name);
  return bytes;
}

Expected<ElfFile> read_elf_file(const FilePart& file, int64_t length, const std::string& name) {
  Elf64_Ehdr header{};
  if (length < static_cast<int64_t>(sizeof header)) return not_an_artifact(name, "it is not an ELF file");
  if (!read_exactly(file, 0, {reinterpret_cast<uint8_t*>(&header), sizeof header})) return system_refusal(name);
  if (const std::string problem = header_problem(header); !problem.empty()) return not_an_artifact(name, problem);
  const Expected<std::vector<Elf64_Shdr>> rows = read_rows(file, header, length, name);
  if (!rows) return rows.refusal();
  const Elf64_Shdr& names = rows.value()[header.e_shstrndx];
  if (names.sh_type != SHT_STRTAB || names.sh_size > kMaxNameTable)
    return not_an_artifact(name, "its sections have no names");
  ElfSection name_section;
  name_section.offset = static_cast<int64_t>(names.sh_offset);
  name_section.nbytes = static_cast<int64_t>(names.sh_size);
  const Expected<std::string> table = read_section(file, name_section, name);
  if (!table) return table.refusal();
  ElfFile elf{.architecture = architecture_of_machine(header.e_machine), .sections = {}};
  for (const Elf64_Shdr& row : rows.value()) {
    if (row.sh_type == SHT_NOBITS || row.sh_type == SHT_NULL) continue;
    elf.sections.push_back({.name = name_at(table.value(), row.sh_name),
                            .address = row.sh_addr,
                            .is_mapped = (row.sh_flags & SHF_ALLOC) != 0,
                            .offset = static_cast<int64_t>(row.sh_offset),
                            .nbytes = static_cast<int64_t>(row.sh_size)});
  }
  return elf;
}

}  // namespace headrace::artifact
