#include "cost/limits.h"

#include <algorithm>

#include "cost/probes.h"

namespace headrace::cost {

Limits probe_limits(int threads, double seconds) {
  const Caches caches = read_caches();
  return {.gflops = fma_gflops(threads, seconds),
          .memory = {{"L2", caches.l2, read_gigabytes(threads, caches.l2 / 2, seconds)},
                     {"L3", caches.l3, read_gigabytes(threads, std::min(4 * caches.l2, caches.l3 / 2), seconds)},
                     {"DRAM", INT64_MAX, read_gigabytes(threads, 2 * caches.l3, seconds)}}};
}

LeastTime least_time(const Limits& limits, double operations, double bytes) {
  const auto memory = std::find_if(limits.memory.begin(), limits.memory.end() - 1,
                                   [&](const MemoryLimit& it) { return bytes <= static_cast<double>(it.holds_bytes); });
  const double by_operations = operations / (limits.gflops * 1e9), by_bytes = bytes / (memory->gigabytes * 1e9);
  return by_operations >= by_bytes ? LeastTime{by_operations, "FMA"} : LeastTime{by_bytes, memory->name};
}

}  // namespace headrace::cost
