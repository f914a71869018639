#include "executors/pipeline/watch.h"

#include <condition_variable>
#include <mutex>
#include <queue>
#include <system_error>

#include "base/error.h"
#include "executors/pipeline/wait_on.h"
#include "runtime/processors.h"

namespace headrace::executors::pipeline {

struct Watch::State {
  struct Timer {
    Clock::time_point time;
    std::weak_ptr<Request> request;
    bool operator>(const Timer& other) const { return time > other.time; }
  };

  std::function<void(const std::shared_ptr<Request>&)> expire;
  std::function<bool()> check;
  std::optional<std::chrono::nanoseconds> period;
  std::mutex mutex;
  std::condition_variable changed;
  std::priority_queue<Timer, std::vector<Timer>, std::greater<>> timers;
  Until next_check = {};
  bool is_stopping = false;
  bool has_ended = false;

  Until next_time() const {
    if (timers.empty()) return next_check;
    const Clock::time_point timer = timers.top().time;
    return next_check.has_value() ? std::min(*next_check, timer) : timer;
  }
};

Watch::Watch(std::function<void(const std::shared_ptr<Request>&)> expire, std::function<bool()> check,
             std::optional<std::chrono::nanoseconds> period)
    : process_(runtime::process_generation()), state_(std::make_shared<State>()) {
  state_->expire = std::move(expire);
  state_->check = std::move(check);
  state_->period = period;
}

Watch::~Watch() {
  stop(Clock::now());
  if (thread_.joinable()) thread_.detach();
}

void Watch::start() {
  const std::lock_guard lock(state_->mutex);
  if (thread_.joinable() || state_->is_stopping) return;
  try {
    thread_ = std::thread(&Watch::work, state_);
  } catch (const std::system_error& error) {
    throw_user_error("a thread that watches time limits cannot be started: {}", error.what());
  }
}

void Watch::add(const std::shared_ptr<Request>& request) {
  const std::lock_guard lock(state_->mutex);
  auto& timers = state_->timers;
  const bool is_first = timers.empty() || *request->deadline < timers.top().time;
  timers.push({.time = *request->deadline, .request = request});
  if (is_first) state_->changed.notify_all();
}

void Watch::poke() {
  if (!state_->period.has_value()) return;
  const std::lock_guard lock(state_->mutex);
  if (state_->next_check.has_value()) return;
  state_->next_check = Clock::now() + *state_->period;
  state_->changed.notify_all();
}

void Watch::stop(Until until) {
  if (process_ != runtime::process_generation()) {
    if (thread_.joinable()) runtime::drop_thread_of_parent(thread_);
    return;
  }
  std::unique_lock lock(state_->mutex);
  state_->is_stopping = true;
  state_->changed.notify_all();
  if (!thread_.joinable() || thread_.get_id() == std::this_thread::get_id()) return;
  const auto has_ended = [&] { return state_->has_ended; };
  if (!wait_on(state_->changed, lock, until, has_ended)) return;
  lock.unlock();
  thread_.join();
}

void Watch::work(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  while (!state->is_stopping) {
    const Until until = state->next_time();
    if (!until.has_value()) {
      state->changed.wait(lock);
    } else if (Clock::now() < *until) {
      state->changed.wait_until(lock, *until);
    } else if (!state->timers.empty() && state->timers.top().time <= *until) {
      const std::shared_ptr<Request> request = state->timers.top().request.lock();
      state->timers.pop();
      lock.unlock();
      if (request != nullptr) state->expire(request);
      lock.lock();
    } else {
      state->next_check.reset();  // a poke from here on asks for another check
      lock.unlock();
      const bool goes_on = state->check();
      lock.lock();
      if (goes_on && !state->next_check.has_value()) state->next_check = Clock::now() + *state->period;
    }
  }
  state->has_ended = true;
  state->changed.notify_all();
}

}  // namespace headrace::executors::pipeline
