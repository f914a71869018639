// What the evaluation of ops may cost: a limit of work and memory, and threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "base/error.h"

namespace headrace::ops {

// Thrown by an evaluation that reaches a limit of its EvalWork. Not a UserError: the program is right, only too costly
// to evaluate here.
class WorkLimitReached : public Error {
 public:
  explicit WorkLimitReached(std::string message) : Error("WorkLimitReached", std::move(message), {}) {}
};

class EvalWork {
 public:
  struct Limits {
    int64_t steps = std::numeric_limits<int64_t>::max();  // multiply-adds, comparisons, elements read or written
    int64_t bytes = std::numeric_limits<int64_t>::max();  // of results, those in between included
    int32_t threads = 1;
  };
  explicit EvalWork(const Limits& limits) : limits_(limits) {}

  // Counts work that is about to be done. Call it for pieces of at most some million steps: it polls for interrupts
  // (base/interrupt.h) and throws WorkLimitReached past the limit. From any thread.
  void spend(int64_t steps);
  // Counts a result of so many bytes before it is made.
  void take_bytes(int64_t bytes);
  // Calls body(begin, end) for parts of [0, count) that together cover it, on up to `threads` threads. A part takes
  // some `steps_each` steps an index; little work stays on the calling thread. An exception of a part is thrown here.
  void for_each_part(int64_t count, double steps_each, const std::function<void(int64_t, int64_t)>& body) const;

  int64_t steps() const { return steps_.load(std::memory_order_relaxed); }
  int64_t bytes() const { return bytes_; }

 private:
  Limits limits_;
  std::atomic<int64_t> steps_{0};
  int64_t bytes_ = 0;
};

}  // namespace headrace::ops
