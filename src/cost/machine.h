// The machine that code is made for, as numbers: what schedules and cost models know of a processor. The numbers affect
// speed only. Results differ at most in the order in which a float sum is added, which the widths decide.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tensor/data_type.h"

namespace headrace::cost {

// One processor family. Sizes are in bytes, bandwidths in GB/s (10^9 bytes a second) as one thread reads.
struct Machine {
  std::string_view family = "x86-64-v3";

  // Registers and arithmetic. `vector_bits` is the widest register that code uses.
  int vector_bits = 256;
  int vector_registers = 16;
  bool has_fma = true;
  int fma_ports = 2;           // vector multiply-adds that start in one cycle
  int fma_port_bits = 256;     // width of one port: a wider vector takes several starts
  int fma_latency_cycles = 5;  // from one multiply-add to the next that needs its result
  int load_ports = 2;          // vectors that are loaded in one cycle
  double gigahertz = 3.0;      // under load

  // Memory.
  int64_t line_bytes = 64;
  int64_t l1_bytes = 32 << 10;
  int64_t l2_bytes = 256 << 10;
  int64_t l3_bytes = 8 << 20;  // shared by the cores of one complex
  double l2_gigabytes = 90;
  double l3_gigabytes = 45;
  double dram_gigabytes = 15;
  double all_dram_gigabytes = 30;  // all threads together

  // Thresholds of schedules.
  // The working set that one core keeps close: half of an L2 cache of 1 MB, as on Zen 4.
  int64_t kept_bytes = 512 << 10;
  // Lanes of the vectors that joined rows of a window copy are laid out for: 512 bits of float32. Narrower vectors
  // divide it.
  int64_t joined_lanes = 16;
  // Below so many operations, some 5 us of them, a loop stays on one thread: starting the others costs as much
  // (`./dev bench probes` measures the hop). A scalar operation takes 0.6 ns; a vector loop of a map is bound by memory
  // (20 GB/s), one of a reduction by arithmetic (50 Gop/s). A kernel that is written by hand counts elements.
  int64_t min_scalar_work = 8192;
  int64_t min_map_work = 16384;
  int64_t min_reduction_work = 262144;
  int64_t min_kernel_work = 20'000;
  // Starting a loop on the other threads and waiting for them.
  double fork_seconds = 5e-6;
  // Calling one more kernel, beside the time of its work, and what the estimates of small kernels may be wrong by.
  double call_seconds = 2e-6;

  // Thresholds of stages that share their outer loops.
  // Iterations of the shared loops that make them worth it: threads want parts, and fewer still keep a copy near
  // (depthwise 3x3 of 144 channels in 9 blocks of 16, 56x56 by steps of 2: 0.20 ms apart, 0.12 together).
  int64_t min_shared_iterations = 6;
  // The least number of elements inside the outer axes, for a map. Vectors are then mostly full, and a value is not
  // read with other vectors while it is still on its way to the cache (depthwise 3x3, 7x7: 30 us apart, 40 us together;
  // 14x14: 31 and 28).
  int64_t min_inside_elements = 128;

  // Shares that the choice of layouts compares a convolution's forms by: of the peak, what a kernel by itself reaches,
  // as written, from NCHW to blocks of channels, in blocks (`./dev bench kernels`).
  double plain_conv_share = 0.78;
  double packing_conv_share = 0.88;
  double blocked_conv_share = 0.88;

  // Shares that estimates for placement by cost count with, of kernels within a network, whose tensors are in blocks:
  // of the peak, what convolutions reach, and depthwise ones by steps of 1 and by larger steps; of the memory's
  // bandwidth, what weights are read with that no cache keeps from run to run. Seen in steps of networks on Zen 4 by
  // `headrace profile`: 0.49 to 1, 0.34 to 0.72, 0.31 to 0.36; 0.68 to 0.76.
  double network_conv_share = 0.95;
  double depthwise_share = 0.7;
  double strided_depthwise_share = 0.34;
  double weights_share = 0.7;
};

// Returns the row of the family of `cpu`, a processor by LLVM's name ("znver4", "x86-64-v3"), with the registers that
// `features` allow. Features are LLVM's names of those that are enabled, without a sign, in any order. A name without a
// row gets the row of the newest family whose features it has. Depends on nothing but the arguments.
Machine machine_for(std::string_view cpu, std::span<const std::string> features);

// Returns the bits of the widest vector register that code should use with these features: of x86-64, AArch64 or
// RISC-V.
int vector_bits_of(std::span<const std::string> features);

// Returns the elements of `dtype` in a vector register, at least one.
int64_t lanes_of(const Machine& machine, DataType dtype);

// Returns the multiply-adds, as two operations each, of one thread in Gop/s. float16 and bfloat16 are computed as
// float32; integers of a width are taken to be as fast as floats of that width.
double peak_gigaops(const Machine& machine, DataType dtype);

}  // namespace headrace::cost
