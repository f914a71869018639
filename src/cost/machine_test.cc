#include "cost/machine.h"

#include <gtest/gtest.h>

#include "codegen/native.h"

namespace headrace::cost {
namespace {

using Features = std::vector<std::string>;

const Features kAvx2{"avx", "avx2", "fma", "sse2"};
const Features kAvx512{"avx", "avx2", "avx512f", "avx512vl", "evex512", "fma", "sse2"};

TEST(Machine, ProcessorsHaveTheRowOfTheirFamily) {
  EXPECT_EQ(machine_for("znver4", kAvx512).family, "znver4");
  EXPECT_EQ(machine_for("broadwell", kAvx2).family, "x86-64-v3");
  EXPECT_EQ(machine_for("cascadelake", kAvx512).family, "skylake-avx512");
  EXPECT_EQ(machine_for("emeraldrapids", kAvx512).family, "sapphirerapids");
}

TEST(Machine, UnknownProcessorsAreChosenByTheirFeatures) {
  EXPECT_EQ(machine_for("some-new-one", kAvx512).family, "skylake-avx512");
  EXPECT_EQ(machine_for("some-new-one", kAvx2).family, "x86-64-v3");
  EXPECT_EQ(machine_for("some-old-one", Features{"sse2"}).family, "x86-64");
  EXPECT_EQ(machine_for("generic", Features{"neon"}).family, "aarch64");
  Features with_tiles = kAvx512;
  with_tiles.emplace_back("amx-tile");
  EXPECT_EQ(machine_for("some-new-one", with_tiles).family, "sapphirerapids");
}

// A user may take features away from a processor.
TEST(Machine, RegistersFollowTheFeatures) {
  const Machine whole = machine_for("znver4", kAvx512), halved = machine_for("znver4", kAvx2);
  EXPECT_EQ(whole.vector_bits, 512);
  EXPECT_EQ(whole.vector_registers, 32);
  EXPECT_EQ(halved.vector_bits, 256);
  EXPECT_EQ(halved.vector_registers, 16);
  EXPECT_EQ(halved.l2_bytes, whole.l2_bytes);
  const Machine plain = machine_for("x86-64", Features{"sse2"});
  EXPECT_EQ(plain.vector_bits, 128);
  EXPECT_FALSE(plain.has_fma);
  const Machine arm = machine_for("generic", Features{"fp-armv8", "neon"});
  EXPECT_EQ(arm.vector_bits, 128);
  EXPECT_EQ(arm.vector_registers, 32);
  EXPECT_TRUE(arm.has_fma);
}

TEST(Machine, WidthOfEachArchitecture) {
  EXPECT_EQ(vector_bits_of(Features{"sse2"}), 128);
  EXPECT_EQ(vector_bits_of(Features{"avx", "avx512f", "sse2"}), 256) << "without evex512";
  EXPECT_EQ(vector_bits_of(Features{"neon"}), 128);
  EXPECT_EQ(vector_bits_of(Features{"m", "v"}), 128);
  EXPECT_EQ(vector_bits_of(Features{"m"}), 64);
}

TEST(Machine, LanesOfDtypes) {
  const Machine machine = machine_for("znver3", kAvx2);
  EXPECT_EQ(lanes_of(machine, DataType::float_(32)), 8);
  EXPECT_EQ(lanes_of(machine, DataType::float_(64)), 4);
  EXPECT_EQ(lanes_of(machine, DataType::int_(8)), 32);
  EXPECT_EQ(lanes_of(machine, DataType::bool_()), 32);
  EXPECT_EQ(lanes_of({.vector_bits = 32}, DataType::float_(64)), 1);
}

// Each row: sizes grow from level to level and bandwidths shrink, and schedules have the thresholds that were measured.
TEST(Machine, RowsAreConsistent) {
  for (const char* cpu : {"x86-64", "x86-64-v3", "alderlake", "znver2", "znver3", "znver4", "znver5", "skylake-avx512",
                          "icelake-client", "icelake-server", "sapphirerapids", "aarch64"}) {
    const Machine m =
        std::string_view(cpu) == "aarch64" ? machine_for(cpu, Features{"neon"}) : machine_for(cpu, kAvx512);
    EXPECT_EQ(m.family, cpu);
    EXPECT_TRUE(m.l1_bytes < m.l2_bytes && m.l2_bytes < m.l3_bytes) << cpu;
    EXPECT_TRUE(m.l2_gigabytes > m.l3_gigabytes && m.l3_gigabytes > m.dram_gigabytes) << cpu;
    EXPECT_LE(m.dram_gigabytes, m.all_dram_gigabytes) << cpu;
    EXPECT_EQ(m.kept_bytes, 524288) << cpu;
    EXPECT_EQ(m.min_reduction_work, 262144) << cpu;
  }
}

// Hand-computed: lanes a cycle times two operations times ports times gigahertz.
TEST(Machine, PeakOfKnownMachines) {
  const DataType f32 = DataType::float_(32);
  EXPECT_NEAR(peak_gigaops(machine_for("znver4", kAvx512), f32), 8 * 2 * 2 * 3.66, 1e-9);
  EXPECT_NEAR(peak_gigaops(machine_for("znver4", kAvx2), f32), 8 * 2 * 2 * 3.66, 1e-9);
  EXPECT_NEAR(peak_gigaops(machine_for("sapphirerapids", kAvx512), f32), 240, 1e-9);
  EXPECT_NEAR(peak_gigaops(machine_for("sapphirerapids", kAvx512), DataType::float_(64)), 120, 1e-9);
  EXPECT_NEAR(peak_gigaops(machine_for("sapphirerapids", kAvx512), DataType::float_(16)), 240, 1e-9);
  EXPECT_NEAR(peak_gigaops(machine_for("x86-64", Features{"sse2"}), f32), 4 * 2.5, 1e-9);
  EXPECT_NEAR(peak_gigaops(machine_for("neoverse-n1", Features{"neon"}), f32), 4 * 2 * 2 * 2.8, 1e-9);
}

// The code generator's width and the table's are one.
TEST(Machine, WidthIsTheCodeGenerators) {
  const codegen::NativeCompiler compiler = codegen::NativeCompiler::load();
  for (const char* cpu : {"x86-64", "x86-64-v3", "znver4", "skylake-avx512"}) {
    const codegen::NativeTarget target =
        compiler.resolve_target({.cpu = cpu, .features = "", .triple = "x86_64-unknown-linux-gnu"});
    EXPECT_EQ(machine_for(target.cpu, target.enabled).vector_bits, target.vector_bits) << cpu;
  }
  for (const char* cpu : {"generic", "neoverse-n1"}) {
    const codegen::NativeTarget target =
        compiler.resolve_target({.cpu = cpu, .features = "", .triple = "aarch64-unknown-linux-gnu"});
    EXPECT_EQ(machine_for(target.cpu, target.enabled).vector_bits, target.vector_bits) << cpu;
    EXPECT_EQ(machine_for(target.cpu, target.enabled).family, "aarch64") << cpu;
  }
}

}  // namespace
}  // namespace headrace::cost
