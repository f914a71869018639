#include "runtime/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <system_error>

#include "base/error.h"
#include "runtime/processors.h"

namespace headrace::runtime {
namespace {

// Iterations of waiting before a thread sleeps, when no run holds the pool: some 20 us.
constexpr int kSpinRounds = 1000;

void pause_processor() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

int64_t part_begin(int64_t count, int64_t index, int64_t num_workers) {
  // count * index could overflow; the two terms cannot.
  return count / num_workers * index + count % num_workers * index / num_workers;
}

}  // namespace

// With more workers than processors, one that spins keeps another from working.
ThreadPool::ThreadPool(int32_t num_workers, std::vector<int32_t> cpus)
    : num_workers_(num_workers),
      cpus_(std::move(cpus)),
      spin_rounds_(num_workers <= (cpus_.empty() ? num_processors() : static_cast<int32_t>(cpus_.size())) ? kSpinRounds
                                                                                                          : 0),
      process_(process_generation()),
      parts_(static_cast<size_t>(std::max(num_workers, 1))) {
  HEADRACE_CHECK(num_workers >= 1 && num_workers <= kMaxWorkers, "a pool of {} workers", num_workers);
  check_cpus(cpus_);
  threads_.reserve(static_cast<size_t>(num_workers) - 1);
  try {
    for (int32_t i = 1; i < num_workers; ++i) threads_.emplace_back([this, i] { work(i); });
  } catch (const std::system_error& error) {
    stop();
    throw_user_error("{} threads were asked for and the system refuses: {}; use fewer", num_workers, error.what());
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() noexcept {
  if (process_ != process_generation()) {
    // The threads stayed in the parent process: there is nothing to join.
    for (std::thread& thread : threads_) drop_thread_of_parent(thread);
    return;
  }
  is_stopping_.store(true, std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::wait_while(const std::atomic<uint32_t>& value, uint32_t old) const noexcept {
  // Yields after some pauses, so that other threads can run on an oversubscribed machine.
  constexpr int kPausesPerYield = 64;
  for (int i = 0; i < spin_rounds_; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    pause_processor();
    const bool is_held = holders_.load(std::memory_order_relaxed) > 0;
    if (is_held && i + 1 == spin_rounds_) i = 0;
    if (is_held && i % kPausesPerYield == kPausesPerYield - 1) ::sched_yield();
  }
  value.wait(old, std::memory_order_acquire);
}

void ThreadPool::work(int32_t index) noexcept {
  move_this_thread(cpus_);
  for (uint32_t seen = 0;;) {
    wait_while(epoch_, seen);
    seen = epoch_.load(std::memory_order_acquire);
    if (is_stopping_.load(std::memory_order_relaxed)) return;
    if (take(index, seen)) run_and_report(index);
  }
}

// Takes a part. A late worker finds its part taken, or fails here because a later epoch's part was taken. It reads the
// job only after it has taken a part, and the job cannot end before that.
bool ThreadPool::take(int32_t index, uint32_t epoch) noexcept {
  std::atomic<uint32_t>& taken = parts_[static_cast<size_t>(index)].taken;
  uint32_t before = taken.load(std::memory_order_relaxed);
  return before != epoch && epoch - before < (uint32_t{1} << 31) &&
         taken.compare_exchange_strong(before, epoch, std::memory_order_acq_rel);
}

void ThreadPool::run_and_report(int32_t index) noexcept {
  run_part(index);
  if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) pending_.notify_one();
}

void ThreadPool::run_part(int32_t index) noexcept {
  Part& part = parts_[static_cast<size_t>(index)];
  part.status = 0;
  part.message[0] = '\0';
  const int64_t begin = part_begin(job_.count, index, num_workers_);
  const int64_t end = part_begin(job_.count, index + 1, num_workers_);
  if (begin == end) return;
  hr_kernel_env env = hr_worker_env(job_.env, index);
  env.message = part.message.data();
  env.message_size = part.message.size();
  part.status = job_.body(&env, job_.closure, begin, end);
}

int32_t ThreadPool::first_failure(const hr_kernel_env* env) const noexcept {
  for (const Part& part : parts_) {
    if (part.status == 0) continue;
    if (env->message != nullptr && env->message_size > 0) {
      const size_t size = std::min<size_t>(env->message_size - 1, ::strnlen(part.message.data(), 255));
      std::memcpy(env->message, part.message.data(), size);
      env->message[size] = '\0';
    }
    return part.status;
  }
  return 0;
}

int32_t ThreadPool::parallel_for(const hr_kernel_env* env, hr_parallel_body body, void* closure,
                                 int64_t count) noexcept {
  if (count <= 0) return 0;
  const bool is_serial = num_workers_ == 1 || count == 1 || env->worker_index != 0 ||
                         env->num_workers != num_workers_ || process_ != process_generation();
  if (is_serial || is_busy_.exchange(true, std::memory_order_acquire)) return body(env, closure, 0, count);
  job_ = {.env = env, .body = body, .closure = closure, .count = count};
  pending_.store(static_cast<uint32_t>(num_workers_ - 1), std::memory_order_relaxed);
  const uint32_t epoch = epoch_.fetch_add(1, std::memory_order_release) + 1;
  epoch_.notify_all();
  run_part(0);
  for (int32_t i = 1; i < num_workers_; ++i) {
    if (take(i, epoch)) run_and_report(i);
  }
  for (uint32_t left = pending_.load(std::memory_order_acquire); left != 0;
       left = pending_.load(std::memory_order_acquire)) {
    wait_while(pending_, left);
  }
  const int32_t status = first_failure(env);
  is_busy_.store(false, std::memory_order_release);
  return status;
}

int32_t ThreadPool::parallel_for_entry(const hr_kernel_env* env, hr_parallel_body body, void* closure,
                                       int64_t count) noexcept {
  return static_cast<ThreadPool*>(env->host)->parallel_for(env, body, closure, count);
}

std::shared_ptr<ThreadPool> shared_pool(int32_t num_workers) {
  static std::mutex mutex;
  static std::map<int32_t, std::weak_ptr<ThreadPool>> pools;
  const std::lock_guard lock(mutex);
  std::weak_ptr<ThreadPool>& known = pools[num_workers];
  std::shared_ptr<ThreadPool> pool = known.lock();
  if (pool == nullptr) known = pool = std::make_shared<ThreadPool>(num_workers);
  return pool;
}

}  // namespace headrace::runtime
