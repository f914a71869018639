#include "cost/machine.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <vector>

namespace headrace::cost {

namespace {

constexpr int64_t kKiB = 1 << 10, kMiB = 1 << 20;

struct Row {
  Machine machine;
  std::vector<std::string_view> cpus;  // LLVM's names
};

// Sources. Ports, latencies and cache sizes: Intel 64 and IA-32 Architectures Optimization Reference Manual (248966),
// AMD Software Optimization Guides (Zen 2: 56305, Zen 3: 56665, Zen 4: 57647, Zen 5: 58455), and the tables of
// Agner Fog, "Instruction tables". Bandwidths of Zen 4 and Sapphire Rapids: `./dev bench probes` on two machines; of
// the others: those of the nearest measured family, in proportion to the manual's bytes a cycle.
std::vector<Row> make_rows() {
  return {
      {{.family = "x86-64",
        .has_fma = false,
        .fma_ports = 1,
        .fma_port_bits = 128,
        .fma_latency_cycles = 8,
        .gigahertz = 2.5,
        .l2_gigabytes = 40,
        .l3_gigabytes = 20,
        .dram_gigabytes = 8,
        .all_dram_gigabytes = 16},
       {"x86-64", "x86-64-v2", "nehalem", "westmere", "sandybridge", "ivybridge", "silvermont", "goldmont", "btver2"}},
      // Haswell; Broadwell and Skylake differ by the latency (4 cycles on Skylake) only.
      {{.family = "x86-64-v3"}, {"x86-64-v3", "haswell", "broadwell", "skylake"}},
      {{.family = "alderlake",
        .fma_latency_cycles = 4,
        .gigahertz = 4.5,
        .l1_bytes = 48 * kKiB,
        .l2_bytes = 1280 * kKiB,
        .l3_bytes = 24 * kMiB,
        .l2_gigabytes = 200,
        .l3_gigabytes = 60,
        .dram_gigabytes = 30,
        .all_dram_gigabytes = 60},
       {"alderlake", "raptorlake", "meteorlake", "arrowlake", "lunarlake"}},
      {{.family = "znver2", .gigahertz = 3.2, .l2_bytes = 512 * kKiB, .l3_bytes = 16 * kMiB, .l3_gigabytes = 70},
       {"znver1", "znver2"}},
      {{.family = "znver3",
        .fma_latency_cycles = 4,
        .gigahertz = 3.5,
        .l2_bytes = 512 * kKiB,
        .l3_bytes = 32 * kMiB,
        .l2_gigabytes = 110,
        .l3_gigabytes = 85,
        .dram_gigabytes = 25,
        .all_dram_gigabytes = 50},
       {"znver3"}},
      // Two ports of 256 bits: 512-bit vectors take both. Measured: 117 GFLOP/s, with AVX2 the same.
      {{.family = "znver4",
        .fma_latency_cycles = 4,
        .gigahertz = 3.66,
        .l2_bytes = 1 * kMiB,
        .l3_bytes = 32 * kMiB,
        .l2_gigabytes = 117,
        .l3_gigabytes = 90,
        .dram_gigabytes = 33,
        .all_dram_gigabytes = 60},
       {"znver4"}},
      {{.family = "znver5",
        .fma_port_bits = 512,
        .fma_latency_cycles = 4,
        .gigahertz = 4.0,
        .l1_bytes = 48 * kKiB,
        .l2_bytes = 1 * kMiB,
        .l3_bytes = 32 * kMiB,
        .l2_gigabytes = 230,
        .l3_gigabytes = 110,
        .dram_gigabytes = 35,
        .all_dram_gigabytes = 70},
       {"znver5"}},
      {{.family = "skylake-avx512",
        .fma_port_bits = 512,
        .fma_latency_cycles = 4,
        .gigahertz = 2.8,
        .l2_bytes = 1 * kMiB,
        .l3_bytes = 24 * kMiB,
        .l2_gigabytes = 150,
        .l3_gigabytes = 25,
        .dram_gigabytes = 12,
        .all_dram_gigabytes = 80},
       {"x86-64-v4", "skylake-avx512", "skx", "cascadelake", "cooperlake", "cannonlake"}},
      // Clients have one port of 512 bits.
      {{.family = "icelake-client",
        .fma_ports = 1,
        .fma_port_bits = 512,
        .fma_latency_cycles = 4,
        .gigahertz = 3.8,
        .l1_bytes = 48 * kKiB,
        .l2_bytes = 512 * kKiB,
        .l2_gigabytes = 180,
        .dram_gigabytes = 20,
        .all_dram_gigabytes = 40},
       {"icelake-client", "tigerlake", "rocketlake"}},
      {{.family = "icelake-server",
        .fma_port_bits = 512,
        .fma_latency_cycles = 4,
        .gigahertz = 3.0,
        .l1_bytes = 48 * kKiB,
        .l2_bytes = 1280 * kKiB,
        .l3_bytes = 48 * kMiB,
        .l2_gigabytes = 160,
        .l3_gigabytes = 27,
        .dram_gigabytes = 13,
        .all_dram_gigabytes = 120},
       {"icelake-server"}},
      // Measured: 240 GFLOP/s.
      {{.family = "sapphirerapids",
        .fma_port_bits = 512,
        .fma_latency_cycles = 4,
        .gigahertz = 3.75,
        .l1_bytes = 48 * kKiB,
        .l2_bytes = 2 * kMiB,
        .l3_bytes = 96 * kMiB,
        .l2_gigabytes = 190,
        .l3_gigabytes = 29,
        .dram_gigabytes = 17,
        .all_dram_gigabytes = 200},
       {"sapphirerapids", "emeraldrapids", "graniterapids", "graniterapids-d"}},
      // Neoverse N1, as servers have it: two pipes of 128 bits that multiply and add in 4 cycles, caches of 64 KB and 1
      // MB (Arm Neoverse N1 Software Optimization Guide, PJDOC-466751330-9707, and Technical Reference Manual, 100616).
      // The bandwidths were not measured.
      {{.family = "aarch64",
        .fma_port_bits = 128,
        .fma_latency_cycles = 4,
        .gigahertz = 2.8,
        .l1_bytes = 64 * kKiB,
        .l2_bytes = 1 * kMiB,
        .l3_bytes = 32 * kMiB,
        .l2_gigabytes = 80,
        .dram_gigabytes = 25,
        .all_dram_gigabytes = 100},
       {}},
  };
}

const std::vector<Row>& rows() {
  static const std::vector<Row> kRows = make_rows();
  return kRows;
}

bool has(std::span<const std::string> features, std::string_view name) {
  return std::find(features.begin(), features.end(), name) != features.end();
}

// Returns the family for a processor that has no row, from the newest features down.
std::string_view family_of(std::span<const std::string> features) {
  if (has(features, "neon")) return "aarch64";
  if (has(features, "amx-tile")) return "sapphirerapids";
  if (has(features, "avx512f")) return "skylake-avx512";
  return has(features, "avx2") && has(features, "fma") ? "x86-64-v3" : "x86-64";
}

const Row& row_of(std::string_view cpu, std::span<const std::string> features) {
  const auto named = std::find_if(rows().begin(), rows().end(), [&](const Row& row) {
    return std::find(row.cpus.begin(), row.cpus.end(), cpu) != row.cpus.end();
  });
  if (named != rows().end()) return *named;
  return *std::find_if(rows().begin(), rows().end(),
                       [&](const Row& row) { return row.machine.family == family_of(features); });
}

// AArch64 has 32 vector registers (Arm Architecture Reference Manual, DDI 0487, B1.2.1), x86-64 has them with AVX-512.
int vector_registers_of(std::span<const std::string> features) {
  return has(features, "avx512vl") || has(features, "neon") ? 32 : 16;
}

}  // namespace

int vector_bits_of(std::span<const std::string> features) {
  if (has(features, "neon")) return 128;
  if (has(features, "sse2")) {
    // Without evex512 LLVM splits every wide vector in two.
    return has(features, "avx512f") && has(features, "evex512") ? 512 : has(features, "avx") ? 256 : 128;
  }
  return has(features, "v") ? 128 : 64;
}

Machine machine_for(std::string_view cpu, std::span<const std::string> features) {
  Machine machine = row_of(cpu, features).machine;
  machine.vector_bits = vector_bits_of(features);
  machine.vector_registers = vector_registers_of(features);
  machine.has_fma = has(features, "fma") || has(features, "neon");  // AArch64 has it with its vectors
  return machine;
}

int64_t lanes_of(const Machine& machine, DataType dtype) {
  return std::max(1, machine.vector_bits / std::max(8, dtype.bits()));
}

double peak_gigaops(const Machine& machine, DataType dtype) {
  const int bits = dtype.is_float() ? std::max(32, dtype.bits()) : std::max(8, dtype.bits());
  const int width = std::min(machine.vector_bits, machine.fma_port_bits);
  const double lanes = std::max(1.0, static_cast<double>(width) / bits);
  // Without multiply-adds, a product and a sum take a start each.
  const double operations = machine.has_fma ? 2 : 1;
  return lanes * operations * machine.fma_ports * machine.gigahertz;
}

}  // namespace headrace::cost
