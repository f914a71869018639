// A mutex that throws when the calling thread holds it already, where a plain one would deadlock: a function that a run
// calls may call the runner again. A process that was forked meanwhile lacks the thread that held it, and has it free.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>

namespace headrace::runtime {

// Lock it with std::lock_guard.
class Turn {
 public:
  Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn();
  // Waits for the turn. UserError when the calling thread has it already.
  void lock();
  void unlock();

 private:
  struct State {
    uint64_t process;  // process_generation() of the one that made it
    std::mutex mutex = {};
    std::atomic<std::thread::id> owner = {};
  };
  State& state_here();

  std::atomic<State*> state_;
};

}  // namespace headrace::runtime
