#include "executors/pipeline/entrance.h"

#include <algorithm>

#include "executors/pipeline/wait_on.h"

namespace headrace::executors::pipeline {
std::shared_ptr<Request> Entrance::enter(const std::shared_ptr<Request>& request, WhenFull when_full, Until until,
                                         const std::function<void(Request&)>& entered) {
  std::unique_lock lock(mutex_);
  std::shared_ptr<Request> dropped = take_place(lock, when_full, until);
  request->number = next_number_++;
  entered(*request);
  waiting_.push_back(request);
  num_waiting_.store(waiting_.size(), std::memory_order_release);
  return dropped;
}

std::shared_ptr<Request> Entrance::take_place(std::unique_lock<std::mutex>& lock, WhenFull when_full, Until until) {
  const auto check_open = [&] {
    if (is_closed_) throw RefusedError("PipelineStopped", "the pipeline is stopped, and takes no more requests");
  };
  check_open();
  const bool drops = when_full == WhenFull::drop_oldest && !has_too_many_unread() && !waiting_.empty();
  if (num_taken_ >= num_places_ && drops) return pop_front();
  if (!has_place() && when_full == WhenFull::wait) {
    ++num_sleepers_;
    wait_on(changed_, lock, until, [&] { return is_closed_ || has_place(); });
    --num_sleepers_;
    check_open();
  }
  if (!has_place()) throw_full();
  ++num_taken_;
  ++num_inside_;
  return nullptr;
}

void Entrance::throw_full() const {
  if (has_too_many_unread())
    throw RefusedError("PipelineFull",
                       fmt::format("the pipeline is full: the results of {} requests are not read; read them, give "
                                   "their tickets up, or allow more by max_unread",
                                   num_unread_));
  throw RefusedError("PipelineFull",
                     fmt::format("the pipeline is full: {} requests are in it; wait for results, or allow more by "
                                 "max_inflight",
                                 num_taken_));
}

std::shared_ptr<Request> Entrance::pop_front() {
  std::shared_ptr<Request> request = std::move(waiting_.front());
  waiting_.pop_front();
  num_waiting_.store(waiting_.size(), std::memory_order_release);
  return request;
}

std::shared_ptr<Request> Entrance::pop() {
  if (!has_waiting()) return nullptr;
  const std::lock_guard lock(mutex_);
  return waiting_.empty() ? nullptr : pop_front();
}

void Entrance::see_waiting(const std::function<bool(const Request&)>& visit) const {
  if (!has_waiting()) return;
  const std::lock_guard lock(mutex_);
  for (const std::shared_ptr<Request>& request : waiting_) {
    if (!visit(*request)) return;
  }
}

bool Entrance::remove(const Request& request) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                  [&](const std::shared_ptr<Request>& other) { return other.get() == &request; });
  if (found == waiting_.end()) return false;
  waiting_.erase(found);
  num_waiting_.store(waiting_.size(), std::memory_order_release);
  return true;
}

void Entrance::leave() {
  const std::lock_guard lock(mutex_);
  --num_taken_;
  wake_sleepers();
}

void Entrance::was_read() {
  const std::lock_guard lock(mutex_);
  --num_unread_;
  wake_sleepers();
}

void Entrance::passed(bool frees_place) {
  const std::lock_guard lock(mutex_);
  --num_inside_;
  if (frees_place) --num_taken_;
  wake_sleepers();
}

// Wakes all, since they wait for different things: a place, or the end of all requests.
void Entrance::wake_sleepers() {
  if (num_sleepers_ > 0) changed_.notify_all();
}

uint64_t Entrance::between_requests(const std::function<void()>& change) {
  const std::lock_guard lock(mutex_);
  change();
  return next_number_;
}

uint64_t Entrance::next_number() const {
  const std::lock_guard lock(mutex_);
  return next_number_;
}

void Entrance::close() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  changed_.notify_all();
}

void Entrance::give_up() {
  const std::lock_guard lock(mutex_);
  is_given_up_ = true;
  changed_.notify_all();
}

bool Entrance::wait_for_place(Until until) {
  std::unique_lock lock(mutex_);
  ++num_sleepers_;
  const bool is_there = wait_on(changed_, lock, until, [&] { return is_closed_ || has_place(); });
  --num_sleepers_;
  return is_there;
}

std::vector<std::shared_ptr<Request>> Entrance::clear(uint64_t end) {
  const std::lock_guard lock(mutex_);
  const auto last = std::partition_point(
      waiting_.begin(), waiting_.end(), [&](const std::shared_ptr<Request>& request) { return request->number < end; });
  std::vector<std::shared_ptr<Request>> taken(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(last));
  waiting_.erase(waiting_.begin(), last);
  num_waiting_.store(waiting_.size(), std::memory_order_release);
  return taken;
}

bool Entrance::wait_until_done(Until until) {
  std::unique_lock lock(mutex_);
  ++num_sleepers_;
  const bool is_done = wait_on(changed_, lock, until, [&] { return num_inside_ == 0 || is_given_up_; });
  --num_sleepers_;
  return is_done && num_inside_ == 0;
}

size_t Entrance::num_taken() const {
  const std::lock_guard lock(mutex_);
  return num_taken_;
}

}  // namespace headrace::executors::pipeline
