#include "executors/pipeline/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace headrace::executors::pipeline {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t) && std::atomic<uint32_t>::is_always_lock_free);

void futex_wait(const std::atomic<uint32_t>& word, uint32_t value, Until until) noexcept {
  std::timespec end{};
  if (until.has_value()) {
    const auto since_start = until->time_since_epoch();
    const auto seconds = std::chrono::floor<std::chrono::seconds>(since_start);
    end.tv_sec = static_cast<std::time_t>(seconds.count());
    end.tv_nsec = std::chrono::nanoseconds(since_start - seconds).count();
  }
  // With FUTEX_WAIT_BITSET the time is absolute, on the monotonic clock, which is also that of steady_clock.
  static_cast<void>(::syscall(SYS_futex, &word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, value,
                              until.has_value() ? &end : nullptr, nullptr, FUTEX_BITSET_MATCH_ANY));
}

void futex_wake(const std::atomic<uint32_t>& word, int count) noexcept {
  static_cast<void>(::syscall(SYS_futex, &word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, count, nullptr, nullptr, 0));
}

}  // namespace headrace::executors::pipeline
