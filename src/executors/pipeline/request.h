// Request: one item of a pipeline's stream, from its submission to its outcome. A Ticket shares it with the caller.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "executors/pipeline/failure.h"
#include "executors/pipeline/futex.h"
#include "object/value.h"

namespace headrace::executors::pipeline {

// The values of all parameters of a pipeline as one request sees them.
using ParamValues = std::shared_ptr<const std::vector<Value>>;

// Counts a request whose outcome nobody has read, from its submission until the outcome is read or all its tickets are
// gone.
class Unread {
 public:
  explicit Unread(std::function<void()> ended) : ended_(std::move(ended)) {}
  Unread(const Unread&) = delete;
  Unread& operator=(const Unread&) = delete;
  ~Unread() { end(); }
  // Ends it, once.
  void end() {
    if (!is_over_.exchange(true, std::memory_order_acq_rel)) ended_();
  }

 private:
  std::function<void()> ended_;
  std::atomic<bool> is_over_ = false;
};

class Request {
 public:
  Request(std::vector<Value> inputs, size_t num_outputs);

  // Set before the request enters the pipeline.
  uint64_t number = 0;  // in the order of submission
  const Clock::time_point submitted = Clock::now();
  Clock::time_point entered{};  // when it got its place; set where a stage without producers takes batches
  Until deadline = {};
  bool is_probe = false;              // decides whether a broken pipeline works again
  bool is_queued = false;             // its outcome is read by Pipeline::next, not through a ticket
  std::weak_ptr<Unread> unread = {};  // held by its tickets, where these are counted

  // Used by the stages while it passes through.
  std::vector<Value> inputs;
  ParamValues params = {};
  std::vector<Value> outputs;  // each written by one stage
  std::atomic<size_t> stages_left = 0;
  // Its place is free once nothing holds it: the way through the stages, and its outcome until it is read by next().
  std::atomic<uint32_t> holds = 1;

  // Returns whether stages skip the request.
  bool is_dead() const noexcept { return is_dead_.load(std::memory_order_acquire); }
  // Marks the request as failed, once, for the first failure; it finishes when it has left the last stage. Returns
  // whether this was the first.
  bool fail(Failure failure) noexcept;
  // Chooses the outcome, once: the failure, or the one that the request was marked with, or its outputs. Returns
  // whether this call did; then its caller publishes it.
  bool decide();
  bool decide(Failure failure);
  // Makes the outcome known, and wakes those who wait for it.
  void publish() noexcept;

  using Callback = std::function<void(const std::shared_ptr<Request>&)>;
  // Keeps a callback for the outcome; returns false, and does not, when take_callbacks() was called.
  bool add_callback(Callback callback);
  std::vector<Callback> take_callbacks();

  bool is_done() const noexcept { return done_.load(std::memory_order_acquire) == kDone; }
  // Returns whether it was done by then.
  bool wait(Until until) const noexcept;
  // Return the outcome once it is decided: its failure, or null; its outputs.
  const Failure* failure() const { return has_failed_ ? &failure_ : nullptr; }
  const std::vector<Value>& results() const { return results_; }

 private:
  static constexpr uint32_t kPending = 0, kAwaited = 1, kDone = 2;
  bool claim() noexcept { return !is_claimed_.exchange(true, std::memory_order_acq_rel); }

  std::atomic<bool> is_dead_ = false;
  std::atomic<bool> is_marked_ = false;   // one failure has been chosen
  std::atomic<bool> is_claimed_ = false;  // one outcome has been chosen
  mutable std::atomic<uint32_t> done_ = kPending;
  Failure mark_;     // the failure in a stage
  Failure failure_;  // the outcome
  bool has_failed_ = false;
  std::vector<Value> results_;
  std::mutex callbacks_mutex_;
  std::vector<Callback> callbacks_;
  bool are_callbacks_taken_ = false;
};

}  // namespace headrace::executors::pipeline
