#include "runtime/cpu_features.h"

#include <algorithm>
#include <array>
#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace headrace::runtime {
namespace {

// Which saved registers the operating system must have switched on (bits of XCR0; Intel SDM vol. 1, 13.3).
constexpr uint64_t kNone = 0;
constexpr uint64_t kAvx = 0x6;      // SSE, AVX
constexpr uint64_t kAvx512 = 0xe6;  // and opmask, upper halves, upper registers
constexpr uint64_t kAmx = 0x60000;  // tile configuration, tile data

enum Register { kEax, kEbx, kEcx, kEdx };

// One row per feature of x86-64: CPUID leaf and subleaf, register, bit (Intel SDM vol. 2, CPUID; AMD APM vol. 3,
// appendix E). Names lie in the rows, because a pointer to each would be a relocation of the library.
struct X86Row {
  char name[16];
  uint32_t leaf;
  uint32_t subleaf;
  Register reg;
  int bit;
  uint64_t xcr0;
};

constexpr std::array kX86Rows = {
    X86Row{"64bit", 0x80000001, 0, kEdx, 29, kNone},
    X86Row{"adx", 7, 0, kEbx, 19, kNone},
    X86Row{"aes", 1, 0, kEcx, 25, kNone},
    X86Row{"amx-bf16", 7, 0, kEdx, 22, kAmx},
    X86Row{"amx-int8", 7, 0, kEdx, 25, kAmx},
    X86Row{"amx-tile", 7, 0, kEdx, 24, kAmx},
    X86Row{"avx", 1, 0, kEcx, 28, kAvx},
    X86Row{"avx2", 7, 0, kEbx, 5, kAvx},
    X86Row{"avx512bf16", 7, 1, kEax, 5, kAvx512},
    X86Row{"avx512bitalg", 7, 0, kEcx, 12, kAvx512},
    X86Row{"avx512bw", 7, 0, kEbx, 30, kAvx512},
    X86Row{"avx512cd", 7, 0, kEbx, 28, kAvx512},
    X86Row{"avx512dq", 7, 0, kEbx, 17, kAvx512},
    X86Row{"avx512f", 7, 0, kEbx, 16, kAvx512},
    X86Row{"avx512fp16", 7, 0, kEdx, 23, kAvx512},
    X86Row{"avx512ifma", 7, 0, kEbx, 21, kAvx512},
    X86Row{"avx512vbmi", 7, 0, kEcx, 1, kAvx512},
    X86Row{"avx512vbmi2", 7, 0, kEcx, 6, kAvx512},
    X86Row{"avx512vl", 7, 0, kEbx, 31, kAvx512},
    X86Row{"avx512vnni", 7, 0, kEcx, 11, kAvx512},
    X86Row{"avx512vpopcntdq", 7, 0, kEcx, 14, kAvx512},
    X86Row{"avxvnni", 7, 1, kEax, 4, kAvx},
    X86Row{"bmi", 7, 0, kEbx, 3, kNone},
    X86Row{"bmi2", 7, 0, kEbx, 8, kNone},
    X86Row{"cmov", 1, 0, kEdx, 15, kNone},
    X86Row{"crc32", 1, 0, kEcx, 20, kNone},
    X86Row{"cx16", 1, 0, kEcx, 13, kNone},
    X86Row{"cx8", 1, 0, kEdx, 8, kNone},
    X86Row{"evex512", 7, 0, kEbx, 16, kAvx512},  // 512-bit registers: every processor with AVX-512 has them
    X86Row{"f16c", 1, 0, kEcx, 29, kAvx},
    X86Row{"fma", 1, 0, kEcx, 12, kAvx},
    X86Row{"fxsr", 1, 0, kEdx, 24, kNone},
    X86Row{"gfni", 7, 0, kEcx, 8, kNone},
    X86Row{"lzcnt", 0x80000001, 0, kEcx, 5, kNone},
    X86Row{"mmx", 1, 0, kEdx, 23, kNone},
    X86Row{"movbe", 1, 0, kEcx, 22, kNone},
    X86Row{"pclmul", 1, 0, kEcx, 1, kNone},
    X86Row{"popcnt", 1, 0, kEcx, 23, kNone},
    X86Row{"sahf", 0x80000001, 0, kEcx, 0, kNone},
    X86Row{"sse", 1, 0, kEdx, 25, kNone},
    X86Row{"sse2", 1, 0, kEdx, 26, kNone},
    X86Row{"sse3", 1, 0, kEcx, 0, kNone},
    X86Row{"sse4.1", 1, 0, kEcx, 19, kNone},
    X86Row{"sse4.2", 1, 0, kEcx, 20, kNone},
    X86Row{"ssse3", 1, 0, kEcx, 9, kNone},
    X86Row{"vaes", 7, 0, kEcx, 9, kAvx},
    X86Row{"vpclmulqdq", 7, 0, kEcx, 10, kAvx},
    X86Row{"x87", 1, 0, kEdx, 0, kNone},
    X86Row{"xsave", 1, 0, kEcx, 26, kNone},
};

// One row per feature of AArch64: the bits that Linux sets of AT_HWCAP and AT_HWCAP2 (Documentation/arch/arm64/
// elf_hwcaps.rst). A feature of LLVM's that covers two of the architecture's needs both bits. SVE is left out: no
// kernel was tested with vectors of a length that only a run tells.
struct ArmRow {
  char name[16];
  uint64_t hwcap;
  uint64_t hwcap2 = 0;
};

constexpr uint64_t bit(int number) { return uint64_t{1} << number; }

constexpr std::array kArmRows = {
    ArmRow{"aes", bit(3) | bit(4)},        // AES, PMULL
    ArmRow{"bf16", 0, bit(14)},            // BF16
    ArmRow{"complxnum", bit(14)},          // FCMA
    ArmRow{"crc", bit(7)},                 // CRC32
    ArmRow{"dotprod", bit(20)},            // ASIMDDP
    ArmRow{"fp-armv8", bit(0)},            // FP
    ArmRow{"fp16fml", bit(23)},            // ASIMDFHM
    ArmRow{"fptoint", 0, bit(8)},          // FRINT
    ArmRow{"fullfp16", bit(9) | bit(10)},  // FPHP, ASIMDHP
    ArmRow{"i8mm", 0, bit(13)},            // I8MM
    ArmRow{"jsconv", bit(13)},             // JSCVT
    ArmRow{"lse", bit(8)},                 // ATOMICS
    ArmRow{"neon", bit(1)},                // ASIMD
    ArmRow{"rcpc", bit(15)},               // LRCPC
    ArmRow{"rdm", bit(12)},                // ASIMDRDM
    ArmRow{"sha2", bit(5) | bit(6)},       // SHA1, SHA2
    ArmRow{"sha3", bit(17) | bit(21)},     // SHA3, SHA512
};

template <typename Rows>
std::vector<std::string_view> names_of(const Rows& rows) {
  std::vector<std::string_view> names;
  for (const auto& row : rows) names.emplace_back(row.name);
  return names;
}

#if defined(__x86_64__)

// Returns the registers that the operating system saves; 0 when it saves none by XSAVE.
uint64_t read_xcr0() {
  uint32_t eax = 0;
  uint32_t ebx = 0;
  uint32_t ecx = 0;
  uint32_t edx = 0;
  constexpr uint32_t kOsXsave = 1u << 27;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx & kOsXsave) == 0) return 0;
  uint32_t low = 0;
  uint32_t high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

std::vector<std::string_view> detect() {
  const uint64_t xcr0 = read_xcr0();
  std::vector<std::string_view> features;
  for (const X86Row& row : kX86Rows) {
    std::array<uint32_t, 4> registers{};
    if (__get_cpuid_count(row.leaf, row.subleaf, &registers[0], &registers[1], &registers[2], &registers[3]) == 0)
      continue;
    const bool has_bit = (registers[row.reg] >> row.bit & 1) != 0;
    if (has_bit && (xcr0 & row.xcr0) == row.xcr0) features.emplace_back(row.name);
  }
  return features;
}

#else

std::vector<std::string_view> detect() {
  const uint64_t hwcap = ::getauxval(AT_HWCAP), hwcap2 = ::getauxval(AT_HWCAP2);
  std::vector<std::string_view> features;
  for (const ArmRow& row : kArmRows) {
    if ((hwcap & row.hwcap) == row.hwcap && (hwcap2 & row.hwcap2) == row.hwcap2) features.emplace_back(row.name);
  }
  return features;
}

#endif

}  // namespace

const std::vector<std::string_view>& host_cpu_features() {
  static const std::vector<std::string_view> features = detect();
  return features;
}

std::vector<std::string_view> known_cpu_features(std::string_view architecture) {
  if (architecture == "x86_64") return names_of(kX86Rows);
  return architecture == "aarch64" ? names_of(kArmRows) : std::vector<std::string_view>();
}

std::vector<std::string> missing_features(std::span<const std::string> needed,
                                          std::span<const std::string_view> available) {
  std::vector<std::string> missing;
  for (const std::string& name : needed) {
    if (std::find(available.begin(), available.end(), name) == available.end()) missing.push_back(name);
  }
  return missing;
}

}  // namespace headrace::runtime
