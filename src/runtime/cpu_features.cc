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

#if defined(__x86_64__)

// Which saved registers the operating system must have switched on (bits of XCR0; Intel SDM vol. 1, 13.3).
constexpr uint64_t kNone = 0;
constexpr uint64_t kAvx = 0x6;      // SSE, AVX
constexpr uint64_t kAvx512 = 0xe6;  // and opmask, upper halves, upper registers
constexpr uint64_t kAmx = 0x60000;  // tile configuration, tile data

enum Register { kEax, kEbx, kEcx, kEdx };

// One row per feature: CPUID leaf and subleaf, register, bit (Intel SDM vol. 2, CPUID; AMD APM vol. 3, appendix E).
struct Row {
  std::string_view name;
  uint32_t leaf;
  uint32_t subleaf;
  Register reg;
  int bit;
  uint64_t xcr0;
};

constexpr std::array kRows = {
    Row{"64bit", 0x80000001, 0, kEdx, 29, kNone},
    Row{"adx", 7, 0, kEbx, 19, kNone},
    Row{"aes", 1, 0, kEcx, 25, kNone},
    Row{"amx-bf16", 7, 0, kEdx, 22, kAmx},
    Row{"amx-int8", 7, 0, kEdx, 25, kAmx},
    Row{"amx-tile", 7, 0, kEdx, 24, kAmx},
    Row{"avx", 1, 0, kEcx, 28, kAvx},
    Row{"avx2", 7, 0, kEbx, 5, kAvx},
    Row{"avx512bf16", 7, 1, kEax, 5, kAvx512},
    Row{"avx512bitalg", 7, 0, kEcx, 12, kAvx512},
    Row{"avx512bw", 7, 0, kEbx, 30, kAvx512},
    Row{"avx512cd", 7, 0, kEbx, 28, kAvx512},
    Row{"avx512dq", 7, 0, kEbx, 17, kAvx512},
    Row{"avx512f", 7, 0, kEbx, 16, kAvx512},
    Row{"avx512fp16", 7, 0, kEdx, 23, kAvx512},
    Row{"avx512ifma", 7, 0, kEbx, 21, kAvx512},
    Row{"avx512vbmi", 7, 0, kEcx, 1, kAvx512},
    Row{"avx512vbmi2", 7, 0, kEcx, 6, kAvx512},
    Row{"avx512vl", 7, 0, kEbx, 31, kAvx512},
    Row{"avx512vnni", 7, 0, kEcx, 11, kAvx512},
    Row{"avx512vpopcntdq", 7, 0, kEcx, 14, kAvx512},
    Row{"avxvnni", 7, 1, kEax, 4, kAvx},
    Row{"bmi", 7, 0, kEbx, 3, kNone},
    Row{"bmi2", 7, 0, kEbx, 8, kNone},
    Row{"cmov", 1, 0, kEdx, 15, kNone},
    Row{"crc32", 1, 0, kEcx, 20, kNone},
    Row{"cx16", 1, 0, kEcx, 13, kNone},
    Row{"cx8", 1, 0, kEdx, 8, kNone},
    Row{"evex512", 7, 0, kEbx, 16, kAvx512},  // 512-bit registers: every processor with AVX-512 has them
    Row{"f16c", 1, 0, kEcx, 29, kAvx},
    Row{"fma", 1, 0, kEcx, 12, kAvx},
    Row{"fxsr", 1, 0, kEdx, 24, kNone},
    Row{"gfni", 7, 0, kEcx, 8, kNone},
    Row{"lzcnt", 0x80000001, 0, kEcx, 5, kNone},
    Row{"mmx", 1, 0, kEdx, 23, kNone},
    Row{"movbe", 1, 0, kEcx, 22, kNone},
    Row{"pclmul", 1, 0, kEcx, 1, kNone},
    Row{"popcnt", 1, 0, kEcx, 23, kNone},
    Row{"sahf", 0x80000001, 0, kEcx, 0, kNone},
    Row{"sse", 1, 0, kEdx, 25, kNone},
    Row{"sse2", 1, 0, kEdx, 26, kNone},
    Row{"sse3", 1, 0, kEcx, 0, kNone},
    Row{"sse4.1", 1, 0, kEcx, 19, kNone},
    Row{"sse4.2", 1, 0, kEcx, 20, kNone},
    Row{"ssse3", 1, 0, kEcx, 9, kNone},
    Row{"vaes", 7, 0, kEcx, 9, kAvx},
    Row{"vpclmulqdq", 7, 0, kEcx, 10, kAvx},
    Row{"x87", 1, 0, kEdx, 0, kNone},
    Row{"xsave", 1, 0, kEcx, 26, kNone},
};

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
  for (const Row& row : kRows) {
    std::array<uint32_t, 4> registers{};
    if (__get_cpuid_count(row.leaf, row.subleaf, &registers[0], &registers[1], &registers[2], &registers[3]) == 0)
      continue;
    const bool has_bit = (registers[row.reg] >> row.bit & 1) != 0;
    if (has_bit && (xcr0 & row.xcr0) == row.xcr0) features.push_back(row.name);
  }
  return features;
}

std::vector<std::string_view> known() {
  std::vector<std::string_view> names;
  for (const Row& row : kRows) names.push_back(row.name);
  return names;
}

#elif defined(__aarch64__)

std::vector<std::string_view> known() { return {"fp-armv8", "neon"}; }

std::vector<std::string_view> detect() {
  const unsigned long capabilities = ::getauxval(AT_HWCAP);
  constexpr unsigned long kFloat = 1ul << 0;
  constexpr unsigned long kSimd = 1ul << 1;
  std::vector<std::string_view> features;
  if ((capabilities & kFloat) != 0) features.push_back("fp-armv8");
  if ((capabilities & kSimd) != 0) features.push_back("neon");
  return features;
}

#else

std::vector<std::string_view> known() { return {}; }
std::vector<std::string_view> detect() { return {}; }

#endif

}  // namespace

const std::vector<std::string_view>& host_cpu_features() {
  static const std::vector<std::string_view> features = detect();
  return features;
}

std::vector<std::string_view> known_cpu_features() { return known(); }

std::vector<std::string> missing_features(std::span<const std::string> needed,
                                          std::span<const std::string_view> available) {
  std::vector<std::string> missing;
  for (const std::string& name : needed) {
    if (std::find(available.begin(), available.end(), name) == available.end()) missing.push_back(name);
  }
  return missing;
}

}  // namespace headrace::runtime
