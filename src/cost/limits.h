// The limits of this machine, probed, and the least time that they allow some work (the roofline model,
// cost/time_of.h). Compiling never asks them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace headrace::cost {

// A memory, the bytes that it holds, and how fast all threads together read it, in GB/s.
struct MemoryLimit {
  std::string_view name;
  int64_t holds_bytes;
  double gigabytes;
};

struct Limits {
  double gflops = 0;                  // multiply-adds of float32 of all threads, two operations each, in Gop/s
  std::vector<MemoryLimit> memory{};  // from the smallest
};

struct LeastTime {
  double seconds = 0;
  std::string_view bound;  // the limiting resource: "FMA", or the name of a memory
};

// Probes the limits for some number of threads, each limit for that many seconds.
Limits probe_limits(int threads, double seconds);

// Returns the least time of so many operations on so many bytes, which come once from the smallest memory that holds
// them.
LeastTime least_time(const Limits& limits, double operations, double bytes);

}  // namespace headrace::cost
