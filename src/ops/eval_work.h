// Limits and counts the work and memory of evaluating ops, and runs their loops on several threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "base/error.h"

namespace headrace::ops {

// Thrown when an evaluation exceeds a limit of its EvalWork. Not a UserError: the program is valid, but too expensive
// to evaluate at compile time.
class WorkLimitReached : public Error {
 public:
  explicit WorkLimitReached(std::string message) : Error("WorkLimitReached", std::move(message), {}) {}
};

// The work of one evaluation, which may call many ops. The evaluation function of each op reports its work here, before
// it does the work.
class EvalWork {
 public:
  struct Limits {
    // A step is one multiply-add, one comparison, or one element read or written: 1 to 10 ns.
    int64_t steps = std::numeric_limits<int64_t>::max();
    // The sum over the results of all ops, intermediate results included. Memory that is freed is not subtracted.
    int64_t bytes = std::numeric_limits<int64_t>::max();
    int32_t threads = 1;
  };
  explicit EvalWork(const Limits& limits) : limits_(limits) {}

  // Counts `steps` that the caller is about to do. Throws WorkLimitReached past the limit, and polls for interrupts
  // (base/interrupt.h); so call it at least once every few million steps. Thread-safe.
  void spend(int64_t steps);
  // Counts a result of `bytes` before the caller allocates it. Throws WorkLimitReached past the limit. Not thread-safe.
  void take_bytes(int64_t bytes);
  // Splits [0, count) into contiguous parts and calls body(begin, end) for each, on up to `threads` threads. Returns
  // when all are done. `steps_each` is the expected number of steps per index: a part gets at least about 1e6 steps, so
  // small loops run on the calling thread alone. Rethrows the exception of the first part that failed.
  void for_each_part(int64_t count, double steps_each, const std::function<void(int64_t, int64_t)>& body) const;

  // Return what was counted so far.
  int64_t steps() const { return steps_.load(std::memory_order_relaxed); }
  int64_t bytes() const { return bytes_; }

 private:
  Limits limits_;
  std::atomic<int64_t> steps_{0};
  int64_t bytes_ = 0;
};

}  // namespace headrace::ops
