// Waiting on a condition variable, with or without a time limit.
#pragma once

#include <condition_variable>
#include <mutex>

#include "executors/pipeline/futex.h"

namespace headrace::executors::pipeline {

// Waits until `is_done()`, at most until `until`: returns whether it is.
template <typename Done>
bool wait_on(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, Until until, Done is_done) {
  if (until.has_value()) return changed.wait_until(lock, *until, is_done);
  changed.wait(lock, is_done);
  return true;
}

}  // namespace headrace::executors::pipeline
