// Assumptions of lowering about every processor: numbers that a target does not give. Each has its source. They affect
// speed only, never results.
#pragma once

#include <cstdint>

namespace headrace::lower {

// The line size of every x86-64 processor so far.
inline constexpr int64_t kCacheLineBytes = 64;

// The working set that one core keeps close: half of an L2 cache of 1 MB, as on Zen 4 (Skylake-X: 1 MB, later ones 2
// MB).
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
