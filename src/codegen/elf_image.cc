#include "codegen/elf_image.h"

#include <elf.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "base/error.h"

namespace headrace::codegen {

namespace {

constexpr uint64_t kSmallestPage = 4096;

uint64_t align_up(uint64_t value, uint64_t alignment) { return (value + alignment - 1) & ~(alignment - 1); }

// Views into the headers of an image that the linker has just made, hence checked for our errors only. Structs are
// copied in and out: the string's bytes need no alignment.
class ElfHeaders {
 public:
  explicit ElfHeaders(std::string& image) : image_(image), header_(get<Elf64_Ehdr>(0)) {
    HEADRACE_CHECK(std::memcmp(header_.e_ident, ELFMAG, SELFMAG) == 0 && header_.e_ident[EI_CLASS] == ELFCLASS64 &&
                       header_.e_ident[EI_DATA] == ELFDATA2LSB,
                   "the linker made something else than a 64-bit little-endian ELF file");
    names_offset_ = section(header_.e_shstrndx).sh_offset;
  }

  bool is_relocatable() const { return header_.e_type == ET_REL; }
  int segment_count() const { return header_.e_phnum; }
  Elf64_Phdr segment(int i) const { return get<Elf64_Phdr>(segment_offset(i)); }
  void set_segment(int i, const Elf64_Phdr& value) { set(segment_offset(i), value); }
  Elf64_Shdr section(int i) const { return get<Elf64_Shdr>(section_offset(i)); }
  void set_section(int i, const Elf64_Shdr& value) { set(section_offset(i), value); }

  int find_section(std::string_view name) const {
    for (int i = 1; i < header_.e_shnum; ++i) {
      const uint64_t at = names_offset_ + section(i).sh_name;
      if (image_.compare(at, name.size(), name) == 0 && image_.at(at + name.size()) == '\0') return i;
    }
    throw InternalError(fmt::format("the linked image has no section '{}'", name));
  }

  // Returns the segment without bytes in the file that holds `address`.
  int find_empty_segment(uint64_t address) const {
    for (int i = 0; i < segment_count(); ++i) {
      const Elf64_Phdr it = segment(i);
      if (it.p_type == PT_LOAD && it.p_vaddr <= address && address < it.p_vaddr + it.p_memsz && it.p_filesz == 0) {
        return i;
      }
    }
    throw InternalError(fmt::format("no empty segment of the linked image holds address {:#x}", address));
  }

 private:
  uint64_t segment_offset(int i) const { return header_.e_phoff + static_cast<uint64_t>(i) * sizeof(Elf64_Phdr); }
  uint64_t section_offset(int i) const { return header_.e_shoff + static_cast<uint64_t>(i) * sizeof(Elf64_Shdr); }

  template <typename T>
  T get(uint64_t offset) const {
    static_assert(std::is_trivially_copyable_v<T>);
    HEADRACE_CHECK(offset <= image_.size() && sizeof(T) <= image_.size() - offset, "ELF header at {} is outside",
                   offset);
    T value;
    std::memcpy(&value, image_.data() + offset, sizeof(T));
    return value;
  }
  template <typename T>
  void set(uint64_t offset, const T& value) {
    std::memcpy(image_.data() + offset, &value, sizeof(T));
  }

  std::string& image_;
  Elf64_Ehdr header_;
  uint64_t names_offset_ = 0;
};

void round_relro(ElfHeaders& headers) {
  for (int i = 0; i < headers.segment_count(); ++i) {
    Elf64_Phdr segment = headers.segment(i);
    if (segment.p_type != PT_GNU_RELRO) continue;
    segment.p_memsz = align_up(segment.p_vaddr + segment.p_memsz, kSmallestPage) - segment.p_vaddr;
    headers.set_segment(i, segment);
  }
}

void write_at(int fd, const std::string& name, const void* data, uint64_t size_bytes, uint64_t offset) {
  const char* at = static_cast<const char*>(data);
  while (size_bytes > 0) {
    const ssize_t written = pwrite(fd, at, size_bytes, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) throw_user_error("cannot write {}: {}", name, std::strerror(written < 0 ? errno : ENOSPC));
    at += written;
    offset += static_cast<uint64_t>(written);
    size_bytes -= static_cast<uint64_t>(written);
  }
}

// Gives section `it`, for which the linker wrote no bytes, those at `offset` of the file.
void give_bytes(ElfHeaders& headers, const DataSection& it, uint64_t offset) {
  const int index = headers.find_section(it.name);
  Elf64_Shdr section = headers.section(index);
  HEADRACE_CHECK(section.sh_size == linked_bytes(it) && section.sh_type == SHT_NOBITS,
                 "section '{}' came out of the linker with {} bytes, expected {}", it.name, section.sh_size,
                 linked_bytes(it));
  section.sh_size = it.size_bytes;
  section.sh_type = SHT_PROGBITS;
  section.sh_offset = offset;
  headers.set_section(index, section);
}

// Places the sections one after the other: a relocatable object is not mapped.
DataLayout place_in_object(ElfHeaders& headers, std::span<const DataSection> sections, uint64_t image_size) {
  DataLayout layout{.file_size = image_size, .offsets = {}};
  for (const DataSection& it : sections) {
    const uint64_t offset = align_up(layout.file_size, it.alignment);
    give_bytes(headers, it, offset);
    layout.offsets.push_back(offset);
    layout.file_size = offset + it.size_bytes;
  }
  return layout;
}

}  // namespace

DataLayout place_data(std::string& image, std::span<const DataSection> sections) {
  ElfHeaders headers(image);
  if (headers.is_relocatable()) return place_in_object(headers, sections, image.size());
  round_relro(headers);
  DataLayout layout{.file_size = image.size(), .offsets = {}};
  if (sections.empty()) return layout;
  const int segment_index = headers.find_empty_segment(headers.section(headers.find_section(sections[0].name)).sh_addr);
  Elf64_Phdr segment = headers.segment(segment_index);
  // A mapping needs file offset and address to agree below the page size.
  segment.p_offset = align_up(image.size(), segment.p_align) + segment.p_vaddr % segment.p_align;
  segment.p_filesz = segment.p_memsz;
  headers.set_segment(segment_index, segment);
  for (const DataSection& it : sections) {
    const uint64_t address = headers.section(headers.find_section(it.name)).sh_addr;
    HEADRACE_CHECK(address >= segment.p_vaddr, "section '{}' came out of the linker before its segment", it.name);
    layout.offsets.push_back(segment.p_offset + (address - segment.p_vaddr));
    give_bytes(headers, it, layout.offsets.back());
  }
  layout.file_size = segment.p_offset + segment.p_filesz;
  return layout;
}

void write_image(const std::string& image, std::span<const DataSection> sections, const DataLayout& layout, int fd,
                 const std::string& name) {
  // Truncates the file first, because bytes between the chunks must read as zero.
  if (ftruncate(fd, 0) != 0 || ftruncate(fd, static_cast<off_t>(layout.file_size)) != 0) {
    throw_user_error("cannot write {}: {}", name, std::strerror(errno));
  }
  write_at(fd, name, image.data(), image.size(), 0);
  for (size_t i = 0; i < sections.size(); ++i) {
    for (const DataSection::Chunk& chunk : sections[i].chunks) {
      write_at(fd, name, chunk.bytes.data(), chunk.bytes.size(), layout.offsets[i] + chunk.offset);
    }
  }
}

}  // namespace headrace::codegen
