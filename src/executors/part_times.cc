#include "executors/part_times.h"

#include <chrono>

#include "base/error.h"

namespace headrace::executors {

uint64_t now_nanoseconds() noexcept {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
}

void PartTimes::attach(runtime::ThreadPool& pool, hr_kernel_env& env) {
  HEADRACE_CHECK(pool.num_workers() <= std::ssize(slots_), "a record of too few threads");
  pool_ = &pool;
  env.parallel_for = &PartTimes::parallel_for;
  env.host = this;
}

void PartTimes::begin_run(uint64_t now_nanoseconds) noexcept {
  for (Slot& slot : slots_) {
    slot.count = slot.num_lost = 0;
  }
  caller_ = std::this_thread::get_id();
  run_begin_ = now_nanoseconds;
  step_ = 0;
  is_recording_ = true;
}

int32_t PartTimes::parallel_for(const hr_kernel_env* env, hr_parallel_body body, void* closure,
                                int64_t count) noexcept {
  auto* self = static_cast<PartTimes*>(env->host);
  // The env of the pool itself, so that loops inside of the body are not recorded.
  hr_kernel_env plain = *env;
  plain.parallel_for = &runtime::ThreadPool::parallel_for_entry;
  plain.host = self->pool_;
  if (!self->is_recording_) return self->pool_->parallel_for(&plain, body, closure, count);
  Loop loop{.self = self, .body = body, .closure = closure};
  return self->pool_->parallel_for(&plain, &run_part, &loop, count);
}

// The pool lets worker w, or the caller in its place, run part w, so that the number of the part and whether this is
// the caller's thread tell which thread it is.
int32_t PartTimes::run_part(const hr_kernel_env* env, void* loop, int64_t begin, int64_t end) noexcept {
  const Loop& it = *static_cast<const Loop*>(loop);
  const uint64_t before = now_nanoseconds();
  const int32_t status = it.body(env, it.closure, begin, end);
  const uint64_t after = now_nanoseconds();
  Slot& slot = it.self->slots_[static_cast<size_t>(env->worker_index)];
  if (slot.count == it.self->most_) {
    ++slot.num_lost;
    return status;
  }
  const bool is_caller = std::this_thread::get_id() == it.self->caller_;
  slot.parts[slot.count++] = {.step = it.self->step_,
                              .thread = is_caller ? 0 : env->worker_index,
                              .begin = before - it.self->run_begin_,
                              .end = after - it.self->run_begin_};
  return status;
}

}  // namespace headrace::executors
