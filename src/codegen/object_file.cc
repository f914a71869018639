#include "codegen/object_file.h"

#include <elf.h>

#include <array>
#include <bit>
#include <cstring>

#include "base/error.h"

namespace headrace::codegen {

namespace {

constexpr uint32_t kAddressSignificance = 0x6fff4c03;  // SHT_LLVM_ADDRSIG
constexpr uint32_t kRiscvAttributes = 0x70000003;      // SHT_RISCV_ATTRIBUTES
constexpr uint64_t kLargestAlignment = 1 << 16;
constexpr uint64_t kLargestSection = uint64_t{1} << 34;

uint16_t machine_of(const NativeTarget& target) {
  if (target.triple.starts_with("x86_64")) return EM_X86_64;
  return target.triple.starts_with("aarch64") ? EM_AARCH64 : EM_RISCV;
}

// Bytes before and after the place of a relocation that applying or relaxing it touches.
struct Reach {
  uint64_t before;
  uint64_t after;
};

class ObjectCheck {
 public:
  ObjectCheck(const ObjectCode& object, const NativeTarget& target) : object_(object), target_(target) {}

  // Returns the names of the symbols that the object defines for others.
  std::vector<std::string> run() {
    check_header();
    for (size_t i = 1; i < sections_.size(); ++i) check_section(sections_[i]);
    for (const Elf64_Shdr& it : sections_) {
      if (it.sh_type == SHT_SYMTAB) check_symbols(it);
    }
    for (const Elf64_Shdr& it : sections_) {
      if (it.sh_type == SHT_RELA) check_relocations(it);
    }
    return std::move(defined_);
  }

 private:
  void require(bool good, const char* what) const {
    if (!good) throw_user_error("cannot link '{}': it is not a sound ELF object file ({})", object_.name, what);
  }

  template <typename T>
  T get(uint64_t offset) const {
    const std::string& bytes = object_.bytes;
    require(offset <= bytes.size() && sizeof(T) <= bytes.size() - offset, "a header lies outside of the file");
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return value;
  }

  void check_header() {
    require(object_.bytes.starts_with(std::string_view(ELFMAG, SELFMAG)), "it does not begin as one");
    const auto header = get<Elf64_Ehdr>(0);
    require(header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_ident[EI_DATA] == ELFDATA2LSB &&
                header.e_ident[EI_VERSION] == EV_CURRENT && header.e_version == EV_CURRENT,
            "it is not 64-bit little-endian");
    require(header.e_ident[EI_OSABI] == ELFOSABI_NONE && header.e_ident[EI_ABIVERSION] == 0, "unknown ABI");
    require(header.e_type == ET_REL, "it is not relocatable");
    if (header.e_machine != machine_of(target_))
      throw_user_error("cannot link '{}': it holds code for another machine than {}; make it with a compiler for {}",
                       object_.name, target_.triple, target_.triple);
    require(header.e_ehsize == sizeof(Elf64_Ehdr) && header.e_phnum == 0, "bad file header");
    require(header.e_shentsize == sizeof(Elf64_Shdr) && header.e_shnum > 0 && header.e_shoff % 8 == 0,
            "bad section table");
    for (size_t i = 0; i < header.e_shnum; ++i) {
      sections_.push_back(get<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr)));
    }
    require(sections_[0].sh_type == SHT_NULL && sections_[0].sh_size == 0 && sections_[0].sh_link == 0,
            "bad first section");
    require(header.e_shstrndx < header.e_shnum, "bad index of the section names");
    names_ = sections_[header.e_shstrndx];
    check_section(names_);
    require(names_.sh_type == SHT_STRTAB, "bad section names");
  }

  void check_section(const Elf64_Shdr& it) const {
    constexpr std::array kTypes = {uint32_t{SHT_PROGBITS},      uint32_t{SHT_SYMTAB}, uint32_t{SHT_STRTAB},
                                   uint32_t{SHT_RELA},          uint32_t{SHT_NOBITS}, uint32_t{SHT_NOTE},
                                   uint32_t{SHT_X86_64_UNWIND}, kAddressSignificance, kRiscvAttributes};
    require(std::find(kTypes.begin(), kTypes.end(), it.sh_type) != kTypes.end(), "unknown type of section");
    constexpr uint64_t kFlags =
        SHF_WRITE | SHF_ALLOC | SHF_EXECINSTR | SHF_MERGE | SHF_STRINGS | SHF_INFO_LINK | SHF_EXCLUDE;
    require((it.sh_flags & ~kFlags) == 0, "unknown flags of a section");
    require(it.sh_name < names_.sh_size, "a section's name lies outside");
    require(it.sh_link < sections_.size(), "a section refers to none");
    require(it.sh_addralign <= kLargestAlignment && (it.sh_addralign == 0 || std::has_single_bit(it.sh_addralign)),
            "bad alignment of a section");
    const uint64_t size = object_.bytes.size();
    if (it.sh_type == SHT_NOBITS) {
      require(it.sh_size <= kLargestSection, "a section is too large");
    } else {
      require(it.sh_offset <= size && it.sh_size <= size - it.sh_offset, "a section lies outside of the file");
      require(it.sh_addralign == 0 || it.sh_offset % it.sh_addralign == 0, "a section is not aligned");
    }
    if ((it.sh_flags & SHF_MERGE) != 0) check_pieces(it);
    if (it.sh_type == SHT_STRTAB) require(it.sh_size > 0 && last_byte(it) == 0, "a string table has no end");
    if (it.sh_type == SHT_SYMTAB) require(it.sh_entsize == sizeof(Elf64_Sym), "bad size of symbols");
    if (it.sh_type == SHT_RELA) require(it.sh_entsize == sizeof(Elf64_Rela), "bad size of relocations");
    if (it.sh_type == SHT_SYMTAB || it.sh_type == SHT_RELA) {
      require(it.sh_flags == 0 || it.sh_flags == SHF_INFO_LINK, "bad flags of a table");
      require(it.sh_size % it.sh_entsize == 0, "a table ends within an entry");
      require(it.sh_addralign == 8, "a table is not aligned");
    }
  }

  // Checks sections whose equal pieces the linker joins.
  void check_pieces(const Elf64_Shdr& it) const {
    require(it.sh_type == SHT_PROGBITS && (it.sh_flags & SHF_WRITE) == 0, "bad section of pieces");
    require(it.sh_entsize > 0 && it.sh_entsize <= 64 && it.sh_size % it.sh_entsize == 0, "bad size of pieces");
    if ((it.sh_flags & SHF_STRINGS) != 0 && it.sh_size > 0) {
      for (uint64_t i = 0; i < it.sh_entsize; ++i) {
        require(object_.bytes[it.sh_offset + it.sh_size - 1 - i] == 0, "a section of strings has no end");
      }
    }
  }

  char last_byte(const Elf64_Shdr& it) const { return object_.bytes[it.sh_offset + it.sh_size - 1]; }

  // Returns a symbol's name, which ends inside its table because string tables end in a zero byte.
  std::string_view name_of(const Elf64_Shdr& strings, const Elf64_Sym& symbol) const {
    return object_.bytes.data() + strings.sh_offset + symbol.st_name;
  }

  void check_symbols(const Elf64_Shdr& table) {
    require(symbol_count_ == 0, "two symbol tables");
    symbol_count_ = table.sh_size / sizeof(Elf64_Sym);
    const Elf64_Shdr strings = sections_[table.sh_link];
    require(strings.sh_type == SHT_STRTAB, "symbols without names");
    require(table.sh_info >= 1 && table.sh_info <= symbol_count_, "bad number of local symbols");
    for (uint64_t i = 0; i < symbol_count_; ++i) {
      const auto it = get<Elf64_Sym>(table.sh_offset + i * sizeof(Elf64_Sym));
      const unsigned binding = ELF64_ST_BIND(it.st_info), type = ELF64_ST_TYPE(it.st_info);
      require(it.st_name < strings.sh_size, "a symbol's name lies outside");
      // lld 19 keeps a pointer to this symbol for its next link in the process, and writes through it.
      require(name_of(strings, it) != "_GLOBAL_OFFSET_TABLE_", "it names the global offset table");
      require(i < table.sh_info ? binding == STB_LOCAL : binding == STB_GLOBAL || binding == STB_WEAK,
              "bad binding of a symbol");
      require(type <= STT_FILE, "unknown type of a symbol");
      if (binding != STB_LOCAL && it.st_shndx != SHN_UNDEF) defined_.emplace_back(name_of(strings, it));
      if (it.st_shndx == SHN_UNDEF || it.st_shndx == SHN_ABS) continue;
      require(it.st_shndx < sections_.size(), "a symbol refers to no section");
      const uint64_t size = sections_[it.st_shndx].sh_size;
      require(it.st_value <= size && it.st_size <= size - it.st_value, "a symbol lies outside of its section");
    }
  }

  Reach reach_of(uint32_t type) const {
    if (machine_of(target_) != EM_X86_64) return {0, 1};
    switch (type) {
      case R_X86_64_64:
      case R_X86_64_PC64:
        return {0, 8};
      case R_X86_64_PC32:
      case R_X86_64_PLT32:
      case R_X86_64_32:
      case R_X86_64_32S:
        return {0, 4};
      case R_X86_64_GOTPCREL:
      case R_X86_64_GOTPCRELX:
      case R_X86_64_REX_GOTPCRELX:
        return {3, 4};
      default:
        require(false, "unknown kind of relocation");
        return {0, 0};
    }
  }

  void check_relocations(const Elf64_Shdr& table) const {
    require(sections_[table.sh_link].sh_type == SHT_SYMTAB, "relocations without symbols");
    require(table.sh_info > 0 && table.sh_info < sections_.size(), "relocations of no section");
    const Elf64_Shdr& place = sections_[table.sh_info];
    require(place.sh_type == SHT_PROGBITS || place.sh_type == SHT_X86_64_UNWIND, "relocations of no code or data");
    require((place.sh_flags & SHF_MERGE) == 0, "relocations of joined pieces");
    for (uint64_t at = 0; at < table.sh_size; at += sizeof(Elf64_Rela)) {
      const auto it = get<Elf64_Rela>(table.sh_offset + at);
      require(ELF64_R_SYM(it.r_info) < symbol_count_, "a relocation refers to no symbol");
      const Reach reach = reach_of(static_cast<uint32_t>(ELF64_R_TYPE(it.r_info)));
      require(it.r_offset >= reach.before && it.r_offset <= place.sh_size && reach.after <= place.sh_size - it.r_offset,
              "a relocation lies outside of its section");
    }
  }

  const ObjectCode& object_;
  const NativeTarget& target_;
  std::vector<Elf64_Shdr> sections_;
  Elf64_Shdr names_{};
  uint64_t symbol_count_ = 0;
  std::vector<std::string> defined_;
};

}  // namespace

void check_object(const ObjectCode& object, const NativeTarget& target) { ObjectCheck(object, target).run(); }

std::vector<std::string> defined_symbols(const ObjectCode& object, const NativeTarget& target) {
  return ObjectCheck(object, target).run();
}

}  // namespace headrace::codegen
