#include "runtime/turn.h"

#include "base/error.h"
#include "runtime/processors.h"

namespace headrace::runtime {

Turn::Turn() : state_(new State{process_generation()}) {}

Turn::~Turn() {
  State* state = state_.load();
  if (state->process == process_generation()) delete state;  // another process's mutex may be locked for ever
}

// Returns the state of this process: a new one after a fork, unless the thread that forked has the turn itself.
Turn::State& Turn::state_here() {
  State* state = state_.load();
  const uint64_t process = process_generation();
  if (state->process == process || is_thread_that_forked(state->owner.load(std::memory_order_relaxed))) return *state;
  auto* fresh = new State{process};
  if (state_.compare_exchange_strong(state, fresh)) return *fresh;
  delete fresh;  // another thread was here first
  return *state;
}

void Turn::lock() {
  State& state = state_here();
  if (state.owner.load(std::memory_order_relaxed) == std::this_thread::get_id())
    throw_user_error("the module is running: a function that it calls cannot use it; make another executor for that");
  state.mutex.lock();
  state.owner.store(std::this_thread::get_id(), std::memory_order_relaxed);
}

void Turn::unlock() {
  State& state = *state_.load();
  state.owner.store(std::thread::id(), std::memory_order_relaxed);
  state.mutex.unlock();
}

}  // namespace headrace::runtime
