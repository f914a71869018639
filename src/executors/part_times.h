// Records which threads ran the parts of a program's parallel loops, and when, in runs whose steps are timed.
#pragma once

#include <headrace/kernel_abi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/thread_pool.h"

namespace headrace::executors {

// Returns the time of the monotonic clock.
uint64_t now_nanoseconds() noexcept;

// A part of a parallel loop. Times are nanoseconds since the run began.
struct PartTime {
  size_t step = 0;
  int32_t thread = 0;  // 0: the thread that called run; otherwise the number of the pool's worker
  uint64_t begin = 0;
  uint64_t end = 0;
};

// The parts of the last timed run of one executor (Executor::record_parts). A loop inside of a part belongs to that
// part. Runs allocate nothing here: parts for which there is no room are counted and not kept.
//
// An attached recorder takes the place of the pool in hr_kernel_env, and hands each loop on to the pool with a body
// that reads the clock before and after its part. Runs without a recorder pay nothing for it. Functions that only
// readers of a record call are inline, so that they add nothing to the runtime.
class PartTimes {
 public:
  // Keeps up to `most` parts of each number. `num_workers` is that of the executor (num_threads).
  explicit PartTimes(int32_t num_workers, size_t most = size_t{1} << 16)
      : most_(most), slots_(static_cast<size_t>(num_workers)) {
    for (Slot& slot : slots_) slot.parts = std::make_unique_for_overwrite<PartTime[]>(most);
  }
  PartTimes(const PartTimes&) = delete;
  PartTimes& operator=(const PartTimes&) = delete;

  // Returns the parts in the order in which they began.
  std::vector<PartTime> parts() const {
    std::vector<PartTime> all;
    for (const Slot& slot : slots_) all.insert(all.end(), slot.parts.get(), slot.parts.get() + slot.count);
    std::stable_sort(all.begin(), all.end(), [](const PartTime& a, const PartTime& b) { return a.begin < b.begin; });
    return all;
  }
  // Returns how many parts of the run were not kept.
  size_t num_lost() const {
    size_t sum = 0;
    for (const Slot& slot : slots_) sum += slot.num_lost;
    return sum;
  }

  // An executor calls these: `attach` before its runs, the others in a run, on the thread that runs.
  void attach(runtime::ThreadPool& pool, hr_kernel_env& env);
  void begin_run(uint64_t now_nanoseconds) noexcept;
  void begin_step(size_t step) noexcept { step_ = step; }
  void end_run() noexcept { is_recording_ = false; }

 private:
  // The parts with one number; one thread at a time adds to them.
  struct alignas(128) Slot {
    std::unique_ptr<PartTime[]> parts;
    size_t count = 0;
    size_t num_lost = 0;
  };
  struct Loop {
    PartTimes* self;
    hr_parallel_body body;
    void* closure;
  };

  static int32_t parallel_for(const hr_kernel_env* env, hr_parallel_body body, void* closure, int64_t count) noexcept;
  static int32_t run_part(const hr_kernel_env* env, void* loop, int64_t begin, int64_t end) noexcept;

  size_t most_;
  runtime::ThreadPool* pool_ = nullptr;
  std::vector<Slot> slots_;  // by worker
  std::thread::id caller_;
  uint64_t run_begin_ = 0;
  size_t step_ = 0;
  bool is_recording_ = false;
};

}  // namespace headrace::executors
