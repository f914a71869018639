#include "cost/probes.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/aligned_buffer.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace headrace::cost {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Rounds of `work` on all threads at once until `seconds` are over, at least three; units a second of the best round,
// from the first thread's start to the last one's end.
double best_rate(int threads, double seconds, double units_a_thread, const std::function<void(int thread)>& work) {
  std::atomic<int> ready = 0;
  std::atomic<bool> is_over = false;
  std::vector<Clock::time_point> begins(static_cast<size_t>(threads)), ends(begins.size());
  double best = 0;
  const auto begin = Clock::now();
  const auto meet = [&](int round) {
    ready.fetch_add(1);
    while (ready.load() < (round + 1) * threads) std::this_thread::yield();
  };
  const auto run = [&](int thread) {
    for (int round = 0; !is_over.load(); ++round) {
      meet(3 * round);
      begins[static_cast<size_t>(thread)] = Clock::now();
      work(thread);
      ends[static_cast<size_t>(thread)] = Clock::now();
      meet(3 * round + 1);
      if (thread == 0) {
        const auto first = *std::min_element(begins.begin(), begins.end());
        const auto last = *std::max_element(ends.begin(), ends.end());
        best = std::max(best, units_a_thread * threads / std::chrono::duration<double>(last - first).count());
        if (round >= 2 && seconds_since(begin) > seconds) is_over.store(true);
      }
      meet(3 * round + 2);
    }
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(run, i);
  run(0);
  for (std::thread& other : others) other.join();
  return best;
}

// --- multiply-adds: 16 sums at once, more than a processor has under way. Unrolled, else the sums live in memory.

constexpr int kSums = 16;

#if defined(__x86_64__)

__attribute__((target("avx512f"))) void fma_avx512(int64_t steps) {
  __m512 sums[kSums], factor = _mm512_set1_ps(0.5f), term = _mm512_set1_ps(0.25f);
  for (__m512& sum : sums) sum = term;
  for (int64_t i = 0; i < steps; ++i) {
    _Pragma("GCC unroll 16") for (__m512& sum : sums) {
      sum = _mm512_fmadd_ps(sum, factor, term);
      __asm__ volatile("" : "+v"(sum));
    }
  }
}

__attribute__((target("avx2,fma"))) void fma_avx2(int64_t steps) {
  // 16 registers in all: two hold the operands.
  constexpr int kNarrowSums = 12;
  __m256 sums[kNarrowSums], factor = _mm256_set1_ps(0.5f), term = _mm256_set1_ps(0.25f);
  for (__m256& sum : sums) sum = term;
  for (int64_t i = 0; i < steps * kSums / kNarrowSums; ++i) {
    _Pragma("GCC unroll 16") for (__m256& sum : sums) {
      sum = _mm256_fmadd_ps(sum, factor, term);
      __asm__ volatile("" : "+x"(sum));
    }
  }
}

#endif

using Vector = float __attribute__((vector_size(16)));

void fma_plain(int64_t steps) {
  constexpr int kPlainSums = 8;
  const Vector factor = {0.5f, 0.5f, 0.5f, 0.5f}, term = factor;
  Vector sums[kPlainSums];
  for (Vector& sum : sums) sum = term;
  for (int64_t i = 0; i < steps * kSums / kPlainSums; ++i) {
    _Pragma("GCC unroll 16") for (Vector& sum : sums) {
      sum = sum * factor + term;
#if defined(__x86_64__)
      __asm__ volatile("" : "+x"(sum));
#else
      __asm__ volatile("" : "+m"(sum));
#endif
    }
  }
}

struct FmaKernel {
  const char* name;
  int lanes;
  void (*run)(int64_t steps);
};

FmaKernel choose_fma() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {"AVX-512", 16, fma_avx512};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {"AVX2", 8, fma_avx2};
#endif
  return {"plain", 4, fma_plain};
}

// --- reads: the loads are wide, their values are not used

#if defined(__x86_64__)
__attribute__((target("avx"))) void read_avx(const std::byte* data, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 256) {
    _Pragma("GCC unroll 16") for (int k = 0; k < 8; ++k) {
      __m256 value = _mm256_load_ps(reinterpret_cast<const float*>(data + i + 32 * k));
      __asm__ volatile("" : : "x"(value));
    }
  }
}
#endif

void read_plain(const std::byte* data, int64_t bytes) {
  uint64_t sum = 0;
  for (int64_t i = 0; i < bytes; i += 8) sum += *reinterpret_cast<const uint64_t*>(data + i);
  __asm__ volatile("" : : "r"(sum));
}

void read_all(const std::byte* data, int64_t bytes) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx")) return read_avx(data, bytes);
#endif
  read_plain(data, bytes);
}

// --- hops

std::vector<int> processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> list;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return list;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) list.push_back(i);
  }
  return list;
}

void stay_on(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  static_cast<void>(::sched_setaffinity(0, sizeof set, &set));
}

struct alignas(128) Ball {
  std::atomic<int64_t> turn = 0;
};

// Waits without leaving the processor for a while, then lets others run: the partner may be among them.
void wait_for(const std::atomic<int64_t>& turn, int64_t value) {
  for (int spins = 0; turn.load(std::memory_order_acquire) < value; ++spins) {
    if (spins % 4096 == 4095) std::this_thread::yield();
  }
}

// Returns the size of a cache level as the first processor sees it; 0 when the kernel does not tell. (sysconf adds up
// all caches of a socket.)
int64_t cache_bytes(int level) {
  for (int index = 0; index < 8; ++index) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", index);
    int its_level = 0;
    int64_t kilobytes = 0;
    std::ifstream(folder + "level") >> its_level;
    std::ifstream(folder + "size") >> kilobytes;
    if (its_level == level) return kilobytes * 1024;
  }
  return 0;
}

}  // namespace

Caches read_caches() {
  Caches caches{cache_bytes(2), cache_bytes(3)};
  constexpr int64_t kUsualL2 = 1 << 20, kUsualL3 = 32 << 20;
  if (caches.l2 <= 0) caches.l2 = kUsualL2;
  if (caches.l3 <= caches.l2) caches.l3 = kUsualL3;
  return caches;
}

double fma_gflops(int threads, double seconds) {
  const FmaKernel kernel = choose_fma();
  constexpr int64_t kSteps = 1 << 16;
  const double operations = 2.0 * kSums * kernel.lanes * static_cast<double>(kSteps);
  return best_rate(threads, seconds, operations, [&](int) { kernel.run(kSteps); }) * 1e-9;
}

std::string fma_instructions() { return choose_fma().name; }

double read_gigabytes(int threads, int64_t bytes, double seconds) {
  constexpr int64_t kBlock = 4096, kLeastRound = 8 << 20;
  bytes = (bytes + kBlock - 1) / kBlock * kBlock;
  std::vector<runtime::AlignedBuffer> buffers;
  for (int i = 0; i < threads; ++i) {
    buffers.emplace_back(bytes);
    std::fill_n(buffers.back().data(), bytes, std::byte{1});
  }
  // A round reads small buffers several times.
  const int64_t times = std::max<int64_t>(1, kLeastRound / bytes);
  const auto read = [&](int thread) {
    for (int64_t i = 0; i < times; ++i) read_all(buffers[static_cast<size_t>(thread)].data(), bytes);
  };
  return best_rate(threads, seconds, static_cast<double>(bytes * times), read) * 1e-9;
}

std::optional<double> hop_nanoseconds(double seconds) {
  const std::vector<int> own = processors();
  if (own.size() < 2) return std::nullopt;
  constexpr int64_t kRoundTrips = 1000;
  Ball there, back;
  std::atomic<bool> is_over = false;
  std::vector<double> rounds;
  std::thread answering([&] {
    stay_on(own[1]);
    for (int64_t i = 1; !is_over.load(std::memory_order_relaxed); ++i) {
      while (there.turn.load(std::memory_order_acquire) < i && !is_over.load(std::memory_order_relaxed)) {
      }
      back.turn.store(i, std::memory_order_release);
    }
  });
  std::thread asking([&] {
    stay_on(own[0]);
    const auto begin = Clock::now();
    for (int64_t i = 0; rounds.size() < 3 || seconds_since(begin) < seconds;) {
      const auto start = Clock::now();
      for (int64_t k = 0; k < kRoundTrips; ++k) {
        there.turn.store(++i, std::memory_order_release);
        wait_for(back.turn, i);
      }
      rounds.push_back(seconds_since(start) / (2.0 * kRoundTrips) * 1e9);
    }
    is_over.store(true);
  });
  asking.join();
  answering.join();
  std::nth_element(rounds.begin(), rounds.begin() + static_cast<std::ptrdiff_t>(rounds.size() / 2), rounds.end());
  return rounds[rounds.size() / 2];
}

}  // namespace headrace::cost
