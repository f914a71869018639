#include "executors/pipeline/breaker.h"

#include <algorithm>

namespace headrace::executors::pipeline {

namespace {

// Returns whether one of the stage's calls runs longer than it may.
bool has_stuck_call(const Stage& stage) {
  return std::any_of(stage.replicas.begin(), stage.replicas.end(),
                     [&](const std::unique_ptr<Replica>& replica) { return is_stuck(stage, *replica); });
}

}  // namespace

Breaker::Breaker(uint64_t failures_in_row, double probe_seconds)
    : failures_in_row_(failures_in_row),
      probe_after_(std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(probe_seconds))) {
}

bool Breaker::check() {
  if (!is_open()) return false;
  const std::lock_guard lock(mutex_);
  if (!is_open()) return false;
  const Clock::time_point now = Clock::now();
  if (!is_probing_ && now >= next_probe_) {
    is_probing_ = true;
    return true;
  }
  const auto left = std::chrono::duration<double>(std::max(next_probe_ - now, Clock::duration::zero()));
  throw RefusedError(
      "PipelineBroken",
      fmt::format("stage '{}' does not work: {}; the next request is let through in {:.1f} seconds, or after reset()",
                  failure_->stage, message_of(*failure_), left.count()));
}

void Breaker::failed(Stage& stage, const Failure& failure) {
  if (is_open()) returned(stage);
  const uint64_t failures = stage.failures_in_row.fetch_add(1, std::memory_order_relaxed) + 1;
  if (failures_in_row_ == 0 || failures < failures_in_row_) return;
  open(stage, failure);
}

void Breaker::open(Stage& stage, const Failure& failure) {
  std::optional<Failure> old = failure;  // the one before ends after the lock: it may hold objects of another language
  const std::lock_guard lock(mutex_);
  stage_ = &stage;
  std::swap(failure_, old);
  next_probe_ = Clock::now() + probe_after_;
  is_open_.store(true, std::memory_order_release);
}

void Breaker::worked(Stage& stage) {
  if (stage.failures_in_row.load(std::memory_order_relaxed) != 0)
    stage.failures_in_row.store(0, std::memory_order_relaxed);
  if (!is_open()) return;
  const std::lock_guard lock(mutex_);
  if (stage_ == &stage && !has_stuck_call(stage)) is_open_.store(false, std::memory_order_release);
}

void Breaker::returned(Stage& stage) {
  const std::lock_guard lock(mutex_);
  if (stage_ == &stage && failure_->kind == FailureKind::stage_timeout && !has_stuck_call(stage))
    is_open_.store(false, std::memory_order_release);
}

void Breaker::probe_ended() {
  const std::lock_guard lock(mutex_);
  is_probing_ = false;
  next_probe_ = Clock::now() + probe_after_;
}

void Breaker::reset() {
  const std::lock_guard lock(mutex_);
  if (stage_ != nullptr) stage_->failures_in_row.store(0, std::memory_order_relaxed);
  is_open_.store(false, std::memory_order_release);
}

}  // namespace headrace::executors::pipeline
