#include "codegen/for_each_index.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace headrace::codegen {

void for_each_index(size_t count, int threads, const std::function<void(size_t)>& job) {
  std::atomic<size_t> next{0};
  std::mutex mutex;
  // Indices are handed out in order, so every index below the first failure has been run: the lowest one is the same
  // for any number of threads.
  size_t failed_index = count;
  std::exception_ptr failure;
  std::atomic<bool> stop{false};
  auto work = [&] {
    while (!stop.load(std::memory_order_relaxed)) {
      const size_t i = next.fetch_add(1, std::memory_order_relaxed);
      if (i >= count) return;
      try {
        job(i);
      } catch (...) {
        std::lock_guard lock(mutex);
        stop.store(true, std::memory_order_relaxed);
        if (i < failed_index) {
          failed_index = i;
          failure = std::current_exception();
        }
      }
    }
  };
  const size_t helpers = std::min(static_cast<size_t>(std::max(threads, 1)), std::max<size_t>(count, 1)) - 1;
  std::vector<std::jthread> pool;
  pool.reserve(helpers);
  try {
    for (size_t i = 0; i < helpers; ++i) pool.emplace_back(work);
  } catch (const std::system_error&) {
    // The machine gives no more threads: those that run, and this one, do all the jobs.
  }
  work();
  pool.clear();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace headrace::codegen
