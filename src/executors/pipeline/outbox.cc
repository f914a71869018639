#include "executors/pipeline/outbox.h"

#include <algorithm>

#include "executors/pipeline/wait_on.h"

namespace headrace::executors::pipeline {
void Outbox::add(std::shared_ptr<Request> request) {
  const std::lock_guard lock(mutex_);
  entered_.push_back(std::move(request));
}

// Returns where a request is among those that entered.
std::deque<std::shared_ptr<Request>>::iterator Outbox::find(const Request& request) {
  return std::find_if(entered_.begin(), entered_.end(),
                      [&](const std::shared_ptr<Request>& entered) { return entered.get() == &request; });
}

void Outbox::done(const Request& request) {
  const std::lock_guard lock(mutex_);
  if (find(request) == entered_.end()) return;
  done_.push_back(&request);
  changed_.notify_all();
}

std::shared_ptr<Request> Outbox::take(std::deque<std::shared_ptr<Request>>::iterator found) {
  std::shared_ptr<Request> request = std::move(*found);
  entered_.erase(found);
  const auto in_done = std::find(done_.begin(), done_.end(), request.get());
  if (in_done != done_.end()) done_.erase(in_done);
  return request;
}

std::shared_ptr<Request> Outbox::next(Until until) {
  std::unique_lock lock(mutex_);
  const auto is_front_done = [&] {
    return !entered_.empty() && std::find(done_.begin(), done_.end(), entered_.front().get()) != done_.end();
  };
  wait_on(changed_, lock, until, [&] { return is_front_done() || (is_closed_ && entered_.empty()); });
  return is_front_done() ? take(entered_.begin()) : nullptr;
}

std::shared_ptr<Request> Outbox::next_done(Until until) {
  std::unique_lock lock(mutex_);
  wait_on(changed_, lock, until, [&] { return !done_.empty() || (is_closed_ && entered_.empty()); });
  if (done_.empty()) return nullptr;
  return take(find(*done_.front()));
}

void Outbox::remove(const Request& request) {
  const std::lock_guard lock(mutex_);
  const auto found = find(request);
  if (found == entered_.end()) return;
  take(found);
  changed_.notify_all();  // the next one may be done
}

void Outbox::close() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  changed_.notify_all();
}

size_t Outbox::num_done() const {
  const std::lock_guard lock(mutex_);
  return done_.size();
}

}  // namespace headrace::executors::pipeline
