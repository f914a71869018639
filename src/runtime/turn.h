// A mutex that throws when the calling thread holds it already, where a plain one would deadlock: a function that a run
// calls may call the runner again.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>

#include "base/error.h"

namespace headrace::runtime {

// Lock it with std::lock_guard.
class Turn {
 public:
  // Waits for the turn. UserError when the calling thread has it already.
  void lock() {
    if (owner_.load(std::memory_order_relaxed) == std::this_thread::get_id())
      throw_user_error("the module is running: a function that it calls cannot use it; make another executor for that");
    mutex_.lock();
    owner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  }
  void unlock() {
    owner_.store(std::thread::id(), std::memory_order_relaxed);
    mutex_.unlock();
  }

 private:
  std::mutex mutex_;
  std::atomic<std::thread::id> owner_;
};

}  // namespace headrace::runtime
