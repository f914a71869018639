// The threads of a pipeline: what they do, and how they end.
#include <algorithm>
#include <system_error>

#include "base/error.h"
#include "executors/pipeline/core.h"
#include "executors/pipeline/wait_on.h"
#include "executors/pipeline/warm_up.h"
#include "runtime/processors.h"

namespace headrace::executors::pipeline {
namespace {

// The pipeline that the calling thread works for.
thread_local const Core* own_core = nullptr;

// How long a thread may take to end after its call was made to return.
constexpr auto kInterruptPatience = std::chrono::seconds(2);
constexpr auto kInterruptAgain = std::chrono::milliseconds(50);

// How often an idle thread looks for work before it sleeps, where every thread has a processor: some microseconds.
constexpr int kSpins = 200;

}  // namespace

bool Core::is_own_thread() const { return own_core == this; }

void Core::make_workers() {
  groups_.resize(spec_.groups.size());
  for (size_t group = 0; group < groups_.size(); ++group) {
    std::vector<Stage*> stages;
    for (const std::unique_ptr<Stage>& stage : flow_->stages()) {
      if (stage->spec.group == group) stages.push_back(stage.get());
    }
    for (size_t replica = 0; replica < stages[0]->replicas.size(); ++replica) {
      auto worker = std::make_unique<Worker>();
      worker->group = group;
      worker->replica = replica;
      worker->stages = stages;
      groups_[group].push_back(worker.get());
      workers_.push_back(std::move(worker));
    }
  }
  const auto threads = static_cast<int32_t>(workers_.size()) + 1;  // and the caller's
  spin_rounds_ = threads <= runtime::num_processors() ? kSpins : 0;
}

void Core::prepare() {
  const auto with_core = [weak = weak_from_this()](auto action) {
    const std::shared_ptr<Core> core = weak.lock();
    if (core == nullptr) return;
    own_core = core.get();
    action(*core);
    own_core = nullptr;
  };
  watch_ = std::make_unique<Watch>(
      [with_core](const std::shared_ptr<Request>& request) { with_core([&](Core& core) { core.expire(request); }); },
      [with_core] {
        bool goes_on = false;
        with_core([&](Core& core) { goes_on = core.check_time_limits(); });
        return goes_on;
      },
      watch_period_);
}

void Core::start() {
  check_not_forked();
  const std::lock_guard turn(start_mutex_);
  if (has_started_.load(std::memory_order_acquire)) return;
  start_threads();
  if (options_.warms_up) wait_until_warm();
  started_.store(Clock::now(), std::memory_order_relaxed);
  has_started_.store(true, std::memory_order_release);
}

void Core::start_threads() {
  std::unique_lock turn(stop_mutex_);  // stop() joins all threads, or finds none
  if (state() != State::built) throw RefusedError("PipelineStopped", "the pipeline is stopped, and cannot be started");
  try {
    for (const std::unique_ptr<Worker>& worker : workers_) {
      worker->thread = std::thread([core = shared_from_this(), worker = worker.get()] { core->work(*worker); });
      const std::lock_guard lock(threads_mutex_);
      worker->has_begun = true;
    }
  } catch (const std::system_error& error) {
    turn.unlock();
    stop({});
    throw_user_error("the pipeline needs {} threads and the system refuses: {}", workers_.size(), error.what());
  }
}

void Core::wait_until_warm() {
  Failure failure;
  std::unique_lock lock(threads_mutex_);
  for (const std::unique_ptr<Worker>& worker : workers_) {
    thread_changed_.wait(lock, [&] { return worker->is_warm; });
    if (!failure.cause) failure = worker->warm_up_failure;
  }
  lock.unlock();
  if (failure.cause) {
    stop({});
    throw_user_error("stage '{}' failed on zeros, before the first request: {}", failure.stage, failure.cause->message);
  }
  if (is_stopping_.load(std::memory_order_acquire))
    throw RefusedError("PipelineStopped", "the pipeline was stopped while it warmed up");
}

void Core::work(Worker& worker) {
  own_core = this;
  runtime::move_this_thread(spec_.groups[worker.group].cpus);
  if (options_.warms_up) warm_up(worker);
  Clock::time_point now = Clock::now();
  while (!is_stopping_.load(std::memory_order_acquire)) {
    if (!run_stages(worker, now)) rest(worker, now);
  }
  const std::lock_guard lock(threads_mutex_);
  worker.has_ended = true;
  thread_changed_.notify_all();
}

void Core::warm_up(Worker& worker) {
  Failure failure;
  for (Stage* stage : worker.stages) {
    if (failure.cause || is_stopping_.load(std::memory_order_acquire)) break;
    Replica& replica = *stage->replicas[worker.replica];
    replica.running_since.store(nanoseconds_of(Clock::now()), std::memory_order_release);
    failure.cause = pipeline::warm_up(*replica.code);
    replica.running_since.store(0, std::memory_order_release);
    failure.stage = stage->spec.name;
  }
  const std::lock_guard lock(threads_mutex_);
  worker.warm_up_failure = std::move(failure);
  worker.is_warm = true;
  thread_changed_.notify_all();
}

// Lets each stage take a token if it can, in the order in which a request passes them.
bool Core::run_stages(Worker& worker, Clock::time_point& now) {
  bool has_worked = false;
  for (Stage* stage : worker.stages) {
    if (is_stopping_.load(std::memory_order_relaxed)) return true;
    has_worked |= flow_->run_next(*stage, *stage->replicas[worker.replica], now);
  }
  return has_worked;
}

// Returns whether one of the thread's stages can work. If none can, `due` is the time at which one may, if it is known.
bool Core::has_work(const Worker& worker, Until& due) {
  due.reset();
  return is_stopping_.load(std::memory_order_acquire) ||
         std::any_of(worker.stages.begin(), worker.stages.end(),
                     [&](Stage* stage) { return flow_->waits(*stage, due) == Waiting::no; });
}

// Waits for work, and counts the time for each stage as one of its two kinds of waiting.
void Core::rest(Worker& worker, Clock::time_point& now) {
  const Clock::time_point start = now;
  Until due;
  bool is_found = false;
  for (int i = 0; i < spin_rounds_ && !is_found; ++i) is_found = has_work(worker, due);
  if (!is_found) {
    worker.parker.announce();
    if (has_work(worker, due)) {
      worker.parker.retract();
    } else {
      worker.reasons.clear();
      for (Stage* stage : worker.stages) worker.reasons.push_back(flow_->waits(*stage, due));
      worker.parker.sleep(due);
    }
  }
  now = Clock::now();
  note_rest(worker, start, now);
}

// Adds a rest to the times of the thread's stages, by what each of them waited for.
void Core::note_rest(Worker& worker, Clock::time_point start, Clock::time_point end) {
  const auto time = static_cast<uint64_t>(std::chrono::nanoseconds(end - start).count());
  for (size_t i = 0; i < worker.reasons.size(); ++i) {
    Replica& replica = *worker.stages[i]->replicas[worker.replica];
    const bool is_blocked = worker.reasons[i] == Waiting::for_place;
    (is_blocked ? replica.blocked_ns : replica.starved_ns).add(time);
    if (TraceRing* trace = replica.trace.load(std::memory_order_acquire))
      trace->add({.begin_ns = nanoseconds_of(start),
                  .end_ns = nanoseconds_of(end),
                  .lane = replica.lane,
                  .kind = is_blocked ? TraceEvent::Kind::blocked : TraceEvent::Kind::starved});
  }
  worker.reasons.clear();
}

void Core::wake(size_t group) {
  for (Worker* worker : groups_[group]) worker->parker.wake();
}

void Core::wake_sources() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (const size_t group : flow_->source_groups()) wake(group);
}

// ---- The end.

void Core::expire(const std::shared_ptr<Request>& request) {
  fail(request, FailureKind::deadline, nullptr, entrance_.remove(*request));
}

bool Core::may_wait() const { return options_.when_full == WhenFull::wait && !is_own_thread(); }

void Core::reset() {
  if (!is_forked()) breaker_.reset();
}

State Core::state() const {
  if (is_forked()) return State::stopped;
  if (has_failed_.load(std::memory_order_acquire)) return State::failed;
  if (is_stopping_.load(std::memory_order_acquire)) return State::stopped;
  if (is_draining_.load(std::memory_order_acquire)) return State::draining;
  if (!has_started_.load(std::memory_order_acquire)) return State::built;
  return breaker_.is_open() ? State::degraded : State::running;
}

bool Core::drain(Until until) {
  if (is_forked()) return true;
  if (is_own_thread())
    throw_user_error("a pipeline cannot be drained by one of its own threads, which would wait for itself");
  is_draining_.store(true, std::memory_order_release);
  entrance_.close();
  flow_->hurry();
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (size_t group = 0; group < groups_.size(); ++group) wake(group);
  const bool is_done = entrance_.wait_until_done(until);
  // Another thread may have stopped it: that one waits for the calls that run.
  if (is_stopping_.load(std::memory_order_acquire)) return running_stages().empty();
  if (!is_done) return false;
  return stop(until).empty();
}

// Ends all requests that are in the pipeline.
void Core::end_all() {
  for (const std::shared_ptr<Request>& request : entrance_.clear()) fail(request, FailureKind::stopped, nullptr, true);
  flow_->for_each_request(
      [&](uint64_t, const std::shared_ptr<Request>& request) { fail(request, FailureKind::stopped, nullptr, false); });
}

std::vector<std::string> Core::stop(Until until, bool keeps_calls) {
  if (is_forked()) return {};
  entrance_.close();
  is_stopping_.store(true, std::memory_order_seq_cst);
  for (size_t group = 0; group < groups_.size(); ++group) wake(group);
  end_all();
  outbox_.close();
  entrance_.give_up();
  if (is_own_thread()) return {};
  std::unique_lock lock(stop_mutex_, std::defer_lock);
  if (until.has_value()) {
    if (!lock.try_lock_until(*until)) return running_stages();  // another thread waits for them
  } else {
    lock.lock();
  }
  watch_->stop(until);
  std::vector<std::string> stuck = join(until);
  if (!stuck.empty() && !keeps_calls && interrupt_calls()) {
    // A call that was about to begin may have missed it.
    const Clock::time_point end = Clock::now() + kInterruptPatience;
    stuck = join(std::min(end, Clock::now() + kInterruptAgain));
    while (!stuck.empty() && Clock::now() < end) {
      interrupt_calls();
      stuck = join(std::min(end, Clock::now() + kInterruptAgain));
    }
  }
  if (stuck.empty()) release_codes();
  has_failed_.store(!stuck.empty(), std::memory_order_release);
  return stuck;
}

// Waits for the threads. Returns the stages of those that have not ended by then.
std::vector<std::string> Core::join(Until until) {
  for (const std::unique_ptr<Worker>& worker : workers_) {
    if (!worker->thread.joinable()) continue;
    std::unique_lock lock(threads_mutex_);
    const auto has_ended = [&] { return worker->has_ended; };
    if (!wait_on(thread_changed_, lock, until, has_ended)) continue;
    lock.unlock();
    worker->thread.join();
  }
  return running_stages();
}

// Makes the calls that run return, where their code can; returns whether one can.
bool Core::interrupt_calls() {
  bool can_return = false;
  for (const std::unique_ptr<Stage>& stage : flow_->stages()) {
    for (const std::unique_ptr<Replica>& replica : stage->replicas) {
      if (replica->running_since.load(std::memory_order_acquire) != 0) can_return |= replica->code->interrupt();
    }
  }
  return can_return;
}

void Core::release_codes() {
  for (const std::unique_ptr<Stage>& stage : flow_->stages()) {
    for (const std::unique_ptr<Replica>& replica : stage->replicas) replica->code->release();
  }
}

// Returns the stages whose calls run; of a thread that is in a callback of a request, its first stage.
std::vector<std::string> Core::running_stages() {
  std::vector<std::string> names;
  const std::lock_guard lock(threads_mutex_);
  for (const std::unique_ptr<Worker>& worker : workers_) {
    if (worker->has_ended || !worker->has_begun) continue;
    const auto runs = [&](const Stage* stage) {
      return stage->replicas[worker->replica]->running_since.load(std::memory_order_acquire) != 0;
    };
    const auto found = std::find_if(worker->stages.begin(), worker->stages.end(), runs);
    names.push_back((found == worker->stages.end() ? worker->stages.front() : *found)->spec.name);
  }
  return names;
}

void Core::abandon() {
  for (const std::unique_ptr<Worker>& worker : workers_) {
    if (!worker->thread.joinable()) continue;
    if (is_forked()) {
      runtime::drop_thread_of_parent(worker->thread);
    } else {
      worker->thread.detach();
    }
  }
}

}  // namespace headrace::executors::pipeline
