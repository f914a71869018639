#include "executors/pipeline/request.h"

#include <climits>

namespace headrace::executors::pipeline {

Request::Request(std::vector<Value> values, size_t num_outputs) : inputs(std::move(values)), outputs(num_outputs) {}

bool Request::fail(Failure failure) noexcept {
  if (is_marked_.exchange(true, std::memory_order_acq_rel)) return false;
  mark_ = std::move(failure);
  is_dead_.store(true, std::memory_order_release);
  return true;
}

bool Request::decide() {
  if (!claim()) return false;
  has_failed_ = is_dead();
  if (has_failed_) {
    failure_ = mark_;
  } else {
    results_ = std::move(outputs);
  }
  return true;
}

bool Request::decide(Failure failure) {
  if (!claim()) return false;
  is_dead_.store(true, std::memory_order_release);
  has_failed_ = true;
  failure_ = std::move(failure);
  return true;
}

void Request::publish() noexcept {
  if (done_.exchange(kDone, std::memory_order_acq_rel) == kAwaited) futex_wake(done_, INT_MAX);
}

bool Request::add_callback(Callback callback) {
  const std::lock_guard lock(callbacks_mutex_);
  if (are_callbacks_taken_) return false;
  callbacks_.push_back(std::move(callback));
  return true;
}

std::vector<Request::Callback> Request::take_callbacks() {
  const std::lock_guard lock(callbacks_mutex_);
  are_callbacks_taken_ = true;
  return std::move(callbacks_);
}

bool Request::wait(Until until) const noexcept {
  while (true) {
    uint32_t seen = done_.load(std::memory_order_acquire);
    if (seen == kDone) return true;
    if (until.has_value() && Clock::now() >= *until) return false;
    if (seen == kPending && !done_.compare_exchange_strong(seen, kAwaited, std::memory_order_acq_rel)) continue;
    futex_wait(done_, kAwaited, until);
  }
}

}  // namespace headrace::executors::pipeline
