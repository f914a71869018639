// Probes of the limits of the machine that runs this process, against which benchmarks are compared. Compiling never
// asks them: the table in cost/machine.h describes the machine that code is made for. Each probe repeats rounds of
// about a millisecond and reports the best, so that other work on the machine has little influence.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace headrace::cost {

// Sizes in bytes; estimates where the system does not give them.
struct Caches {
  int64_t l2 = 0;
  int64_t l3 = 0;
};
Caches read_caches();

// Measures float32 multiply-adds on the widest registers, two operations each, in Gop/s over all threads.
double fma_gflops(int threads, double seconds);

// Measures sequential reads over `bytes` of each thread's own, in GB/s over all threads.
double read_gigabytes(int threads, int64_t bytes, double seconds);

// Returns the time from one processor's store to another's load of it: half a round trip between two pinned threads,
// the median. Nothing where the process has one processor.
std::optional<double> hop_nanoseconds(double seconds);

// Returns which instructions fma_gflops used: "AVX-512", "AVX2", "plain".
std::string fma_instructions();

}  // namespace headrace::cost
