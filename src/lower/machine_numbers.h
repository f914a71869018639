// What lowering reckons with of any processor: numbers that a target does not say. Each with its source; none decides
// whether code is right, only how fast it is.
#pragma once

#include <cstdint>

namespace headrace::lower {

// Of every x86-64 processor so far.
inline constexpr int64_t kCacheLineBytes = 64;

// What one core keeps near while it works: half of an L2 of 1 MB, as Zen 4 has it (Skylake-X: 1 MB, later ones 2).
inline constexpr int64_t kCacheBytes = 512 * 1024;

// Lanes of the widest vector register, 512 bits of float32. Copies of windows are laid out for it whatever the target's
// width is: narrower vectors divide it.
inline constexpr int64_t kWidestLanes = 16;

// Below so many operations, some 5 us of them, a loop stays on one thread: starting the others costs as much
// (`./dev bench probes` measures the hop). A scalar operation takes 0.6 ns; a vector loop of a map is bound by memory
// (20 GB/s), one of a reduction by arithmetic (50 Gop/s).
inline constexpr int64_t kMinScalarWork = 8192;
inline constexpr int64_t kMinMapWork = 16384;
inline constexpr int64_t kMinReductionWork = 262144;

}  // namespace headrace::lower
