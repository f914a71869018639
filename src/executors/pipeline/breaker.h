// Breaker: refuses requests while a stage keeps failing, and lets one through from time to time.
#pragma once

#include <mutex>
#include <optional>

#include "executors/pipeline/failure.h"
#include "executors/pipeline/flow.h"
#include "executors/pipeline/futex.h"

namespace headrace::executors::pipeline {

// Any thread may call any of its functions.
class Breaker {
 public:
  // `failures_in_row` 0: only a stage that is stuck is broken.
  Breaker(uint64_t failures_in_row, double probe_seconds);

  // Throws RefusedError, PipelineBroken, for a request that is not let through. Returns whether this one is a probe, of
  // which there is one at a time.
  bool check();
  void failed(Stage& stage, const Failure& failure);
  void worked(Stage& stage);
  // Notes that a call has returned, with or without an error: a stage that was broken because it was stuck is not.
  void returned(Stage& stage);
  // Makes the stage broken at once.
  void open(Stage& stage, const Failure& failure);
  // Notes that a probe has ended, or did not enter.
  void probe_ended();
  void reset();
  bool is_open() const noexcept { return is_open_.load(std::memory_order_acquire); }

 private:
  const uint64_t failures_in_row_;
  const std::chrono::nanoseconds probe_after_;
  std::atomic<bool> is_open_ = false;
  std::mutex mutex_;
  Stage* stage_ = nullptr;
  std::optional<Failure> failure_;
  Clock::time_point next_probe_{};
  bool is_probing_ = false;
};

}  // namespace headrace::executors::pipeline
