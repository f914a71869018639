// Waiting on a word of memory, with a time limit, as Linux offers it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

namespace headrace::executors::pipeline {

using Clock = std::chrono::steady_clock;
// A point in time, or nothing for "never".
using Until = std::optional<Clock::time_point>;

// Returns the time as nanoseconds of the clock.
inline int64_t nanoseconds_of(Clock::time_point time) noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

// Sleeps while `word` is `value`, at most until `until`. May return early.
void futex_wait(const std::atomic<uint32_t>& word, uint32_t value, Until until) noexcept;
// Wakes up to `count` threads that sleep on `word`.
void futex_wake(const std::atomic<uint32_t>& word, int count) noexcept;

// Lets one thread sleep until there is work. The thread calls announce(), looks for work again, and then sleeps or
// retracts; another thread makes work visible and then calls wake(). A wake between the two is not lost.
class Parker {
 public:
  void announce() noexcept {
    is_parked_.store(1, std::memory_order_seq_cst);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // before the thread looks for work again
  }
  void retract() noexcept { is_parked_.store(0, std::memory_order_relaxed); }
  void sleep(Until until) noexcept {
    if (is_parked_.load(std::memory_order_acquire) == 1) futex_wait(is_parked_, 1, until);
    retract();
  }
  // Call it after a sequentially consistent fence that follows the work.
  void wake() noexcept {
    if (is_parked_.load(std::memory_order_seq_cst) == 0) return;
    if (is_parked_.exchange(0, std::memory_order_acq_rel) == 1) futex_wake(is_parked_, 1);
  }

 private:
  alignas(64) std::atomic<uint32_t> is_parked_ = 0;
};

}  // namespace headrace::executors::pipeline
